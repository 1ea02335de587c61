"""The answer log: records each question and its outcome after the answer was sent, so that no reader waits for it.

A command that answers one question does not load the database library, which takes several times as long as the answer.
It writes its entries as files to a spool folder; the next reader of the answer log imports them.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from bythebook.answers import AgentResponse, Outcome
from bythebook.feedback import AnswerLogEntry, NearestSection
from bythebook.serialization import from_json, to_json
from bythebook.telemetry import log

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from bythebook.feedback.ratings import RatingStore
    from bythebook.retrieval import RetrievalResult


MAX_PENDING = 1000
"""How many entries are kept in memory while the database is unavailable. Further ones are dropped."""
CLOSE_SECONDS = 5.0
RETENTION = timedelta(days=30)
"""How long an answered question is kept for a rating."""
_NEAREST = 3


class _PendingEntry(NamedTuple):
    """An answer as it was given. It is converted to an AnswerLogEntry only when it is written."""

    response: AgentResponse
    question: str
    found: Sequence[RetrievalResult]
    user_id: str

    @property
    def is_gap(self) -> bool:
        return bool(self.question) and self.response.outcome is not Outcome.ANSWERED

    def to_entry(self) -> AnswerLogEntry:
        response = self.response
        return AnswerLogEntry(
            id=response.id,
            user_id=self.user_id,
            question=self.question,
            outcome=response.outcome.value,
            generation=response.metadata.index_generation,
            nearest=nearest_sections(self.found),
            coverage=response.metadata.coverage,
            conversation_id=response.session_id,
            asked_at=response.created_at,
        )


class AnswerLog:
    """Writes entries to the RatingStore in a background task. Errors are logged and never fail an answer.

    Without `questions`, only the id and the owner of an answer are stored: enough to rate it, but no text.
    """

    def __init__(self, open_store: Callable[[], Awaitable[RatingStore]], *, questions: bool) -> None:
        self._open_store = open_store
        self._questions = questions
        self._pending: list[_PendingEntry] = []
        self._writing: asyncio.Task[None] | None = None
        self._pruned = False
        self._spool: Path | None = None

    def record(self, response: AgentResponse, question: str, found: Sequence[RetrievalResult], *, user_id: str) -> None:
        """Schedule an entry for the answer to this question in its self-contained form."""
        if len(self._pending) >= MAX_PENDING:
            return
        recorded = (question, found) if self._questions else ("", ())
        self._pending.append(_PendingEntry(response, *recorded, user_id))
        if self._spool is None and (self._writing is None or self._writing.done()):
            self._writing = asyncio.create_task(self._write())

    async def flush(self) -> None:
        """Wait until all entries so far are written or lost."""
        if self._spool is not None:
            self._write_spool(self._spool)
        if self._writing is not None:
            await asyncio.shield(self._writing)

    def spool_to(self, folder: Path) -> None:
        """Write gaps to this folder instead of the database: for a process that answers one question."""
        self._spool = folder

    async def close(self) -> None:
        """Write the pending entries, within a time limit."""
        if self._spool is not None:
            self._write_spool(self._spool)
        if self._writing is not None:
            await asyncio.wait({self._writing}, timeout=CLOSE_SECONDS)
            self._writing.cancel()
            await asyncio.wait({self._writing})

    def _write_spool(self, folder: Path) -> None:
        """Write the gaps to the spool folder. Other answers are dropped: a command's answers are not rated."""
        gaps, self._pending = [pending for pending in self._pending if pending.is_gap], []
        if not gaps:
            return
        try:
            write_spool(folder, [pending.to_entry() for pending in gaps])
        except OSError as error:
            log("answer_log_lost", count=len(gaps), error=str(error))

    async def _write(self) -> None:
        while self._pending:
            batch, self._pending = self._pending, []
            try:
                store = await self._open_store()
                await store.add([pending.to_entry() for pending in batch])
                if not self._pruned:
                    await store.delete_unrated_answers(before=datetime.now(UTC) - RETENTION)
                    self._pruned = True
            except Exception as error:  # the answers have been sent
                log("answer_log_lost", count=len(batch), error=str(error))


def nearest_sections(found: Sequence[RetrievalResult]) -> tuple[NearestSection, ...]:
    """The sections of these passages without duplicates, nearest first."""
    sections: dict[tuple[str, tuple[str, ...]], NearestSection] = {}
    for result in found:
        section = NearestSection(
            result.url, result.title, result.heading_hierarchy, result.anchor, round(result.score, 4)
        )
        sections.setdefault((result.url, result.heading_hierarchy), section)
    return tuple(sections.values())[:_NEAREST]


_READY, _CLAIMED = ".json", ".taken"


def write_spool(folder: Path, entries: Iterable[AnswerLogEntry]) -> None:
    """Write entries as files. Each appears atomically, by renaming."""
    folder.mkdir(parents=True, exist_ok=True)
    for entry in entries:
        temporary = folder / entry.id
        temporary.write_text(json.dumps(to_json(entry)), encoding="utf-8")
        temporary.rename(temporary.with_suffix(_READY))


def read_spool(folder: Path) -> Iterator[AnswerLogEntry]:
    """Claim and yield each entry of the folder; its file is deleted when the next one is requested."""
    for ready in sorted(folder.glob(f"*{_READY}")):
        # Another process may read the folder at the same time: renaming the file claims it.
        with suppress(FileNotFoundError):
            claimed = ready.rename(ready.with_suffix(_CLAIMED))
            # An unreadable file is skipped and deleted.
            with suppress(ValueError, TypeError, KeyError):
                yield from_json(AnswerLogEntry, json.loads(claimed.read_text(encoding="utf-8")))
            claimed.unlink()
