"""The measures by name: each takes a collection and gives its figures."""

from __future__ import annotations

import random
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from bythebook.assemble import Book
from bythebook.errors import InputError
from bythebook.evals import answers, conversations, followups, gaps, proof, refusal, retrieval
from bythebook.evals.corpus import Corpus, Question, questions_in, rows
from bythebook.settings import Settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
    from pathlib import Path

    from bythebook.ingest import Progress, Report

    Figures = dict[str, object]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to measure on, how much of it, and who watches."""

    folders: tuple[Path, ...]
    """One collection; weights are fitted to several together."""
    progress: Progress
    limit: int = sys.maxsize
    """At most so many questions of each kind."""
    seed: int = 1
    """Which of them, when there are more."""
    strangers: Path | None = None
    """A collection whose questions must be refused."""
    fit: bool = False

    @property
    def folder(self) -> Path:
        return self.folders[0]

    def some(self, of: Sequence[T]) -> list[T]:
        """The questions to ask: all of them, or as many as are wanted, drawn from all in their order."""
        if self.limit >= len(of):
            return list(of)
        drawn = random.Random(self.seed).sample(range(len(of)), self.limit)  # noqa: S311 - the same every time
        return [of[place] for place in sorted(drawn)]


@asynccontextmanager
async def _book(corpus: Corpus, name: str, wanted: Wanted) -> AsyncIterator[tuple[Book, Report]]:
    """The collection as a book of its own, kept so that the next run need not embed it again."""
    folder = Settings.load().data_dir / "evals" / name
    async with Book.open(Settings.load({"data_dir": folder, "qdrant_url": ""}), say=_say) as book:
        yield book, await book.ingest(corpus, progress=wanted.progress)


async def _retrieval(wanted: Wanted) -> Figures:
    """How well the right documents are found."""
    questions = wanted.some(questions_in(wanted.folder))
    async with _book(Corpus.of(wanted.folder), wanted.folder.name, wanted) as (book, report), book.edition() as edition:
        figures = await retrieval.measure(edition, book.embedder, questions, progress=wanted.progress)
    return {"documents": report.pages, "chunks": report.chunks, **figures}


async def _answers(wanted: Wanted) -> Figures:
    """How often the sentences of an answer contain what a person marked as the answer."""
    marked = [question for question in questions_in(wanted.folder) if question.given.get("answers")]
    if not marked:
        raise InputError(f"no question in {wanted.folder} comes with its answers.")
    questions = wanted.some(marked)
    async with _book(Corpus.of(wanted.folder), wanted.folder.name, wanted) as (book, _), book.edition() as edition:
        return await answers.measure(edition, book.reader, book.retriever, questions, progress=wanted.progress)


async def _refusal(wanted: Wanted) -> Figures:
    """How well questions about documents that were left out, or of another collection, are refused."""
    corpus, covered = Corpus.of(wanted.folder), questions_in(wanted.folder)
    if wanted.strangers:
        name, foreign = wanted.folder.name, questions_in(wanted.strangers)
    else:
        name, (covered, foreign) = f"{wanted.folder.name}-half", _halved(corpus, covered)
    chosen = random.Random(wanted.seed)  # noqa: S311 - the same questions every time
    most = min(wanted.limit, len(covered), len(foreign))
    async with _book(corpus, name, wanted) as (book, _), book.edition() as edition:
        seen = [
            await refusal.look(
                edition, book.reader, book.retriever, _texts(chosen.sample(kind, most)), progress=wanted.progress
            )
            for kind in (covered, foreign)
        ]
        trial = refusal.Trial(*seen)
        figures = refusal.score(trial, cutoff=edition.calibration.cutoff)
    return {"questions": most, **figures, **({"fit": refusal.fit([trial])} if wanted.fit else {})}


async def _conversations(wanted: Wanted) -> Figures:
    """How well the last question of a conversation is refused when none of the passages answers it."""
    corpus, tasks = conversations.read(wanted.folder)
    asked = [task for kind in conversations.KINDS for task in wanted.some([t for t in tasks if t.kind == kind])]
    async with _book(corpus, wanted.folder.name, wanted) as (book, _), book.edition() as edition:
        seen = await conversations.look(edition, book.reader, book.retriever, asked, progress=wanted.progress)
        return conversations.figures(asked, seen, cutoff=edition.calibration.cutoff, seed=wanted.seed)


async def _followups(wanted: Wanted) -> Figures:
    """How well a question of a conversation is made stand-alone."""
    if not any(wanted.folder.glob("corpus.jsonl*")):
        return followups.compare(wanted.some(list(followups.turns(wanted.folder))))
    questions = wanted.some(questions_in(wanted.folder))
    async with _book(Corpus.of(wanted.folder), wanted.folder.name, wanted) as (book, report), book.edition() as edition:
        figures = await followups.measure(edition, book.embedder, questions, progress=wanted.progress)
    return {"documents": report.pages, "chunks": report.chunks, **figures}


async def _proof(wanted: Wanted) -> Figures:
    """How well claims that their evidence supports are told from others."""
    async with Book.open(Settings.load(), say=_say) as book:
        if wanted.fit:
            collections = [proof.Pairs(file, limit=wanted.limit) for file in wanted.folders]
            return {"fit": await proof.fit(collections, book.reader, progress=wanted.progress)}
        return await proof.measure(
            proof.Pairs(wanted.folder, limit=wanted.limit), book.reader, progress=wanted.progress
        )


async def _gaps(wanted: Wanted) -> Figures:
    """How well questions nobody can answer come together by what they are about."""
    asked = [row for row in rows(wanted.folder, "queries") if row.get("is_impossible") and row.get("context_id")]
    if not asked:
        raise InputError(f"no question in {wanted.folder} is_impossible and has a context_id that names its article.")
    async with _book(Corpus.of(wanted.folder), wanted.folder.name, wanted) as (book, _), book.edition() as edition:
        return await gaps.measure(edition, book.embedder, wanted.some(asked), progress=wanted.progress)


MEASURES: dict[str, Callable[[Wanted], Awaitable[Figures]]] = {
    "retrieval": _retrieval,
    "answers": _answers,
    "refusal": _refusal,
    "conversations": _conversations,
    "followups": _followups,
    "proof": _proof,
    "gaps": _gaps,
}


def _halved(corpus: Corpus, asked: list[Question]) -> tuple[list[Question], list[Question]]:
    """Leave out every second title; what is asked about those must be refused."""
    titles = corpus.titles()
    kept_titles = set(sorted(set(titles.values()))[::2])
    keep = {key for key, title in titles.items() if title in kept_titles}
    corpus.only(keep)
    covered = [question for question in asked if set(question.relevant) & keep]
    return covered, [question for question in asked if not set(question.relevant) & keep]


def _texts(questions: list[Question]) -> list[str]:
    return [str(question.given.get("rewrite", question.text)).replace("|user|: ", "") for question in questions]


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
