"""Lines of an answer that are taken or left whole: code, link definitions, and the sources a model lists at the end."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from bythebook.answers.markers import HEADING

if TYPE_CHECKING:
    from bythebook.answers.markers import Passages

_OPENING = re.compile(r"([ \t]*)(`{3,}|~{3,})(.*)")
_DEFINITION = re.compile(r"[ \t]*\[[^\]\n]+\]:.*")
_SOURCES_SAID = re.compile(r"[\s>*_(]*sources?[\s*_]*:[\s*_]*\S.*", re.IGNORECASE | re.DOTALL)
_ENTRY = re.compile(r"\s*(?:[-*+]\s+|\d{1,3}[.)]\s+|\**\[\^?\d+\]|【\d|https?://)", re.IGNORECASE)
_TELLING = re.compile(r"https?://|\[\^?\d|【\d")
_ANNOUNCING = (
    "source", "reference", "citation", "footnote", "bibliography", "works cited", "further reading", "quellen",
    "fuentes",
)  # fmt: skip
_DEEPEST = 3
"""A fence that is indented further may be read as something else; it is moved to where it is always a fence."""


@dataclass(frozen=True, slots=True)
class Fence:
    """The line that opened a block of code."""

    indent: int
    mark: str

    @classmethod
    def opened_by(cls, line: str) -> Self | None:
        match = _OPENING.match(line.rstrip("\n"))
        if match is None or (match[2][0] == "`" and "`" in match[3]):
            return None
        return cls(len(match[1].expandtabs(4)), match[2])

    def closed_by(self, line: str) -> bool:
        stripped = line.strip()
        return stripped.startswith(self.mark) and not stripped.strip(self.mark[0])

    def placed(self, line: str) -> str:
        """The line where every renderer sees it inside the block: neither too deep nor less deep than its fence."""
        body = line.lstrip(" \t")
        if not body.strip():
            return line
        depth = len(line[: len(line) - len(body)].expandtabs(4))
        wanted = min(self.indent, _DEEPEST) + max(depth - self.indent, 0)
        return line if depth == wanted and "\t" not in line[:depth] else " " * wanted + body


class Sources:
    """Follows a list of sources through its lines."""

    def __init__(self, passages: Passages) -> None:
        self._passages = passages
        self._heading = ""
        self.listing = False

    def read(self, line: str) -> tuple[int, ...] | None:
        """The passages to cite in place of this line; None when the line is not about sources."""
        if HEADING.fullmatch(line) and line.strip():
            self.listing, self._heading = True, line
            return ()
        if _SOURCES_SAID.fullmatch(line):
            return self._passages.named(line.strip(" \n()*_>"))
        if not self.listing:
            return None
        if not line.strip():
            return ()
        if _TELLING.search(line) or self._passages.named(_ENTRY.sub("", line, count=1).strip()):
            self._heading = ""
            return ()
        self.listing = False
        return None

    def given_back(self) -> str:
        """The heading that announced sources when other things follow it; empty when there is none."""
        if self.listing:
            return ""
        heading, self._heading = self._heading, ""
        return f"{heading.strip()}\n\n" if heading else ""


def is_definition(line: str) -> bool:
    """Whether the line says what a label stands for: `[1]: address` or `[^1]: where it is from`."""
    return bool(_DEFINITION.fullmatch(line.rstrip("\n")))


def may_announce(line: str) -> bool:
    """Whether an unfinished line may turn out to be one that is taken or left whole."""
    body = line.lstrip(" \t")
    if not body or (body[0] in "`~" and (not body.strip(body[0]) or body.startswith(body[0] * 3))):
        return True
    if body[0] == "[" and re.fullmatch(r"\[[^\]\n]*(?:\](?::.*)?)?", body):
        return True
    said = body.lstrip("#>*_( \t").lower()
    return not said or any(said.startswith(word) or word.startswith(said) for word in _ANNOUNCING)
