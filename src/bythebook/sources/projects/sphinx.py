"""Sphinx: the documents its toctrees arrange, in reStructuredText and MyST.

The configuration of a Sphinx project: what `conf.py` spells out. It is parsed, never run.

What a Sphinx document takes in from other files, and from its configuration.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from bythebook.errors import ConfigurationError
from bythebook.sources import Skipped
from bythebook.sources.folder import humanised, walk
from bythebook.sources.projects import Aside, Outline, Place, Style, exclusions, includes
from bythebook.sources.projects.exclusions import excluded, matches
from bythebook.sources.projects.includes import Inclusion
from bythebook.sources.projects.metadata import Glance, Glances, heading_of_markdown, heading_of_restructured
from bythebook.sources.projects.navigation import Arranged, Entry, Section, arranged
from bythebook.sources.projects.yaml_files import mapping

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bythebook.sources.projects import Wish
    from bythebook.sources.projects.includes import Load
    from bythebook.sources.projects.metadata import Glances
    from bythebook.sources.projects.navigation import Item


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
        references(text),
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
        places.extend(exclusions.of_the_repository(root, published={place.file.resolve() for place in places}))
    included = inclusion(source, within=within, glances=glances)
    return Outline(
        said.base_url,
        "/",
        tuple(places),
        skipped=tuple(skipped),
        prepare=lambda text, file: completed(included.prepare(text, file), file, said.definitions),
        parts=included.parts,
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
        changes = exclusions.is_changelog(PurePosixPath(at.document).name)
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


_LARGEST = 1_000_000


@dataclass(frozen=True, slots=True)
class Config:
    """What the configuration says."""

    root_doc: str
    suffixes: tuple[str, ...]
    included: tuple[str, ...]
    excluded: tuple[str, ...]
    base_url: str
    file_suffix: str
    definitions: str
    """The text that every document can rely on: its prolog and epilog, and its version."""


def read(file: Path) -> Config:
    """Read a configuration. What it does not spell out is as Sphinx has it by default."""
    said = _assigned(file)
    extensions = _words(said.get("extensions"))
    suffixes = _words(said.get("source_suffix")) or (".rst",)
    if any(name.startswith("myst") for name in extensions) and ".md" not in suffixes:
        suffixes = (*suffixes, ".md")
    return Config(
        root_doc=_text(said.get("root_doc")) or _text(said.get("master_doc")) or "index",
        suffixes=suffixes,
        included=_words(said.get("include_patterns")) or ("**",),
        excluded=(*_words(said.get("exclude_patterns")), *_words(said.get("templates_path"))),
        base_url=_text(said.get("html_baseurl")).rstrip("/"),
        file_suffix=_text(said.get("html_link_suffix")) or _text(said.get("html_file_suffix")) or ".html",
        definitions="\n\n".join(_definitions(said)),
    )


def _definitions(said: dict[str, Any]) -> Iterator[str]:
    yield from (text for name in ("rst_prolog", "rst_epilog") if (text := _text(said.get(name))))
    for name in ("version", "release"):
        if value := _text(said.get(name)):
            yield f".. |{name}| replace:: {value}"


def _assigned(file: Path) -> dict[str, Any]:
    """The values of the names that are assigned, as far as they are literal."""
    try:
        data = file.read_bytes()
        if len(data) > _LARGEST:
            raise ValueError("it is larger than a configuration can be")
        tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as exc:
        raise ConfigurationError(
            f"{file} cannot be read: {exc}. Correct it, or read the pages as a plain folder."
        ) from exc
    known: dict[str, Any] = {}
    for statement in _statements(tree.body):
        _apply(statement, known)
    return known


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        if isinstance(statement, ast.Try):
            yield from _statements(statement.body)
        else:
            yield statement


def _apply(statement: ast.stmt, known: dict[str, Any]) -> None:
    if isinstance(statement, ast.Assign) and all(isinstance(target, ast.Name) for target in statement.targets):
        value = _value(statement.value, known)
        known.update({target.id: value for target in statement.targets if isinstance(target, ast.Name)})
    elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value:
        known[statement.target.id] = _value(statement.value, known)
    elif isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        name = statement.target.id
        known[name] = _added(known.get(name), _value(statement.value, known))
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        _call(statement.value, known)


def _call(call: ast.Call, known: dict[str, Any]) -> None:
    """`exclude_patterns.append("drafts")` and `.extend([...])`."""
    function = call.func
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and len(call.args) == 1:
        name, value = function.value.id, _value(call.args[0], known)
        if function.attr in ("append", "extend") and isinstance(known.get(name), list):
            known[name] = _added(known[name], [value] if function.attr == "append" else value)


def _value(node: ast.expr, known: dict[str, Any]) -> Any:
    """The value of an expression that needs no running; None for any other."""
    value: Any
    match node:
        case ast.Constant():
            value = node.value
        case ast.List() | ast.Tuple() | ast.Set():
            value = [_value(item, known) for item in node.elts]
        case ast.Dict():
            pairs = zip(node.keys, node.values, strict=True)
            value = {str(_value(key, known)): _value(inner, known) for key, inner in pairs if key}
        case ast.Name():
            value = known.get(node.id)
        case ast.BinOp(op=ast.Add()):
            value = _added(_value(node.left, known), _value(node.right, known))
        case ast.JoinedStr():
            holes = (piece.value if isinstance(piece, ast.FormattedValue) else piece for piece in node.values)
            pieces = [_value(hole, known) for hole in holes]
            known_all = None not in pieces and sum(len(str(piece)) for piece in pieces) < _LARGEST
            value = "".join(map(str, pieces)) if known_all else None
        case _:
            value = None
    return value


def _added(left: Any, right: Any) -> Any:
    texts = isinstance(left, str) and isinstance(right, str)
    lists = isinstance(left, list) and isinstance(right, list)
    return left + right if (texts or lists) and len(left) + len(right) < _LARGEST else left


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _words(value: Any) -> tuple[str, ...]:
    """A list of words: of a list, of the names of a dictionary, or one alone."""
    items = [value] if isinstance(value, str) else value
    return tuple(item for item in items or () if isinstance(item, str)) if isinstance(items, list | dict) else ()


_DIRECTIVE = re.compile(
    r"^(?P<indent>[ \t]*)\.\.[ \t]+(?P<name>include|literalinclude)::[ \t]+(?P<path>\S+)[ \t]*$"
    r"(?P<options>(?:\n(?P=indent)[ \t]+:[\w-]+:.*$)*)",
    re.MULTILINE,
)
_FENCE = re.compile(
    r"^(?P<indent>[ \t]*)(?P<mark>`{3,}|:{3,})\{(?P<name>include|literalinclude)\}[ \t]+(?P<path>\S+)[ \t]*$"
    r"(?P<options>(?:\n[ \t]*:[\w-]+:.*$)*)\n[ \t]*(?P=mark)[ \t]*$",
    re.MULTILINE,
)
_PART_OPTION = re.compile(r":([\w-]+):[ \t]*(.*)")
_SELECTS = frozenset(
    [
        *("start-line", "end-line", "start-after", "end-before", "literal", "code", "start-at", "end-at", "pyobject"),
        *("diff", "lines", "prepend", "append", "dedent"),
    ]
)
_COMMENT = re.compile(r"^(?:%.*|\+\+\+.*)$\n?", re.MULTILINE)
_PART_MARKDOWN = frozenset([".md", ".markdown"])


def references(text: str) -> tuple[str, ...]:
    if "include" not in text:
        return ()
    found = (match for pattern in (_DIRECTIVE, _FENCE) for match in pattern.finditer(text))
    return tuple(dict.fromkeys(match["path"] for match in found if _takes_all(match)))


def _takes_all(match: re.Match[str]) -> bool:
    return not any(name in _SELECTS for name, _ in _PART_OPTION.findall(match["options"]))


def inclusion(source: Path, *, within: Path, glances: Glances) -> Inclusion:
    def find(reference: str, file: Path) -> Path:
        return source / reference.lstrip("/") if reference.startswith("/") else file.parent / reference

    return Inclusion(within, glances, find, _insert)


def _insert(text: str, load: Load) -> str:
    def shown(match: re.Match[str]) -> str:
        content = load(match["path"]) if _takes_all(match) else None
        if content is None:
            return match[0]
        if match["name"] == "literalinclude":
            content = _as_code(content, match)
        return "\n".join(match["indent"] + line if line else line for line in content.strip("\n").split("\n")) + "\n"

    return _FENCE.sub(shown, _DIRECTIVE.sub(shown, text))


def _as_code(content: str, match: re.Match[str]) -> str:
    language = dict(_PART_OPTION.findall(match["options"])).get("language", "") or _language(match["path"])
    if "mark" in match.groupdict():
        fence = "`" * 8
        return f"{fence}{language}\n{content.rstrip()}\n{fence}"
    lines = ["   " + line if line else line for line in content.rstrip().split("\n")]
    return "\n".join([f".. code-block:: {language or 'text'}", "", *lines])


def _language(path: str) -> str:
    return {"py": "python", "js": "javascript", "sh": "bash", "rs": "rust"}.get(
        ending := path.rpartition(".")[2], ending
    )


def completed(text: str, file: Path, definitions: str) -> str:
    """The text with what the configuration adds, or without what only MyST sees."""
    if file.suffix.lower() in _PART_MARKDOWN:
        return includes.changed_outside(text, lambda piece: _COMMENT.sub("", piece))
    return f"{text}\n\n{definitions}\n" if definitions and "|" in text else text
