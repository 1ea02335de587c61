"""Finished questions: what is already known of a run, so that one that was interrupted goes on where it stopped."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from bythebook.ingest import Progress

    Row = dict[str, Any]

T = TypeVar("T")


class Finished:
    """A file with a line for each question that was asked, until the run is complete.

    It belongs to one state of the book and of this very code: after a change to either, everything is asked again.
    """

    def __init__(self, folder: Path, *, about: Sequence[object]) -> None:
        digest = hashlib.sha256(json.dumps([code(), *about], sort_keys=True, default=str).encode()).hexdigest()
        self._path = folder / f"{digest[:32]}.jsonl"
        self._rows = _rows(self._path)

    async def each(
        self, items: Sequence[T], ask: Callable[[T], Awaitable[Row]], *, name: Callable[[T], str], progress: Progress
    ) -> list[Row]:
        """What `ask` says of each item, by its name; those that are known are not asked again."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            for done, item in enumerate(items, start=1):
                if name(item) not in self._rows:
                    self._rows[name(item)] = row = await ask(item)
                    file.write(json.dumps([name(item), row]) + "\n")
                    file.flush()
                progress("asking", done, len(items))
        return [self._rows[name(item)] for item in items]

    def complete(self) -> None:
        """Forget: the next run measures anew."""
        self._path.unlink(missing_ok=True)


@cache
def code() -> str:
    """What this package's code is, down to the letter: figures of other code are not mixed with its own."""
    digest = hashlib.sha256()
    root = Path(__file__).parent.parent
    for path in sorted(root.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _rows(path: Path) -> dict[str, Row]:
    """What was written. A last line that was cut off is taken away, so that the next one stands by itself."""
    try:
        whole, newline, cut = path.read_text(encoding="utf-8").rpartition("\n")
    except FileNotFoundError:
        return {}
    if cut:
        path.write_text(whole + newline, encoding="utf-8")
    return dict(json.loads(line) for line in whole.splitlines())
