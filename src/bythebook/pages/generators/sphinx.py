"""Sphinx: the documents its toctrees arrange, in reStructuredText and MyST."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from bythebook.pages import Skipped
from bythebook.pages.folder import humanised
from bythebook.pages.generators import Aside, Outline, Place, Style, besides, sphinx_parts
from bythebook.pages.generators.glances import Glance, Glances, heading_of_markdown, heading_of_restructured
from bythebook.pages.generators.navigation import Arranged, Entry, Section, arranged
from bythebook.pages.generators.patterns import excluded, matches
from bythebook.pages.generators.sphinx_config import Config, read
from bythebook.pages.generators.yaml_files import mapping
from bythebook.pages.walking import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bythebook.pages.generators import Wish
    from bythebook.pages.generators.navigation import Item

_RST_TREE = re.compile(
    r"^(?P<indent>[ \t]*)\.\.[ \t]+toctree::[ \t]*\n(?P<body>(?:(?P=indent)[ \t]+\S.*(?:\n|\Z)|[ \t]*\n)*)",
    re.MULTILINE,
)
_MYST_TREE = re.compile(
    r"^[ \t]*(?P<mark>`{3,}|:{3,}|~{3,})\{toctree\}[ \t]*\n(?P<body>.*?)^[ \t]*(?P=mark)[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
_OPTION = re.compile(r":?(?P<name>[\w-]+):(?:[ \t]+(?P<value>.*))?")
_TITLED = re.compile(r".*\S\s+<(?P<target>[^<>]+)>")
_GLOB = re.compile(r"[*?\[]")
_MARKDOWN = frozenset([".md", ".markdown"])
_DEEPEST = 30


@dataclass(frozen=True, slots=True)
class Tree:
    """A toctree as it is written."""

    caption: str = ""
    glob: bool = False
    reversed: bool = False
    targets: tuple[str, ...] = ()


def look(fields: dict[str, Any], text: str, file: Path) -> Glance:
    markdown = file.suffix.lower() in _MARKDOWN
    trees = (_MYST_TREE if markdown else _RST_TREE).finditer(text) if "toctree" in text else iter(())
    return Glance(
        fields,
        heading_of_markdown(text) if markdown else heading_of_restructured(text),
        sphinx_parts.references(text),
        tuple(_tree(match["body"]) for match in trees),
    )


def _tree(body: str) -> Tree:
    options: dict[str, str] = {}
    targets: list[str] = []
    for line in map(str.strip, body.splitlines()):
        option = _OPTION.fullmatch(line) if not targets and (line.startswith(":") or line.endswith(":")) else None
        option = option or (_OPTION.fullmatch(line) if not targets and ": " in line and "<" not in line else None)
        if option:
            options[option["name"]] = option["value"] or ""
        elif line and not line.startswith("---"):
            titled = _TITLED.fullmatch(line)
            targets.append(titled["target"] if titled else line)
    return Tree(options.get("caption", ""), "glob" in options, "reversed" in options, tuple(targets))


def outline(root: Path, config: Path, *, within: Path, wish: Wish, glances: Glances) -> Outline:
    """What a Sphinx project publishes, in the order of its toctrees."""
    said = read(config)
    source = config.parent
    skipped: list[Skipped] = []
    docs = _Docs(source, said, glances, _is_dirhtml(root, within, wish), dict(_files(source, said, skipped)))
    places = docs.places()
    if source != root:
        places.extend(besides.of_the_repository(root, published={place.file.resolve() for place in places}))
    inclusion = sphinx_parts.inclusion(source, within=within, glances=glances)
    return Outline(
        said.base_url,
        "/",
        tuple(places),
        skipped=tuple(skipped),
        prepare=lambda text, file: sphinx_parts.completed(inclusion.prepare(text, file), file, said.definitions),
        parts=inclusion.parts,
        says=said.definitions,
    )


def _is_dirhtml(root: Path, within: Path, wish: Wish) -> bool:
    """Whether pages are folders: as it is wished, or as Read the Docs is told."""
    if wish.builder != "auto":
        return wish.builder == "dirhtml"
    for folder in (root, *root.parents):
        for name in (".readthedocs.yaml", ".readthedocs.yml"):
            options = (mapping(folder / name) or {}).get("sphinx")
            if isinstance(options, dict):
                return options.get("builder") == "dirhtml"
        if folder == within:
            break
    return False


def _files(source: Path, said: Config, skipped: list[Skipped]) -> Iterator[tuple[str, PurePosixPath]]:
    """The documents by their names, which are their paths without the ending."""
    for path in walk(source, style=Style.SPHINX):
        if isinstance(path, Skipped):
            skipped.append(path)
            continue
        suffix = next((suffix for suffix in said.suffixes if path.name.endswith(suffix)), "")
        if suffix and matches(str(path), said.included) and not excluded(str(path), said.excluded):
            yield str(path).removesuffix(suffix), path


@dataclass(frozen=True, slots=True)
class _Docs:
    source: Path
    config: Config
    glances: Glances
    dirhtml: bool
    files: dict[str, PurePosixPath]
    _visited: set[str] = field(default_factory=set)

    def places(self) -> list[Place]:
        order = arranged([Entry(self.config.root_doc), *self._below(self.config.root_doc, 0)])
        listed = [at for at in order.values() if at.document in self.files]
        rest = [Arranged(name, "", _first_folder(name)) for name in self.files if name not in order]
        return [self._place(at) for at in (*listed, *rest)]

    def _place(self, at: Arranged) -> Place:
        file = self.source / self.files[at.document]
        changes = besides.is_changelog(PurePosixPath(at.document).name)
        return Place(
            file,
            self._route(at.document),
            at.document,
            module=at.module,
            aside=Aside.CHANGELOG if changes else None,
            reason="a list of changes" if changes else "",
        )

    def _route(self, document: str) -> str:
        if not self.dirhtml:
            return f"/{document}{self.config.file_suffix}"
        folder, _, name = document.rpartition("/")
        return f"/{folder}/".replace("//", "/") if name == "index" else f"/{document}/"

    def _below(self, document: str, depth: int) -> Iterator[Item]:
        """What the toctrees of a document arrange."""
        if document in self._visited or document not in self.files or depth > _DEEPEST:
            return
        self._visited.add(document)
        for tree in self.glances.of(self.source / self.files[document]).contents:
            items = tuple(self._item(name, depth) for name in self._targets(tree, document))
            if tree.caption:
                yield Section(tree.caption, items)
            else:
                yield from items

    def _item(self, document: str, depth: int) -> Item:
        below = tuple(self._below(document, depth + 1))
        own = Entry(document)
        return Section(self._title(document), (own, *below)) if below else own

    def _title(self, document: str) -> str:
        title = self.glances.of(self.source / self.files[document]).title
        return title or humanised(PurePosixPath(document).name)

    def _targets(self, tree: Tree, document: str) -> list[str]:
        """The documents that a toctree names, each with its own name."""
        found: dict[str, None] = {}
        for target in tree.targets:
            name = _resolved(target, document)
            for suffix in self.config.suffixes:
                name = name.removesuffix(suffix)
            if tree.glob and _GLOB.search(name):
                found.update(dict.fromkeys(sorted(every for every in self.files if matches(every, [name]))))
            elif name in self.files:
                found[name] = None
        found.pop(document, None)
        return list(found)[::-1] if tree.reversed else list(found)


def _resolved(target: str, document: str) -> str:
    if target.startswith("/"):
        return target.lstrip("/")
    parts: list[str] = []
    for part in (*PurePosixPath(document).parent.parts, *PurePosixPath(target).parts):
        if part == ".." and parts:
            parts.pop()
        elif part not in (".", ".."):
            parts.append(part)
    return "/".join(parts)


def _first_folder(document: str) -> str:
    return humanised(document.partition("/")[0]) if "/" in document else ""
