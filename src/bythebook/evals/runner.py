"""Running a suite: a dataset is ingested as a book and queried with the code that serves readers.

A checkpoint file keeps the rows of an interrupted run, so that the next run continues it.
"""

import hashlib
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from bythebook.answers import AgentRequest, AgentResponse
from bythebook.book import Book
from bythebook.conversations.followups import Exchange
from bythebook.evals import EvalRequest
from bythebook.evals.datasets import Corpus, EvalQuestion, document_id
from bythebook.index import NO_FILTERS
from bythebook.index.provider import IndexSnapshot
from bythebook.ingest import IngestReport
from bythebook.qa.pipeline import AnswerPipeline
from bythebook.retrieval.evidence import score_evidence
from bythebook.retrieval.reranker import MAX_READ_PASSAGES
from bythebook.retrieval.retriever import candidate_limit, rank_candidates, rewrite_query
from bythebook.settings import Settings
from bythebook.telemetry import Progress

Row = dict[str, Any]


NO_DEADLINE_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class BookUnderTest:
    """The open book of a dataset."""

    book: Book
    snapshot: IndexSnapshot
    pipeline: AnswerPipeline
    report: IngestReport
    request: EvalRequest
    folder: Path

    async def run_questions(
        self, suite: str, questions: Sequence[EvalQuestion], ask: Callable[[EvalQuestion], Awaitable[Row]]
    ) -> list[Row]:
        """The row that `ask` returns for each question, with its milliseconds. An interrupted run is continued."""

        async def measure_time(question: EvalQuestion) -> Row:
            started = time.perf_counter()
            row = await ask(question)
            return {"milliseconds": (time.perf_counter() - started) * 1000, **row}

        generation = self.snapshot.catalog.get_fact("published_at")
        checkpoint = EvalCheckpoint(self.folder / "finished", about=[suite, self.snapshot.name, generation])
        rows = await checkpoint.run(
            questions, measure_time, name=lambda question: question.id, progress=self.request.progress
        )
        checkpoint.complete()
        return rows

    async def ask(self, question: str, history: Sequence[Exchange] = ()) -> AgentResponse:
        """The answer that a reader would get."""
        return await self.pipeline.ask(AgentRequest(question), history=history)

    async def search_documents(self, searches: Sequence[str]) -> list[str]:
        """The documents that the fused searches find, ranked as for a reader."""
        return await self.documents_of(await self.search(searches))

    async def search(self, searches: Sequence[str]) -> list[str]:
        """The chunks that the fused searches find, ranked as for a reader: those that the reranker has read first."""
        found = await self.book.retriever.retrieve(
            self.snapshot,
            searches[0],
            top_k=MAX_READ_PASSAGES,
            filters=NO_FILTERS,
            extra_queries=tuple(searches[1:]),
        )
        read = found.reading.logits if found.reading else {}
        first = [result.chunk_id for result in found.context.results if result.chunk_id in read]
        return list(dict.fromkeys([*first, *await self.search_hybrid(searches)]))

    async def search_hybrid(self, searches: Sequence[str]) -> list[str]:
        """The same without the reranker."""
        embedder = self.book.embedder
        texts = rewrite_query(self.snapshot, tuple(searches), tokenizer=embedder)
        queries = [(await embedder.embed_query(text), text) for text in texts]
        limit = candidate_limit(queries)
        found = await rank_candidates(self.snapshot, queries, limit=limit, filters=NO_FILTERS)
        return [candidate.chunk_id for candidate in found]

    async def covers(self, query: str) -> bool:
        """Whether a reader would get an answer to this query."""
        found = await self.book.retriever.retrieve(self.snapshot, query, top_k=5, filters=NO_FILTERS)
        evidence = await score_evidence(self.snapshot, self.book.reader, found)
        return evidence.confidence >= self.snapshot.calibration.cutoff

    async def documents_of(self, chunk_ids: Sequence[str]) -> list[str]:
        """The distinct documents of these chunks, in order."""
        sections = await self.sections_of(chunk_ids)
        return list(dict.fromkeys(document for document, _ in sections))

    async def sections_of(self, chunk_ids: Sequence[str]) -> list[tuple[str, str]]:
        """The distinct sections of these chunks, in order, each as document and anchor."""
        passages = await self.snapshot.store.fetch(chunk_ids)
        chunks = [passages[chunk_id].chunk for chunk_id in chunk_ids]
        return list(dict.fromkeys((document_id(chunk.url), chunk.anchor) for chunk in chunks))


@asynccontextmanager
async def open_dataset(corpus: Corpus, name: str, request: EvalRequest) -> AsyncIterator[BookUnderTest]:
    """Ingest the dataset and open it as a book. Its index is kept, so that the next run does not embed it again."""
    folder = request.settings.data_dir / "evals" / name
    settings = replace(without_deadlines(request.settings), data_dir=folder, qdrant_url="", retrieval_threshold="auto")
    async with Book.open(settings, say=say) as book:
        report = await book.ingest(corpus, progress=request.progress)
        async with book.snapshot() as snapshot:
            yield BookUnderTest(book, snapshot, book.extractive_pipeline(), report, request, folder)


def without_deadlines(settings: Settings) -> Settings:
    """The settings without deadlines: a busy machine must not change a metric."""
    return replace(settings, first_token_seconds=NO_DEADLINE_SECONDS, answer_seconds=NO_DEADLINE_SECONDS)


def say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


T = TypeVar("T")


class EvalCheckpoint:
    """A file with one line per finished question, until the run is complete.

    It is valid only for the same state of the book and of this code: after a change, every question is asked again.
    """

    def __init__(self, folder: Path, *, about: Sequence[object]) -> None:
        digest = hashlib.sha256(json.dumps([source_digest(), *about], sort_keys=True, default=str).encode()).hexdigest()
        self._path = folder / f"{digest[:32]}.jsonl"
        self._rows = _load_rows(self._path)

    async def run(
        self, items: Sequence[T], ask: Callable[[T], Awaitable[Row]], *, name: Callable[[T], str], progress: Progress
    ) -> list[Row]:
        """The row that `ask` returns for each item. Finished items are not asked again."""
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
        """Delete the file, so that the next run starts from the beginning."""
        self._path.unlink(missing_ok=True)


@cache
def source_digest() -> str:
    """A digest of the source code and the tables of this package: rows of different code must not be mixed."""
    digest = hashlib.sha256()
    root = Path(__file__).parent.parent
    for path in sorted([*root.rglob("*.py"), *root.rglob("*.json")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _load_rows(path: Path) -> dict[str, Row]:
    """Load the finished rows. An incomplete last line is removed from the file."""
    try:
        complete, newline, incomplete = path.read_text(encoding="utf-8").rpartition("\n")
    except FileNotFoundError:
        return {}
    if incomplete:
        path.write_text(complete + newline, encoding="utf-8")
    return dict(json.loads(line) for line in complete.splitlines())
