"""reStructuredText, with what Sphinx adds to it read as text.

Sphinx's directives and roles, and anyone else's, as docutils can read them: for their text.
"""

from __future__ import annotations

import re
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from docutils import nodes
from docutils.frontend import get_default_settings
from docutils.parsers.rst import Directive, Parser, directives, roles
from docutils.parsers.rst.languages import en
from docutils.utils import new_document

from bythebook.sources import Kind, Unreadable
from bythebook.sources.document import Draft, Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


LARGEST = 2_000_000
_ENDLESS_WORD = re.compile(r"\S{2000}")

# docutils keeps its roles, and the default one, in its module: two documents at once would see each other's.
_ONE_AT_A_TIME = threading.Lock()

_SAFE = {
    "file_insertion_enabled": False,
    "raw_enabled": False,
    "_disable_config": True,
    "halt_level": 6,
    "report_level": 6,
    "warning_stream": False,
    "syntax_highlight": "none",
    "smart_quotes": False,
    "auto_id_prefix": "id",
    "line_length_limit": 1_000_000,
    "traceback": True,
}


def read(text: str) -> Draft:
    """The document, with section ids as Sphinx gives them. A directive or role nobody knows keeps its text."""
    document = _parsed(text)
    walk = _Walk(document, counted=not may_take_numbers(text))
    walk.over(document)
    parts = walk.writer.finish()
    return Draft(next((part.text for part in parts if part.kind is Kind.HEADING), ""), parts)


def _parsed(text: str) -> nodes.document:
    # docutils looks for addresses in every word, in time that grows with the square of the word.
    if len(text) > LARGEST or _ENDLESS_WORD.search(text):
        raise Unreadable(f"it has over {LARGEST // 1_000_000} MB, or a word without end; take out what is not text")
    settings = get_default_settings(Parser)
    for name, value in _SAFE.items():
        setattr(settings, name, value)
    document = new_document("page", settings)
    with _ONE_AT_A_TIME, introduced(text):
        Parser().parse(text, document)
    return document


class _Walk:
    """One pass over a document tree."""

    def __init__(self, document: nodes.document, *, counted: bool) -> None:
        self.writer = Writer()
        self._counted = counted
        self._level = 0
        self._replacements = {
            name: definition
            for definition in document.findall(nodes.substitution_definition)
            for name in definition["names"]
        }

    def over(self, node: nodes.Node) -> None:
        handler = _HANDLERS.get(type(node).__name__)
        if handler:
            handler(self, node)
        elif isinstance(node, nodes.TextElement):
            self.writer.paragraph(self._text(node))
        else:
            self._children(node)

    def _children(self, node: nodes.Node) -> None:
        for child in node.children:
            self.over(child)

    def section(self, node: nodes.Node) -> None:
        self._level += 1
        self._children(node)
        self._level -= 1

    def title(self, node: nodes.Node) -> None:
        if isinstance(node.parent, nodes.section):
            anchor = _anchor(node.parent, counted=self._counted)
            self.writer.heading(self._text(node), level=min(self._level, 6), anchor=anchor)
        else:
            self.writer.paragraph(self._text(node))

    def code(self, node: nodes.Node) -> None:
        classes = [name for name in node["classes"] if name != "code"] if isinstance(node, nodes.Element) else []
        self.writer.code(node.astext(), language=classes[0] if classes else "")

    def admonition(self, node: nodes.Node) -> None:
        self.writer.paragraph(type(node).__name__.capitalize())
        self._children(node)

    def items(self, node: nodes.Node) -> None:
        number = int(node.get("start", 1)) if isinstance(node, nodes.Element) else 1
        for position, item in enumerate(node.children, start=number):
            self.writer.open_item(f"{position}." if isinstance(node, nodes.enumerated_list) else "-")
            self._children(item)
            self.writer.close_item()
        self.writer.close_list()

    def field(self, node: nodes.Node) -> None:
        name, *body = node.children
        self.writer.paragraph(f"{name.astext()}: " + " ".join(self._text(child) for child in body))

    def lines(self, node: nodes.Node) -> None:
        self.writer.paragraph("\n".join(self._text(line) for line in node.findall(nodes.line)))

    def table(self, node: nodes.Node) -> None:
        for title in node.findall(nodes.title):
            self.writer.paragraph(self._text(title))
        self.writer.table([[self._text(cell) for cell in row.children] for row in node.findall(nodes.row)])

    def nothing(self, node: nodes.Node) -> None:
        """Seen by nobody."""

    def _text(self, node: nodes.Node) -> str:
        return "".join(self._pieces(node, 0))

    def _pieces(self, node: nodes.Node, depth: int) -> Iterator[str]:
        if isinstance(node, nodes.Text):
            yield node.astext().replace("\n", " ")
        elif isinstance(node, nodes.substitution_reference) and depth < 20:
            definition = self._replacements.get(node.get("refname", ""))
            for child in (definition or node).children:
                yield from self._pieces(child, depth + 1)
        elif type(node).__name__ not in _UNSEEN:
            for child in node.children:
                yield from self._pieces(child, depth)
                if isinstance(child, nodes.paragraph | nodes.list_item):
                    yield " "


