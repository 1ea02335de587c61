"""Sphinx's directives and roles, and anyone else's, as docutils can read them: for their text."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive, directives, roles
from docutils.parsers.rst.languages import en

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
