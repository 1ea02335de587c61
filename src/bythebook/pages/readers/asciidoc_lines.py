"""Lines of AsciiDoc: what is left of a source once its attributes, conditions, comments and includes are dealt with."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bythebook.pages.readers.asciidoc_words import CHARACTERS, substituted

if TYPE_CHECKING:
    from collections.abc import Iterator

_ENTRY = re.compile(r":(!?)(\w[\w-]*)(!?):(?:[ \t]+(.*))?$")
_CONDITION = re.compile(r"(ifdef|ifndef|ifeval|endif)::(\S*?)\[(.*)\]\s*$")
_INCLUDE = re.compile(r"include::\S.*\[.*\]\s*$")
_VERBATIM = re.compile(r"(-{4,}|\.{4,}|\+{4,}|/{4,}|`{3,}[\w-]*)\s*$")
_COMMENT = re.compile(r"//(?!/)")


class Source:
    """The lines of a document, one after another, while its attributes come and go."""

    def __init__(self, text: str) -> None:
        self.attributes: dict[str, str] = dict(CHARACTERS)
        self._verbatim = ""
        """The line that ends the code or comment we are in, where nothing is a condition or an attribute."""
        self._skipping: list[bool] = []
        self.lines = list(self._read(text))

    def _read(self, text: str) -> Iterator[str]:
        lines = iter(text.split("\n"))
        for raw in lines:
            line = raw.rstrip()
            if self._is_condition(line):
                if line.startswith(("ifdef", "ifndef")) and not line.endswith("[]") and self._holds(line):
                    yield line[line.index("[") + 1 : -1]
                continue
            if any(self._skipping) or _INCLUDE.match(line):
                continue
            if self._verbatim or _VERBATIM.match(line):
                yield from self._within(line)
            elif entry := _ENTRY.match(line):
                self._set(entry, lines)
            elif not _COMMENT.match(line):
                yield line

    def _within(self, line: str) -> Iterator[str]:
        """Code, comments and what is passed through, from their first line to their last."""
        if not self._verbatim:
            self._verbatim = "```" if line.startswith("```") else line
        elif line == self._verbatim:
            self._verbatim = ""
        yield line

    def _is_condition(self, line: str) -> bool:
        match = _CONDITION.match(line)
        if not match:
            return False
        kind, _, said = match.groups()
        if kind == "endif":
            if self._skipping:
                self._skipping.pop()
        elif kind == "ifeval":
            self._skipping.append(False)
        elif not said:
            self._skipping.append(not self._holds(line))
        return True

    def _holds(self, line: str) -> bool:
        """Whether the attributes are there, or not there: one of those with commas, all of those with plus signs."""
        match = _CONDITION.match(line)
        names = match[2].lower() if match else ""
        there = [name in self.attributes for name in re.split(r"[,+]", names)]
        holds = all(there) if "+" in names else any(there)
        return not any(self._skipping) and holds == line.startswith("ifdef")

    def _set(self, entry: re.Match[str], lines: Iterator[str]) -> None:
        before, name, after, value = entry.groups()
        value = (value or "").strip()
        while value.endswith("\\"):
            value = value[:-1].rstrip(" +") + " " + next(lines, "").strip()
        if before or after:
            self.attributes.pop(name.lower(), None)
        else:
            self.attributes[name.lower()] = substituted(value, self.attributes)
