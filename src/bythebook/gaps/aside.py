"""Notes put aside: one small file for each, from a command that answers once and ends.

Loading what speaks to a database takes several times as long as the answer. So such a command leaves its notes in the
data folder, and whoever looks at the gaps next writes them down.
"""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from bythebook.conversations.asked import Asked, Section
from bythebook.wire import as_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_READY, _TAKEN = ".json", ".taken"


def put(folder: Path, entries: Iterable[Asked]) -> None:
    """Leave these notes in the folder. Nobody sees half a note."""
    folder.mkdir(parents=True, exist_ok=True)
    for entry in entries:
        unfinished = folder / entry.id
        unfinished.write_text(json.dumps(as_json(entry)), encoding="utf-8")
        unfinished.rename(unfinished.with_suffix(_READY))


def take(folder: Path) -> Iterator[Asked]:
    """Each note in the folder, for this caller only, and gone once the next one is asked for."""
    for ready in sorted(folder.glob(f"*{_READY}")):
        # Another process may look at the same time: whoever renames the note has it.
        with suppress(FileNotFoundError):
            taken = ready.rename(ready.with_suffix(_TAKEN))
            # A file that is no note of ours is no reason to keep the others.
            with suppress(ValueError, TypeError, KeyError):
                yield _read(taken.read_text(encoding="utf-8"))
            taken.unlink()


def _read(text: str) -> Asked:
    known = json.loads(text)
    nearest = tuple(
        Section(s["url"], s["title"], tuple(s["headings"]), s["anchor"], s["score"]) for s in known["nearest"]
    )
    return Asked(**known | {"nearest": nearest, "asked_at": datetime.fromisoformat(known["asked_at"])})
