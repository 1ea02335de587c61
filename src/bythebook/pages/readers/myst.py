"""MyST: the directives and roles of Sphinx, written in Markdown."""

from __future__ import annotations

import re
from dataclasses import dataclass

_DIRECTIVE = re.compile(r"\{(?P<name>[\w:.+-]+)\}[ \t]*(?P<argument>.*)")
_OPTIONS = re.compile(r"---\n(?:[^\n]*\n)*?---(?:\n|$)|(?::[\w-]+:[^\n]*(?:\n|$))+")
_ROLE = re.compile(r"\{[\w:.+-]+\}$")
_TITLED = re.compile(r"([^<]*\S)\s*<[^<>]*>")

_CODE = frozenset(["code", "code-block", "code-cell", "sourcecode"])
_LABELS = frozenset(
    ["attention", "caution", "danger", "error", "hint", "important", "note", "seealso", "tip", "warning"]
)
_TEXT = _LABELS | frozenset(
    [
        *(
            "admonition",
            "dropdown",
            "card",
            "margin",
            "sidebar",
            "topic",
            "tab-item",
            "tab-set",
            "grid",
            "grid-item",
            "grid-item-card",
        ),
        *("versionadded", "versionchanged", "deprecated", "epigraph", "exercise", "solution", "prf:theorem"),
    ]
)
_NOT_TEXT = frozenset(
    ["toctree", "include", "literalinclude", "eval-rst", "image", "figure", "index", "contents", "bibliography"]
)


@dataclass(frozen=True, slots=True)
class Directive:
    """A fenced directive: what its fence would be called, and what is between."""

    name: str
    argument: str
    content: str

    @property
    def is_seen(self) -> bool:
        return self.name not in _NOT_TEXT and not self.name.startswith("auto")

    @property
    def is_text(self) -> bool:
        return self.name in _TEXT

    @property
    def label(self) -> str:
        return self.argument or (self.name.capitalize() if self.name in _LABELS else "")

    @property
    def language(self) -> str:
        """Of a directive that is code; an unknown one is taken for the name of a language, as notebooks write it."""
        return self.argument if self.name in _CODE else self.name


def directive(info: str, content: str) -> Directive | None:
    """The directive that a fence is, if it is one."""
    match = _DIRECTIVE.fullmatch(info)
    if match is None:
        return None
    options = _OPTIONS.match(content)
    return Directive(match["name"], match["argument"], content[options.end() :] if options else content)


def without_role(text: str) -> str:
    """The text before a span of code, without the role that is not seen."""
    return _ROLE.sub("", text)


def words_of_role(code: str) -> str:
    """What a role shows: the title of `title <target>`."""
    titled = _TITLED.fullmatch(code)
    return titled[1] if titled else code
