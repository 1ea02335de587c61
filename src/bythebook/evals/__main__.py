"""Measure the book on collections of questions; one JSON object for each collection.

python -m bythebook.evals retrieval FOLDER ...              how well the right documents are found
python -m bythebook.evals refusal FOLDER                    half of the documents are left out; their questions
                                                            must be refused
python -m bythebook.evals refusal FOLDER --strangers OTHER  another collection's questions must be refused
python -m bythebook.evals refusal FOLDER --fit              also the weights that would tell them apart best
python -m bythebook.evals followups FOLDER ...              how well a question of a conversation is made stand-alone
python -m bythebook.evals proof FILE ...                    how well supported claims are told from others
python -m bythebook.evals proof FILE ... --fit              the weights that would tell them apart best
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from bythebook.assemble import Book
from bythebook.evals import followups, proof, refusal, retrieval
from bythebook.evals.corpus import Corpus, Question
from bythebook.settings import Settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from bythebook.ingest import Report


@asynccontextmanager
async def _book(corpus: Corpus, name: str) -> AsyncIterator[tuple[Book, Report]]:
    """The collection as a book of its own, kept so that the next run need not embed it again."""
    folder = Settings.load().data_dir / "evals" / name
    async with Book.open(Settings.load({"data_dir": folder}), say=_say) as book:
        yield book, await book.ingest(corpus, progress=_show)


async def _retrieval(options: argparse.Namespace) -> dict[str, object]:
    corpus = Corpus(options.folder)
    questions = [question for question in corpus.questions() if question.relevant][: options.limit]
    async with _book(corpus, options.folder.name) as (book, report), book.edition() as edition:
        figures = await retrieval.measure(edition, book.embedder, questions, progress=_show)
    return {"collection": options.folder.name, "documents": report.pages, "chunks": report.chunks, **figures}


async def _refusal(options: argparse.Namespace) -> dict[str, object]:
    corpus = Corpus(options.folder)
    asked = [question for question in corpus.questions() if question.relevant]
    if options.strangers:
        name, covered = options.folder.name, asked
        foreign = [q for q in Corpus(options.strangers).questions() if q.relevant]
    else:
        name, (covered, foreign) = f"{options.folder.name}-half", _halved(corpus, asked)
    chosen = random.Random(options.seed)  # noqa: S311 - the same questions every time
    most = min(options.limit, len(covered), len(foreign))
    async with _book(corpus, name) as (book, _), book.edition() as edition:
        seen = [
            await refusal.look(
                edition, book.embedder, book.retriever, _texts(chosen.sample(kind, most)), progress=_show
            )
            for kind in (covered, foreign)
        ]
        trial = refusal.Trial(*seen)
        figures = refusal.score(trial, cutoff=edition.calibration.cutoff)
    fitted = {"fit": refusal.fit([trial])} if options.fit else {}
    return {"collection": options.folder.name, "questions": most, **figures, **fitted}


async def _followups(options: argparse.Namespace) -> dict[str, object]:
    name = options.folder.name
    if not any(options.folder.glob("corpus.jsonl*")):
        return {"collection": name, **followups.compare(islice(followups.turns(options.folder), options.limit))}
    corpus = Corpus(options.folder)
    questions = [question for question in corpus.questions() if question.relevant][: options.limit]
    async with _book(corpus, name) as (book, report), book.edition() as edition:
        figures = await followups.measure(edition, book.embedder, questions, progress=_show)
    return {"collection": name, "documents": report.pages, "chunks": report.chunks, **figures}


async def _proof(options: argparse.Namespace) -> dict[str, object]:
    async with Book.open(Settings.load(), say=_say) as book:
        if options.fit:
            collections = [proof.Pairs(file, limit=options.limit) for file in options.folders]
            return {"fit": await proof.fit(collections, book.embedder, progress=_show)}
        figures = await proof.measure(proof.Pairs(options.folder, limit=options.limit), book.embedder, progress=_show)
    return {"collection": options.folder.parent.name, **figures}


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


def _show(stage: str, done: int, total: int) -> None:
    if sys.stderr.isatty() and (done % 20 == 0 or done == total):
        sys.stderr.write(f"\r{stage} {done}/{total} " + ("\n" if done == total else ""))


_MEASURES = {"retrieval": _retrieval, "refusal": _refusal, "followups": _followups, "proof": _proof}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bythebook.evals", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=list(_MEASURES))
    parser.add_argument("folders", nargs="+", type=Path, help="folders with questions, or files with pairs")
    parser.add_argument("--limit", type=int, default=sys.maxsize, help="ask only so many questions of each kind")
    parser.add_argument("--seed", type=int, default=1, help="which questions, when there are more")
    parser.add_argument("--strangers", type=Path, help="a collection whose questions must be refused")
    parser.add_argument("--fit", action="store_true", help="also fit the rule to these questions")
    options = parser.parse_args()
    # Weights are fitted to all collections together, figures are taken of each.
    together = options.what == "proof" and options.fit
    for folder in options.folders[:1] if together else options.folders:
        figures = asyncio.run(_MEASURES[options.what](argparse.Namespace(**vars(options), folder=folder)))
        sys.stdout.write(json.dumps(figures) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
