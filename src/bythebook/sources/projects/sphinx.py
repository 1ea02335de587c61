"""Sphinx projects: the literals of `conf.py` (parsed, never executed), the toctrees, and included files."""

import ast
import posixpath
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from bythebook.errors import ConfigurationError
from bythebook.sources import SkippedPage
from bythebook.sources.folder import module_from_path, title_from_name, walk
from bythebook.sources.projects import NonContent, Outline, ProjectOptions, ProjectPage, Style, exclusions, includes
from bythebook.sources.projects.metadata import (
    DocumentMetadata,
    MetadataCache,
    find_markdown_title,
    find_rst_title,
    strip_markup,
)
from bythebook.sources.projects.navigation import NavEntry, NavItem, NavPosition, NavSection, arrange_documents
from bythebook.sources.projects.yaml_files import read_optional_mapping

_RST_TOCTREE = re.compile(
    r"^(?P<indent>[ \t]*)\.\.[ \t]+toctree::[ \t]*\n(?P<body>(?:(?P=indent)[ \t]+\S.*(?:\n|\Z)|[ \t]*\n)*)",
    re.MULTILINE,
)
_MYST_TOCTREE = re.compile(
    r"^[ \t]*(?P<mark>`{3,}|:{3,}|~{3,})\{toctree\}[ \t]*\n(?P<body>.*?)^[ \t]*(?P=mark)[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
_OPTION = re.compile(r":?(?P<name>[\w-]+):(?:[ \t]+(?P<value>.*))?")
_TITLED = re.compile(r".*\S\s+<(?P<target>[^<>]+)>")
_GLOB = re.compile(r"[*?\[]")
_MARKDOWN_SUFFIXES = frozenset([".md", ".markdown"])
_MAX_DEPTH = 30


@dataclass(frozen=True, slots=True)
class Toctree:
    """A `toctree` directive."""

    caption: str = ""
    glob: bool = False
    reversed: bool = False
    targets: tuple[str, ...] = ()


def parse_metadata(fields: dict[str, Any], text: str, file: Path) -> DocumentMetadata:
    markdown = file.suffix.lower() in _MARKDOWN_SUFFIXES
    trees = (_MYST_TOCTREE if markdown else _RST_TOCTREE).finditer(text) if "toctree" in text else iter(())
    return DocumentMetadata(
        fields,
        find_markdown_title(text) if markdown else find_rst_title(text),
        find_references(text),
        tuple(_parse_toctree(match["body"]) for match in trees),
        tuple(_find_labels(text)),
    )


_LABEL = re.compile(r"^(?:\.\. _(?P<rst>[^:`\n]+|`[^`\n]+`):|\((?P<myst>[\w.:-]+)\)=)[ \t]*$", re.MULTILINE)
_HEADING = re.compile(
    r"\s*(?:(?:\.\. _[^\n]*:|\([\w.:-]+\)=)[ \t]*\n\s*)*"  # further labels
    r"(?:#+[ \t]+(?P<atx>\S[^\n]*)|(?:([^\w\s])\2+[ \t]*\n)?(?P<title>\S[^\n]*)\n([^\w\s])\4+[ \t]*(?:\n|$))"
)


def _find_labels(text: str) -> Iterator[tuple[str, str]]:
    for label in _LABEL.finditer(text):
        heading = _HEADING.match(text, label.end())
        if heading:
            yield (label["rst"] or label["myst"]).strip("`").lower(), strip_markup(heading["atx"] or heading["title"])


def _parse_toctree(body: str) -> Toctree:
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
    return Toctree(options.get("caption", ""), "glob" in options, "reversed" in options, tuple(targets))


def read_outline(
    root: Path, config_file: Path, *, within: Path, options: ProjectOptions, metadata: MetadataCache
) -> Outline:
    """The documents that a Sphinx project publishes, in the order of its toctrees."""
    config = read_config(config_file)
    source = config_file.parent
    skipped: list[SkippedPage] = []
    docs = _Docs(
        source, config, metadata, _is_dirhtml(root, within, options), dict(_list_files(source, config, skipped))
    )
    pages = docs.pages()
    if source != root:
        pages.extend(exclusions.list_repository_files(root, published={page.file.resolve() for page in pages}))
    included = make_include_resolver(source, within=within, metadata=metadata)
    references = _References(source, docs.titles())
    return Outline(
        config.base_url,
        "/",
        tuple(pages),
        skipped=tuple(skipped),
        prepare=lambda text, file: references.insert_titles(
            finish_text(included.prepare(text, file), file, config.definitions), file
        ),
        included_files=included.included_files,
        definitions=f"{config.definitions}{sorted(references.titles.items())}",
    )


def _is_dirhtml(root: Path, within: Path, options: ProjectOptions) -> bool:
    """Whether pages are published as folders, by the options or by the Read the Docs configuration."""
    if options.builder != "auto":
        return options.builder == "dirhtml"
    for folder in (root, *root.parents):
        for name in (".readthedocs.yaml", ".readthedocs.yml"):
            read_the_docs = (read_optional_mapping(folder / name) or {}).get("sphinx")
            if isinstance(read_the_docs, dict):
                return read_the_docs.get("builder") == "dirhtml"
        if folder == within:
            break
    return False


def _list_files(
    source: Path, config: "SphinxConfig", skipped: list[SkippedPage]
) -> Iterator[tuple[str, PurePosixPath]]:
    """The documents by name. The name is the path without the suffix."""
    for path in walk(source, style=Style.SPHINX):
        if isinstance(path, SkippedPage):
            skipped.append(path)
            continue
        suffix = next((suffix for suffix in config.suffixes if path.name.endswith(suffix)), "")
        if (
            suffix
            and exclusions.matches_glob(str(path), config.included)
            and not exclusions.excludes(str(path), config.excluded)
        ):
            yield str(path).removesuffix(suffix), path


@dataclass(frozen=True, slots=True)
class _Docs:
    source: Path
    config: "SphinxConfig"
    metadata: MetadataCache
    dirhtml: bool
    files: dict[str, PurePosixPath]
    _visited: set[str] = field(default_factory=set)

    def pages(self) -> list[ProjectPage]:
        items = [NavEntry(self.config.root_doc), *self._below(self.config.root_doc, 0)]
        order = arrange_documents(items, {name: module_from_path(path) for name, path in self.files.items()})
        return [self._place(at) for at in order]

    def titles(self) -> dict[str, str]:
        """What references show: the title of each document by its path, and the heading after each label."""
        known = [self.metadata.get(self.source / file) for file in self.files.values()]
        labels = {name: heading for document in known for name, heading in document.labels}
        return labels | {f"/{name}": document.title for name, document in zip(self.files, known, strict=True)}

    def _place(self, at: NavPosition) -> ProjectPage:
        file = self.source / self.files[at.document]
        changes = exclusions.is_changelog(PurePosixPath(at.document).name)
        return ProjectPage(
            file,
            self._route(at.document),
            at.document,
            module=at.module,
            category=NonContent.CHANGELOG if changes else None,
            reason="a list of changes" if changes else "",
        )

    def _route(self, document: str) -> str:
        if not self.dirhtml:
            return f"/{document}{self.config.file_suffix}"
        folder, _, name = document.rpartition("/")
        return f"/{folder}/".replace("//", "/") if name == "index" else f"/{document}/"

    def _below(self, document: str, depth: int) -> Iterator[NavItem]:
        """The navigation items that the toctrees of a document define."""
        if document in self._visited or document not in self.files or depth > _MAX_DEPTH:
            return
        self._visited.add(document)
        for tree in self.metadata.get(self.source / self.files[document]).toctrees:
            items = tuple(self._item(name, depth) for name in self._targets(tree, document))
            if tree.caption:
                yield NavSection(tree.caption, items)
            else:
                yield from items

    def _item(self, document: str, depth: int) -> NavItem:
        below = tuple(self._below(document, depth + 1))
        own = NavEntry(document)
        return NavSection(self._title(document), (own, *below)) if below else own

    def _title(self, document: str) -> str:
        title = self.metadata.get(self.source / self.files[document]).title
        return title or title_from_name(PurePosixPath(document).name)

    def _targets(self, tree: Toctree, document: str) -> list[str]:
        """The names of the documents in a toctree."""
        found: dict[str, None] = {}
        for target in tree.targets:
            name = _resolve_target(target, document)
            for suffix in self.config.suffixes:
                name = name.removesuffix(suffix)
            if tree.glob and _GLOB.search(name):
                found.update(
                    dict.fromkeys(sorted(every for every in self.files if exclusions.matches_glob(every, [name])))
                )
            elif name in self.files:
                found[name] = None
        found.pop(document, None)
        return list(found)[::-1] if tree.reversed else list(found)


def _resolve_target(target: str, document: str) -> str:
    return posixpath.normpath(posixpath.join("/", posixpath.dirname(document), target)).lstrip("/")


_REFERENCE = re.compile(
    r"(?<!`)(?P<role>:(?:std:)?(?:any|doc|ref):|\{(?:std:)?(?:any|doc|ref)\})`(?P<target>[^`<>\n]+)`"
    r"|(?<!!)\[\](?=\((?P<link>[^()\s]+)\))"
)


@dataclass(frozen=True, slots=True)
class _References:
    """The references that show the title of what they lead to."""

    source: Path
    titles: dict[str, str]

    def insert_titles(self, text: str, file: Path) -> str:
        """The text with the title written into each reference that has no words of its own."""
        if not _REFERENCE.search(text):
            return text
        document = file.relative_to(self.source).as_posix() if file.is_relative_to(self.source) else file.name

        def replacement(match: re.Match[str]) -> str:
            target = (match["target"] or match["link"]).strip()
            path = "/" + _resolve_target(re.sub(r"\.(?:md|rst)$", "", target.partition("#")[0]), document)
            by_label = "" if match["role"] and "doc" in match["role"] else target.removeprefix("#").lower()
            title = self.titles.get(by_label) or self.titles.get(path) or ""
            if not title:
                return match[0]
            return f"[{title}]" if match["link"] else f"{match['role']}`{title} <{target}>`"

        if file.suffix.lower() in _MARKDOWN_SUFFIXES:
            return includes.replace_outside_code(text, lambda part: _REFERENCE.sub(replacement, part))
        return _REFERENCE.sub(replacement, text)


_MAX_LENGTH = 1_000_000


@dataclass(frozen=True, slots=True)
class SphinxConfig:
    """The configuration of a project."""

    root_doc: str
    suffixes: tuple[str, ...]
    included: tuple[str, ...]
    excluded: tuple[str, ...]
    base_url: str
    file_suffix: str
    definitions: str
    """Text that applies to every document: the prolog, the epilog, and the substitutions of the version."""


def read_config(file: Path) -> SphinxConfig:
    """Read a configuration. Values that are not literals get the defaults of Sphinx."""
    values = _read_assignments(file)
    extensions = _words(values.get("extensions"))
    suffixes = _words(values.get("source_suffix")) or (".rst",)
    if any(name.startswith("myst") for name in extensions) and ".md" not in suffixes:
        suffixes = (*suffixes, ".md")
    return SphinxConfig(
        root_doc=_text(values.get("root_doc")) or _text(values.get("master_doc")) or "index",
        suffixes=suffixes,
        included=_words(values.get("include_patterns")) or ("**",),
        excluded=(*_words(values.get("exclude_patterns")), *_words(values.get("templates_path"))),
        base_url=_text(values.get("html_baseurl")).rstrip("/"),
        file_suffix=_text(values.get("html_link_suffix")) or _text(values.get("html_file_suffix")) or ".html",
        definitions="\n\n".join(_definitions(values)),
    )


def _definitions(values: dict[str, Any]) -> Iterator[str]:
    yield from (text for name in ("rst_prolog", "rst_epilog") if (text := _text(values.get(name))))
    for name in ("version", "release"):
        if value := _text(values.get(name)):
            yield f".. |{name}| replace:: {value}"


def _read_assignments(file: Path) -> dict[str, Any]:
    """The values assigned to names, as far as they are literals."""
    try:
        data = file.read_bytes()
        if len(data) > _MAX_LENGTH:
            raise ValueError("it is too large for a configuration file")
        tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as exc:
        raise ConfigurationError(
            f"{file} cannot be read: {exc}. Correct it, or read the pages as a plain folder."
        ) from exc
    known: dict[str, Any] = {}
    for statement in _statements(tree.body):
        _apply_statement(statement, known)
    return known


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        if isinstance(statement, ast.Try):
            yield from _statements(statement.body)
        else:
            yield statement


def _apply_statement(statement: ast.stmt, known: dict[str, Any]) -> None:
    if isinstance(statement, ast.Assign) and all(isinstance(target, ast.Name) for target in statement.targets):
        value = _evaluate(statement.value, known)
        known.update({target.id: value for target in statement.targets if isinstance(target, ast.Name)})
    elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value:
        known[statement.target.id] = _evaluate(statement.value, known)
    elif isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        name = statement.target.id
        known[name] = _add(known.get(name), _evaluate(statement.value, known))


def _evaluate(node: ast.expr, known: dict[str, Any]) -> Any:
    """The value of an expression made of literals and known names; None for any other expression."""
    match node:
        case ast.Constant():
            return node.value
        case ast.List() | ast.Tuple() | ast.Set():
            return [_evaluate(item, known) for item in node.elts]
        case ast.Dict():
            pairs = zip(node.keys, node.values, strict=True)
            return {str(_evaluate(key, known)): _evaluate(inner, known) for key, inner in pairs if key}
        case ast.Name():
            return known.get(node.id)
        case ast.BinOp(op=ast.Add()):
            return _add(_evaluate(node.left, known), _evaluate(node.right, known))
    return None


def _add(left: Any, right: Any) -> Any:
    texts = isinstance(left, str) and isinstance(right, str)
    lists = isinstance(left, list) and isinstance(right, list)
    return left + right if (texts or lists) and len(left) + len(right) < _MAX_LENGTH else left


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _words(value: Any) -> tuple[str, ...]:
    """A list of strings, from a list, the keys of a dictionary, or a single string."""
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
_INCLUDE_OPTION = re.compile(r":([\w-]+):[ \t]*(.*)")
_OTHER_OPTIONS = frozenset("literal code pyobject diff prepend append".split())
"""Options whose result only Sphinx itself can compute."""
_COMMENT = re.compile(r"^(?:%.*|\+\+\+.*)$\n?", re.MULTILINE)


def find_references(text: str) -> tuple[str, ...]:
    if "include" not in text:
        return ()
    found = (match for pattern in (_DIRECTIVE, _FENCE) for match in pattern.finditer(text))
    return tuple(dict.fromkeys(match["path"] for match in found if _OTHER_OPTIONS.isdisjoint(_options(match))))


def _options(match: re.Match[str]) -> dict[str, str]:
    return {name: value.strip("'\" ") for name, value in _INCLUDE_OPTION.findall(match["options"])}


def _select_part(content: str, options: dict[str, str]) -> str | None:
    """The lines of a file between the numbers or the texts that the options name; None if a text is not in it."""
    numbers = [options.get(name, "") for name in ("start-line", "end-line")]
    first, last = (int(number) if re.fullmatch(r"-?\d+", number) else None for number in numbers)
    content = "".join(content.splitlines(keepends=True)[first:last])
    for name in ("start-after", "start-at", "end-before", "end-at"):
        if marker := options.get(name):
            at = content.find(marker)
            if at < 0:
                return None
            begin, end = content.rfind("\n", 0, at) + 1, content.find("\n", at) + 1 or len(content)
            place = begin if name in ("start-at", "end-before") else end
            content = content[place:] if name.startswith("start") else content[:place]
    if ranges := re.findall(r"(\d+)(-?)(\d*)", options.get("lines", "")):
        lines = content.splitlines(keepends=True)
        parts = (
            lines[int(first) - 1 : int(last or len(lines)) if dash else int(first)] for first, dash, last in ranges
        )
        content = "".join(line for part in parts for line in part)
    return textwrap.dedent(content) if "dedent" in options else content


def make_include_resolver(source: Path, *, within: Path, metadata: MetadataCache) -> includes.IncludeResolver:
    def find(reference: str, file: Path) -> Path:
        return source / reference.lstrip("/") if reference.startswith("/") else file.parent / reference

    return includes.IncludeResolver(within, metadata, find, _insert_includes)


def _insert_includes(text: str, load: includes.Load) -> str:
    def replacement(match: re.Match[str]) -> str:
        options = _options(match)
        content = load(match["path"]) if _OTHER_OPTIONS.isdisjoint(options) else None
        content = None if content is None else _select_part(content, options)
        if content is None:
            return match[0]
        if match["name"] == "literalinclude":
            content = _format_code(content, match)
        return textwrap.indent(content.strip("\n"), match["indent"]) + "\n"

    return _FENCE.sub(replacement, _DIRECTIVE.sub(replacement, text))


def _format_code(content: str, match: re.Match[str]) -> str:
    language = _options(match).get("language", "") or _language(match["path"])
    if "mark" in match.groupdict():
        fence = "`" * 8
        return f"{fence}{language}\n{content.rstrip()}\n{fence}"
    return f".. code-block:: {language or 'text'}\n\n{textwrap.indent(content.rstrip(), '   ')}"


def _language(path: str) -> str:
    return {"py": "python", "js": "javascript", "sh": "bash", "rs": "rust"}.get(
        ending := path.rpartition(".")[2], ending
    )


def finish_text(text: str, file: Path, definitions: str) -> str:
    """Append the definitions of the configuration; remove comments from MyST documents."""
    if file.suffix.lower() in _MARKDOWN_SUFFIXES:
        return includes.replace_outside_code(text, lambda part: _COMMENT.sub("", part))
    return f"{text}\n\n{definitions}\n" if definitions and "|" in text else text