def _anchor(section: nodes.section, *, counted: bool) -> str:
    """The id of a section. One that is only a number is known where all that takes numbers is `counted`.

    Where it is not, a label in front of the section is as good; and no id is better than a wrong one.
    """
    anchor = str(next(iter(section["ids"]), ""))
    if counted or not _NUMBERED.fullmatch(anchor):
        return anchor
    place = section.parent.index(section)
    before = section.parent.children[place - 1] if place else None
    return str(next(iter(before["ids"]), "")) if isinstance(before, nodes.target) else ""


_NUMBERED = re.compile(r"id[0-9]+")
_UNSEEN = frozenset(
    ["comment", "footnote_reference", "image", "pending", "raw", "substitution_definition", "system_message", "label"]
)
_ADMONITIONS = ["attention", "caution", "danger", "error", "hint", "important", "note", "tip", "warning"]
_HANDLERS: dict[str, Callable[[_Walk, nodes.Node], None]] = {
    **dict.fromkeys(_UNSEEN, _Walk.nothing),
    **dict.fromkeys(_ADMONITIONS, _Walk.admonition),
    "target": _Walk.nothing,
    "section": _Walk.section,
    "title": _Walk.title,
    "literal_block": _Walk.code,
    "doctest_block": _Walk.code,
    "math_block": _Walk.code,
    "bullet_list": _Walk.items,
    "enumerated_list": _Walk.items,
    "field": _Walk.field,
    "option_list_item": _Walk.field,
    "line_block": _Walk.lines,
    "table": _Walk.table,
}


_DIRECTIVE = re.compile(r"\.\.[ \t]+(?:\|[^|\n]+\|[ \t]+)?([\w.+:-]+?)[ \t]?::(?=\s|$)")
_ROLE = re.compile(r":([A-Za-z][\w.+:-]*):`|`:([A-Za-z][\w.+:-]*):")
_TITLED = re.compile(r"([^<]*\S)\s*<[^<>]*>")

_NOT_TEXT = frozenset(
    [
        *(
            "toctree",
            "index",
            "highlight",
            "currentmodule",
            "module",
            "py:module",
            "py:currentmodule",
            "literalinclude",
        ),
        *(
            "tabularcolumns",
            "autosummary",
            "plot",
            "graphviz",
            "inheritance-diagram",
            "default-domain",
            "mermaid",
            "uml",
        ),
        *("sectionauthor", "codeauthor", "tags", "program", "click", "argparse", "jupyter-execute"),
    ]
)
_CODE = frozenset(
    [
        *("code", "code-block", "sourcecode", "math", "doctest", "testcode", "testsetup", "testoutput", "testcleanup"),
        *("prompt", "productionlist", "ipython", "console"),
    ]
)
_VERSIONS = {
    "versionadded": "Added in version",
    "versionchanged": "Changed in version",
    "versionremoved": "Removed in version",
    "deprecated": "Deprecated since version",
    "deprecated-removed": "Deprecated since version",
}


