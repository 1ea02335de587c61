"""A collection as a book of its own, and how it is asked: by the code that answers readers."""

from __future__ import annotations

import sys
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bythebook.answers import AgentRequest
from bythebook.assemble import Book
from bythebook.evals.corpus import document_of
from bythebook.evals.finished import Finished
from bythebook.passages import EVERYWHERE
from bythebook.passages.retriever import in_the_books_words, looked_through, ranked

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
    from pathlib import Path

    from bythebook.answers import AgentResponse
    from bythebook.ask import Asker
    from bythebook.conversations.followups import Exchange
    from bythebook.evals import Wanted
    from bythebook.evals.corpus import Corpus, Question
    from bythebook.evals.finished import Row
    from bythebook.ingest import Report
    from bythebook.passages import Candidate
    from bythebook.passages.shelf import Edition
    from bythebook.settings import Settings

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
