"""Inclusion: documents that take in other files, as their generators let them.

Fences: a text in pieces of code and of everything else, found in one pass over its lines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bythebook.sources import Unreadable
from bythebook.sources.folder import decode

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bythebook.sources.projects.metadata import Glances

    Load = Callable[[str], str | None]

    from collections.abc import Callable, Iterator


LARGEST = 2_000_000
"""Characters beyond which a page is not put together: it was made to be endless."""
_DEEPEST = 8
_MOST = 500


@dataclass(slots=True)
class _Budget:
    left: int = _MOST


@dataclass(frozen=True, slots=True)
class Inclusion:
    """One generator's way to take in files. Nothing outside of `within` is ever read."""

    within: Path
    glances: Glances
    find: Callable[[str, Path], Path]
    """Where a reference in a file leads."""
    insert: Callable[[str, Load], str]
    """A text with its references replaced by what they lead to."""

    def prepare(self, text: str, file: Path) -> str:
        """The text of a file with all it takes in. What cannot be found stays as it is written."""
        if not self.glances.of(file).references:
            return text
        return self._prepare(text, file, 0, _Budget())

    def parts(self, file: Path) -> tuple[Path, ...]:
        """Every file that this one takes in, and those that they take in."""
        found: dict[Path, None] = {}
        waiting = [file]
        while waiting and len(found) < _MOST:
            here = waiting.pop()
            for reference in self.glances.of(here).references:
                target = self._target(reference, here)
                if target and target not in found:
                    found[target] = None
                    waiting.append(target)
        return tuple(sorted(found))

    def _prepare(self, text: str, file: Path, depth: int, budget: _Budget) -> str:
        def load(reference: str) -> str | None:
            budget.left -= 1
            target = self._target(reference, file)
            if target is None or depth >= _DEEPEST or budget.left < 0:
                return None
            inner = _text_of(target)
            return None if inner is None else self._prepare(inner, target, depth + 1, budget)

        prepared = self.insert(text, load)
        if len(prepared) > LARGEST:
            raise Unreadable(f"with what it takes in from other files it has over {LARGEST // 1_000_000} MB")
        return prepared

    def _target(self, reference: str, file: Path) -> Path | None:
        try:
            target = self.find(reference, file).resolve()
            return target if target.is_relative_to(self.within) and target.is_file() else None
        except (OSError, ValueError, RuntimeError):
            return None


def _text_of(file: Path) -> str | None:
    try:
        return decode(file.read_bytes()) if file.stat().st_size <= LARGEST else None
    except (OSError, Unreadable):
        return None


_MARK = re.compile(r"[ \t]*(?P<mark>`{3,}|~{3,})(?P<rest>.*)")


def pieces(text: str) -> Iterator[tuple[bool, str]]:
    """Each piece of the text, with whether it is a block of code. Together they are the text."""
    lines: list[str] = []
    mark = ""
    for line in text.splitlines(keepends=True):
        found = _MARK.match(line)
        if not mark and found:
            yield False, "".join(lines)
            mark, lines = found["mark"], [line]
        elif mark and found and found["mark"].startswith(mark) and not found["rest"].strip():
            yield True, "".join([*lines, line])
            mark, lines = "", []
        else:
            lines.append(line)
    yield bool(mark), "".join(lines)


def changed_outside(text: str, change: Callable[[str], str]) -> str:
    """The text with everything but its code changed."""
    return "".join(piece if is_code else change(piece) for is_code, piece in pieces(text))


def prose(text: str) -> str:
    """The text without its code."""
    return "".join(piece for is_code, piece in pieces(text) if not is_code)
