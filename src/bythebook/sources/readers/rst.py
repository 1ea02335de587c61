"""reStructuredText. The directives and roles of Sphinx and its extensions are read for their text."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.frontend import get_default_settings
from docutils.parsers.rst import Directive, Parser, directives, roles
from docutils.parsers.rst.languages import en
from docutils.utils import new_document

from bythebook.sources import BlockKind, Unreadable
from bythebook.sources.document import DocumentWriter, ParsedDocument, format_role, mark_code

MOST_REPLACEMENTS = 20_000
MAX_LENGTH = 2_000_000
_OVERLONG_WORD = re.compile(r"\S{2000}")

_WORDS = json.loads(Path(__file__).with_suffix(".json").read_bytes())
_SAFE_SETTINGS: dict[str, Any] = _WORDS["safe_settings"]


def read(text: str) -> ParsedDocument:
    """The document with the section ids of Sphinx. Of an unknown directive or role, the text is kept."""
    document = _parse(text)
    walker = _TreeWalker(document, has_reliable_ids=not may_take_auto_ids(text))
    walker.walk(document)
    parts = walker.writer.finish()
    return ParsedDocument(next((part.text for part in parts if part.kind is BlockKind.HEADING), ""), parts)


def _parse(text: str) -> nodes.document:
    # docutils searches every word for URLs, which takes quadratic time in the length of the word.
    if len(text) > MAX_LENGTH or _OVERLONG_WORD.search(text):
        raise Unreadable(
            f"it has over {MAX_LENGTH // 1_000_000} MB, or an extremely long word; take out what is not text"
        )
    settings = get_default_settings(Parser)
    for name, value in _SAFE_SETTINGS.items():
        setattr(settings, name, value)
    document = new_document("page", settings)
    # docutils keeps its roles in module globals: a process parses one document at a time.
    with register_unknown_names(text):
        Parser().parse(text, document)
    return document


class _TreeWalker:
    """Walks over a document tree once and writes its parts."""

    def __init__(self, document: nodes.document, *, has_reliable_ids: bool) -> None:
        self.writer = DocumentWriter()
        self._has_reliable_ids = has_reliable_ids
        self._level = 0
        self._replaced = 0
        self._replacements = {
            name: definition
            for definition in document.findall(nodes.substitution_definition)
            for name in definition["names"]
        }

    def walk(self, node: nodes.Node) -> None:
        handler = _HANDLERS.get(type(node).__name__)
        if handler:
            handler(self, node)
        elif isinstance(node, nodes.TextElement):
            self.writer.paragraph(self._text(node))
        else:
            self._walk_child_nodes(node)

    def _walk_child_nodes(self, node: nodes.Node) -> None:
        for child in node.children:
            self.walk(child)

    def write_section(self, node: nodes.Node) -> None:
        self._level += 1
        self._walk_child_nodes(node)
        self._level -= 1

    def write_title(self, node: nodes.Node) -> None:
        if isinstance(node.parent, nodes.section):
            anchor = _find_anchor(node.parent, has_reliable_ids=self._has_reliable_ids)
            self.writer.heading(self._text(node), level=min(self._level, 6), anchor=anchor)
        else:
            self.writer.paragraph(self._text(node))

    def write_code(self, node: nodes.Node) -> None:
        classes = [name for name in node["classes"] if name != "code"] if isinstance(node, nodes.Element) else []
        self.writer.code(node.astext(), language=classes[0] if classes else "")

    def write_admonition(self, node: nodes.Node) -> None:
        self.writer.paragraph(type(node).__name__.capitalize())
        self._walk_child_nodes(node)

    def write_list(self, node: nodes.Node) -> None:
        number = int(node.get("start", 1)) if isinstance(node, nodes.Element) else 1
        for position, item in enumerate(node.children, start=number):
            self.writer.open_item(f"{position}." if isinstance(node, nodes.enumerated_list) else "-")
            self._walk_child_nodes(item)
            self.writer.close_item()
        self.writer.close_list()

    def write_fields(self, node: nodes.Node) -> None:
        """The fields above the first title are metadata of the page, except for those about its author."""
        shown = node.children
        if isinstance(node.parent, nodes.document) and not any(
            isinstance(before, nodes.section | nodes.Body) and not isinstance(before, nodes.Invisible)
            for before in node.parent.children[: node.parent.index(node)]
        ):
            shown = [field for field in shown if field.children[0].astext().lower() in _BIBLIOGRAPHIC_FIELDS]
        for field in shown:
            self.write_field(field)

    def write_field(self, node: nodes.Node) -> None:
        name, *body = node.children
        self.writer.paragraph(f"{name.astext()}: " + " ".join(self._text(child) for child in body))

    def write_lines(self, node: nodes.Node) -> None:
        self.writer.paragraph("\n".join(self._text(line) for line in node.findall(nodes.line)))

    def write_table(self, node: nodes.Node) -> None:
        for title in node.findall(nodes.title):
            self.writer.paragraph(self._text(title))
        self.writer.table([[self._text(cell) for cell in row.children] for row in node.findall(nodes.row)])

    def ignore(self, node: nodes.Node) -> None:
        """The node is not visible."""

    def _text(self, node: nodes.Node) -> str:
        return "".join(self._pieces(node, 0))

    def _pieces(self, node: nodes.Node, depth: int) -> Iterator[str]:
        if isinstance(node, nodes.Text):
            yield node.astext().replace("\n", " ")
        elif isinstance(node, nodes.literal):
            yield mark_code(node.astext().replace("\n", " "))
        elif isinstance(node, nodes.substitution_reference) and depth < 20:
            self._replaced += 1
            if self._replaced > MOST_REPLACEMENTS:
                raise Unreadable(f"it has over {MOST_REPLACEMENTS:,} substitutions, some inside of others")
            definition = self._replacements.get(node.get("refname", ""))
            for child in (definition or node).children:
                yield from self._pieces(child, depth + 1)
        elif type(node).__name__ not in _INVISIBLE:
            for child in node.children:
                yield from self._pieces(child, depth)
                if isinstance(child, nodes.paragraph | nodes.list_item):
                    yield " "


def _find_anchor(section: nodes.section, *, has_reliable_ids: bool) -> str:
    """The id of a section. An automatic id such as `id3` is only right if all elements that consume numbers are known.

    Otherwise, the label before the section is used, or no id at all.
    """
    anchor = str(next(iter(section["ids"]), ""))
    if has_reliable_ids or not _AUTO_ID.fullmatch(anchor):
        return anchor
    place = section.parent.index(section)
    before = section.parent.children[place - 1] if place else None
    return str(next(iter(before["ids"]), "")) if isinstance(before, nodes.target) else ""


_AUTO_ID = re.compile(r"id[0-9]+")
_INVISIBLE = frozenset(
    ["comment", "footnote_reference", "image", "pending", "raw", "substitution_definition", "system_message", "label"]
)
_BIBLIOGRAPHIC_FIELDS = frozenset("author authors organization contact version status date copyright abstract".split())
_ADMONITIONS = ["attention", "caution", "danger", "error", "hint", "important", "note", "tip", "warning"]
_HANDLERS: dict[str, Callable[[_TreeWalker, nodes.Node], None]] = {
    **dict.fromkeys(_INVISIBLE, _TreeWalker.ignore),
    **dict.fromkeys(_ADMONITIONS, _TreeWalker.write_admonition),
    "target": _TreeWalker.ignore,
    "section": _TreeWalker.write_section,
    "title": _TreeWalker.write_title,
    **dict.fromkeys(["literal_block", "doctest_block", "math_block"], _TreeWalker.write_code),
    **dict.fromkeys(["bullet_list", "enumerated_list"], _TreeWalker.write_list),
    "field_list": _TreeWalker.write_fields,
    "field": _TreeWalker.write_field,
    "option_list_item": _TreeWalker.write_field,
    "line_block": _TreeWalker.write_lines,
    "table": _TreeWalker.write_table,
}


_DIRECTIVE = re.compile(r"\.\.[ \t]+(?:\|[^|\n]+\|[ \t]+)?([\w.+:-]+?)[ \t]?::(?=\s|$)")
_ROLE = re.compile(r":([A-Za-z][\w.+:-]*):`|`:([A-Za-z][\w.+:-]*):")

_INVISIBLE_DIRECTIVES, _INVISIBLE_ARGUMENTS, _CODE_DIRECTIVES, _TAKE_NO_AUTO_ID = (
    frozenset(" ".join(_WORDS[name]).split())
    for name in ("invisible_directives", "invisible_arguments", "code_directives", "take_no_auto_id")
)
_VERSION_LABELS = {
    "versionadded": "Added in version",
    "versionchanged": "Changed in version",
    "versionremoved": "Removed in version",
    "deprecated": "Deprecated since version",
    "deprecated-removed": "Deprecated since version",
}


def may_take_auto_ids(text: str) -> bool:
    """Whether a page has Sphinx directives that may consume the numbers of automatic section ids."""
    names = {found.lower() for found in _DIRECTIVE.findall(text)}
    return any(name not in en.directives and name not in _TAKE_NO_AUTO_ID for name in names)


@contextmanager
def register_unknown_names(text: str) -> Iterator[None]:
    """Register the unknown directives and roles of `text` with docutils while the block runs."""
    registries: tuple[dict[str, Any], ...] = (directives._directives, roles._roles)  # type: ignore[attr-defined]
    saved = [dict(registry) for registry in registries]
    for name in {found.lower() for found in _DIRECTIVE.findall(text)}:
        if name in _CODE_DIRECTIVES or name not in en.directives:
            directives.register_directive(name, UnknownDirective)
    for name in {(front or behind).lower() for front, behind in _ROLE.findall(text)}:
        if name not in en.roles:
            roles.register_local_role(name, _unknown_role)
    try:
        yield
    finally:
        for registry, content in zip(registries, saved, strict=True):
            registry.clear()
            registry.update(content)


class _AnyOption(dict[str, Any]):
    """Accepts all options, so that unknown ones are not read as text."""

    def __missing__(self, key: str) -> Any:
        return directives.unchanged


class UnknownDirective(Directive):
    """A directive without an implementation here: its argument and content are text, its options are not."""

    optional_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec: ClassVar[dict[str, Any]] = _AnyOption(name=directives.unchanged)

    def run(self) -> Sequence[nodes.Node]:
        if self.name in _INVISIBLE_DIRECTIVES or self.name.startswith("auto"):
            return []
        if self.name in _CODE_DIRECTIVES:
            return self._code()
        return [*([] if self.name in _INVISIBLE_ARGUMENTS else self._argument()), *self._parse_content()]

    def _code(self) -> list[nodes.Node]:
        caption = self.options.get("caption")
        lines, language = list(self.content), "".join(self.arguments)
        if self.name == "code-tab":
            language, _, caption = language.partition(" ")
            caption = caption or language
        if not self.name.startswith(("code", "source")):
            # Only these have a language argument. The code of others may begin on the line of the directive.
            lines, language = [*language.split("\n"), *lines], ""
        code = nodes.literal_block(self.block_text, "\n".join(lines), classes=[language] if language else [])
        return [*self._paragraph(caption), code] if caption else [code]

    def _argument(self) -> list[nodes.Node]:
        if not self.arguments:
            return []
        words = self.arguments[0]
        if self.name in _VERSION_LABELS:
            version, _, rest = words.partition("\n" if "\n" in words else " ")
            words = f"{_VERSION_LABELS[self.name]} {version}" + (f": {rest}" if rest else "")
        return self._paragraph(words)

    def _paragraph(self, words: str) -> list[nodes.Node]:
        children, messages = self.state.inline_text(words, self.lineno)
        return [nodes.paragraph(words, "", *children), *messages]

    def _parse_content(self) -> list[nodes.Node]:
        holder = nodes.container()
        self.state.nested_parse(self.content, self.content_offset, holder, match_titles=True)
        return list(holder.children)


def _unknown_role(name: str, rawtext: str, text: str, *__: Any, **___: Any) -> tuple[list[Any], list[Any]]:
    """A role without an implementation here."""
    kind = nodes.literal if name.lower().rpartition(":")[2] in _CODE_ROLES else nodes.inline
    return [kind(rawtext, format_role(name, nodes.unescape(text)))], []


_CODE_ROLES = frozenset(
    "attr class const data envvar exc file func kbd meth mod obj option program command samp type".split()
)
