"""Documents that include other files, as the generators allow; and a scanner that separates code blocks from text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from bythebook.sources import Unreadable
from bythebook.sources.folder import decode_text

if TYPE_CHECKING:
    from pathlib import Path

    from bythebook.sources.projects.metadata import MetadataCache

Load: TypeAlias = Callable[[str], str | None]
"""From a reference in a document to the text it includes; None if there is none."""

MAX_CHARACTERS = 2_000_000
"""A larger page is rejected: files that include each other could otherwise grow without limit."""
_MAX_DEPTH = 8
_MAX_INCLUDES = 500


@dataclass(frozen=True, slots=True)
class IncludeResolver:
    """Expands the includes of one generator. It never reads a file outside `within`."""

    within: Path
    metadata: MetadataCache
    find: Callable[[str, Path], Path]
    """Resolves a reference relative to the file it is in."""
    insert: Callable[[str, Load], str]
    """Replaces the references in a text by the texts they refer to."""

    def prepare(self, text: str, file: Path) -> str:
        """The text of a file with its includes expanded. A reference that cannot be resolved stays as it is."""
        if not self.metadata.get(file).references:
            return text
        return self._prepare(text, file, 0, iter(range(_MAX_INCLUDES)))

    def included_files(self, file: Path) -> tuple[Path, ...]:
        """Every file that this one includes, directly or indirectly."""
        found: dict[Path, None] = {}
        waiting = [file]
        while waiting and len(found) < _MAX_INCLUDES:
            here = waiting.pop()
            for reference in self.metadata.get(here).references:
                target = self._target(reference, here)
                if target and target not in found:
                    found[target] = None
                    waiting.append(target)
        return tuple(sorted(found))

    def _prepare(self, text: str, file: Path, depth: int, budget: Iterator[int]) -> str:
        def load(reference: str) -> str | None:
            target = self._target(reference, file)
            if next(budget, None) is None or target is None or depth >= _MAX_DEPTH:
                return None
            inner = _read_text(target)
            return None if inner is None else self._prepare(inner, target, depth + 1, budget)

        prepared = self.insert(text, load)
        if len(prepared) > MAX_CHARACTERS:
            raise Unreadable(f"with the files it includes it has over {MAX_CHARACTERS // 1_000_000} MB")
        return prepared

    def _target(self, reference: str, file: Path) -> Path | None:
        try:
            target = self.find(reference, file).resolve()
            return target if target.is_relative_to(self.within) and target.is_file() else None
        except (OSError, ValueError, RuntimeError):
            return None


def _read_text(file: Path) -> str | None:
    try:
        return decode_text(file.read_bytes()) if file.stat().st_size <= MAX_CHARACTERS else None
    except (OSError, Unreadable):
        return None


_FENCE = re.compile(r"[ \t]*(?P<mark>`{3,}|~{3,})(?P<rest>.*)")


def split_fences(text: str) -> Iterator[tuple[bool, str]]:
    """Yield the parts of the text, each with whether it is a code block. Joined, the parts are the text."""
    lines: list[str] = []
    mark = ""
    for line in text.splitlines(keepends=True):
        found = _FENCE.match(line)
        if not mark and found:
            yield False, "".join(lines)
            mark, lines = found["mark"], [line]
        elif mark and found and found["mark"].startswith(mark) and not found["rest"].strip():
            yield True, "".join([*lines, line])
            mark, lines = "", []
        else:
            lines.append(line)
    yield bool(mark), "".join(lines)


def replace_outside_code(text: str, change: Callable[[str], str]) -> str:
    """Apply `change` to everything but the code blocks."""
    return "".join(part if is_code else change(part) for is_code, part in split_fences(text))


def strip_code(text: str) -> str:
    """The text without its code blocks."""
    return "".join(part for is_code, part in split_fences(text) if not is_code)