_WITHOUT_NUMBERS = frozenset(
    [
        *("toctree", "index", "highlight", "currentmodule", "module", "literalinclude", "only", "seealso", "rubric"),
        *("code-block", "sourcecode", "glossary", "hlist", "centered", "tab", "tabs", "group-tab", "todo"),
        *_VERSIONS,
    ]
)


def may_take_numbers(text: str) -> bool:
    """Whether a page has directives that only Sphinx knows, and that may take the numbers sections are known by."""
    names = {found.lower() for found in _DIRECTIVE.findall(text)}
    return any(name not in en.directives and name not in _WITHOUT_NUMBERS for name in names)


@contextmanager
def introduced(text: str) -> Iterator[None]:
    """For a while, docutils knows every directive and role that `text` uses, and no other page's."""
    registries: tuple[dict[str, Any], ...] = (directives._directives, roles._roles)  # type: ignore[attr-defined]
    before = [dict(registry) for registry in registries]
    for name in {found.lower() for found in _DIRECTIVE.findall(text)}:
        if name in _CODE or name not in en.directives:
            directives.register_directive(name, TextOf)
    for name in {(front or behind).lower() for front, behind in _ROLE.findall(text)}:
        if name not in en.roles:
            roles.register_local_role(name, _role)
    try:
        yield
    finally:
        for registry, content in zip(registries, before, strict=True):
            registry.clear()
            registry.update(content)


class _AnyOption(dict[str, Any]):
    """Options nobody here knows are read, so that they are not taken for text."""

    def __missing__(self, key: str) -> Any:
        return directives.unchanged


class TextOf(Directive):
    """A directive nobody here knows: its argument and its content are text, its options are not."""

    optional_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec: ClassVar[dict[str, Any]] = _AnyOption(name=directives.unchanged)

    def run(self) -> Sequence[nodes.Node]:
        if self.name in _NOT_TEXT or self.name.startswith("auto"):
            return []
        if self.name in _CODE:
            return self._code()
        return [*([] if self.name == "only" else self._argument()), *self._children()]

    def _code(self) -> list[nodes.Node]:
        caption = self.options.get("caption")
        lines, language = list(self.content), "".join(self.arguments)
        if not self.name.startswith(("code", "source")):
            # Only these name a language; the others may begin on the directive's own line.
            lines, language = [*language.split("\n"), *lines], ""
        code = nodes.literal_block(self.block_text, "\n".join(lines), classes=[language] if language else [])
        return [nodes.paragraph(caption, caption), code] if caption else [code]

    def _argument(self) -> list[nodes.Node]:
        if not self.arguments:
            return []
        words = self.arguments[0]
        if self.name in _VERSIONS:
            version, _, rest = words.partition("\n" if "\n" in words else " ")
            words = f"{_VERSIONS[self.name]} {version}" + (f": {rest}" if rest else "")
        children, messages = self.state.inline_text(words, self.lineno)
        return [nodes.paragraph(words, "", *children), *messages]

    def _children(self) -> list[nodes.Node]:
        holder = nodes.container()
        self.state.nested_parse(self.content, self.content_offset, holder, match_titles=True)
        return list(holder.children)


def _role(_: str, rawtext: str, text: str, *__: Any, **___: Any) -> tuple[list[Any], list[Any]]:
    """A role nobody here knows: `title <target>` is its title, `~a.b.c` is `c`."""
    text = nodes.unescape(text)
    titled = _TITLED.fullmatch(text)
    words = titled[1] if titled else text.lstrip("!")
    if words.startswith("~"):
        words = words[1:].rsplit(".", 1)[-1]
    return [nodes.inline(rawtext, words)], []
