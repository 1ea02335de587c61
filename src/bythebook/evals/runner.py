"""A collection as a book of its own, and how it is asked: by the code that answers readers.

Finished questions: what is already known of a run, so that one that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from bythebook.answers import AgentRequest
from bythebook.book import Book
from bythebook.evals.datasets import document_of
from bythebook.index import EVERYWHERE
from bythebook.retrieval.retriever import in_the_books_words, looked_through, ranked

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from bythebook.answers import AgentResponse
    from bythebook.conversations.followups import Exchange
    from bythebook.evals import Wanted
    from bythebook.evals.datasets import Corpus, Question
    from bythebook.index import Candidate
    from bythebook.index.provider import Edition
    from bythebook.ingest import Report
    from bythebook.qa.pipeline import Asker
    from bythebook.settings import Settings
    from bythebook.telemetry import Progress

    Row = dict[str, Any]


ENOUGH_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Subject:
    """A book that is measured."""

    book: Book
    edition: Edition
    asker: Asker
    report: Report
    wanted: Wanted
    folder: Path

    async def each(
        self, measure: str, questions: Sequence[Question], ask: Callable[[Question], Awaitable[Row]]
    ) -> list[Row]:
        """What `ask` says of each question, with how many milliseconds it took. An interrupted run goes on."""

        async def timed(question: Question) -> Row:
            started = time.perf_counter()
            row = await ask(question)
            return {"milliseconds": (time.perf_counter() - started) * 1000, **row}

        generation = self.edition.catalogue.fact("published_at")
        finished = Finished(self.folder / "finished", about=[measure, self.edition.name, generation])
        rows = await finished.each(questions, timed, name=lambda asked: asked.id, progress=self.wanted.progress)
        finished.complete()
        return rows

    async def ask(self, question: str, history: Sequence[Exchange] = ()) -> AgentResponse:
        """The answer a reader would get."""
        return await self.asker.ask(AgentRequest(question), history=history)

    async def documents(self, searches: Sequence[str]) -> list[str]:
        """The documents that these searches find together, best first, ranked as for a reader."""
        return await self.of(await self.found(searches))

    async def found(self, searches: Sequence[str]) -> list[Candidate]:
        """The chunks that these searches find together, best first, ranked as for a reader."""
        embedder = self.book.embedder
        texts = in_the_books_words(self.edition, tuple(searches), by=embedder)
        wanted = [(await embedder.query(text), text) for text in texts]
        return await ranked(self.edition, wanted, limit=looked_through(wanted), filters=EVERYWHERE)

    async def of(self, found: Sequence[Candidate]) -> list[str]:
        """The documents of these chunks, each once, in their order."""
        sections = await self.sections([candidate.chunk_id for candidate in found])
        return list(dict.fromkeys(document for document, _ in sections))

    async def sections(self, chunk_ids: Sequence[str]) -> list[tuple[str, str]]:
        """The document and the anchor of the section of each of these chunks, each once, in their order."""
        passages = await self.edition.store.fetch(chunk_ids)
        chunks = [passages[chunk_id].chunk for chunk_id in chunk_ids]
        return list(dict.fromkeys((document_of(chunk.url), chunk.anchor) for chunk in chunks))


@asynccontextmanager
async def opened(corpus: Corpus, name: str, wanted: Wanted) -> AsyncIterator[Subject]:
    """The collection as an open book. It is kept, so that the next run need not embed it again."""
    folder = wanted.settings.data_dir / "evals" / name
    settings = replace(patient(wanted.settings), data_dir=folder, qdrant_url="", retrieval_threshold="auto")
    async with Book.open(settings, say=say) as book:
        report = await book.ingest(corpus, progress=wanted.progress)
        async with book.edition() as edition:
            yield Subject(book, edition, book.unaided(), report, wanted, folder)


def patient(settings: Settings) -> Settings:
    """The settings with all the time there is: a busy machine must not change a figure."""
    return replace(settings, first_token_seconds=ENOUGH_SECONDS, answer_seconds=ENOUGH_SECONDS)


def say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


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
