"""The notebook: what was asked is written down after the answer is given, so that nobody waits for it.

Notes put aside: one small file for each, from a command that answers once and ends.

Loading what speaks to a database takes several times as long as the answer. So such a command leaves its notes in the
data folder, and whoever looks at the gaps next writes them down.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from bythebook.answers import Outcome
from bythebook.feedback.ratings import Asked, Section
from bythebook.serialization import as_json
from bythebook.telemetry import log

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from bythebook.answers import AgentResponse
    from bythebook.feedback.ratings import Ledger
    from bythebook.retrieval import RetrievalResult


MOST_WAITING = 1000
"""How many notes wait while the database is away. More are let go: readers come before records."""
CLOSING_SECONDS = 5.0
KEPT = timedelta(days=30)
"""How long an answer can be rated."""
_NEAREST = 3


class _Noted(NamedTuple):
    """An answer as it was given. It becomes an entry of the ledger when it is written down, and not before."""

    response: AgentResponse
    question: str
    found: Sequence[RetrievalResult]
    user_id: str

    @property
    def is_gap(self) -> bool:
        return bool(self.question) and self.response.outcome is not Outcome.ANSWERED

    def entry(self) -> Asked:
        from bythebook.feedback.ratings import Asked

        response = self.response
        return Asked(
            id=response.id,
            user_id=self.user_id,
            question=self.question,
            outcome=response.outcome.value,
            generation=response.metadata.index_generation,
            nearest=sections(self.found),
            confidence=response.metadata.confidence,
            conversation_id=response.session_id,
            asked_at=response.created_at,
        )


class Notebook:
    """Writes to the ledger behind the answers. What goes wrong here is logged, and never fails an answer.

    Without `questions`, only the answer's id and owner are kept: enough to rate it, nothing to read.
    """

    def __init__(self, ledger: Callable[[], Awaitable[Ledger]], *, questions: bool) -> None:
        self._ledger = ledger
        self._questions = questions
        self._waiting: list[_Noted] = []
        self._writing: asyncio.Task[None] | None = None
        self._tidied = False
        self._aside: Path | None = None

    def note(self, response: AgentResponse, question: str, found: Sequence[RetrievalResult], *, user_id: str) -> None:
        """Have the answer to this stand-alone question written down soon."""
        if len(self._waiting) >= MOST_WAITING:
            return
        kept = (question, found) if self._questions else ("", ())
        self._waiting.append(_Noted(response, *kept, user_id))
        if self._aside is None and (self._writing is None or self._writing.done()):
            self._writing = asyncio.create_task(self._write())

    async def settle(self) -> None:
        """Wait until everything noted so far is written down, or could not be."""
        if self._aside is not None:
            self._leave_in(self._aside)
        if self._writing is not None:
            await asyncio.shield(self._writing)

    def put_aside(self, folder: Path) -> None:
        """From now on leave gaps in this folder instead: for a process that answers once and ends."""
        self._aside = folder

    async def close(self) -> None:
        """Write down what is waiting, if it can be done soon."""
        if self._aside is not None:
            self._leave_in(self._aside)
        if self._writing is not None:
            await asyncio.wait({self._writing}, timeout=CLOSING_SECONDS)
            self._writing.cancel()
            await asyncio.wait({self._writing})

    def _leave_in(self, folder: Path) -> None:
        """Leave the gaps in this folder. Answers nobody will rate are let go."""
        gaps, self._waiting = [noted for noted in self._waiting if noted.is_gap], []
        if not gaps:
            return

        try:
            put(folder, [noted.entry() for noted in gaps])
        except OSError as error:
            log("notes_lost", count=len(gaps), error=str(error))

    async def _write(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                ledger = await self._ledger()
                await ledger.keep([noted.entry() for noted in batch])
                if not self._tidied:
                    from bythebook.conversations.models import now

                    await ledger.forget(now() - KEPT)
                    self._tidied = True
            except Exception as error:  # Whatever it is, the readers have their answers.
                log("notes_lost", count=len(batch), error=str(error))


def sections(found: Sequence[RetrievalResult]) -> tuple[Section, ...]:
    """The sections these passages stand in, each once, nearest first."""
    from bythebook.feedback.ratings import Section

    kept: dict[tuple[str, tuple[str, ...]], Section] = {}
    for result in found:
        section = Section(result.url, result.title, result.heading_hierarchy, result.anchor, round(result.score, 4))
        kept.setdefault((result.url, result.heading_hierarchy), section)
    return tuple(kept.values())[:_NEAREST]


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
