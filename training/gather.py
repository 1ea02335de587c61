"""What the book itself would read closely: the examples the evidence model learns from and is tried on.

python -m training.gather asked COLLECTIONS OUT [--limit N] [--data-dir DIR]
python -m training.gather claimed COLLECTIONS OUT [--limit N] [--data-dir DIR]

COLLECTIONS is the folder that docs/quality.md describes. Every question is put to a book made of its collection; the
features of today's rule and the units it reads closely are written to OUT/asked.jsonl. Every claim is looked up in its
evidence; the features of today's rule and the quotes it found are written to OUT/claimed.jsonl.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.fitting import PROOF, progress
from bythebook.answers import support
from bythebook.book import Book
from bythebook.evals import Wanted
from bythebook.evals.answers import contains
from bythebook.evals.datasets import collection
from bythebook.evals.proof import Pairs
from bythebook.evals.refusal import kinds, text_of
from bythebook.evals.runner import opened, patient
from bythebook.index import EVERYWHERE
from bythebook.retrieval import evidence
from bythebook.settings import Settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from bythebook.evals.datasets import Question
    from bythebook.evals.runner import Subject
    from bythebook.retrieval.evidence import Weighed

    Row = dict[str, Any]

NEAR_MISSES, OUT_OF_BOOK, STRANGERS = "near misses", "out of book", "strangers"


@dataclass(frozen=True, slots=True)
class Trial:
    """A collection, and the questions its book must refuse."""

    name: str
    kind: str
    strangers: str = ""
    limit: int = sys.maxsize


TRIALS = (
    Trial("clapnq_dev", NEAR_MISSES),
    Trial("squad2", NEAR_MISSES),
    Trial("squad2", OUT_OF_BOOK, limit=1500),
    Trial("clapnq_dev", OUT_OF_BOOK),
    Trial("ray_docs_qa", STRANGERS, strangers="mtrag_cloud_pool"),
)


async def asked(trial: Trial, given: argparse.Namespace) -> AsyncIterator[Row]:
    """Each question of the trial with what the book reads closely for it."""
    wanted = Wanted(
        given.collections / trial.name,
        Settings.load({"data_dir": given.data_dir}),
        progress(f"{trial.name}, {trial.kind}:"),
        limit=min(trial.limit, given.limit),
        out_of_book=trial.kind == OUT_OF_BOOK,
        strangers=given.collections / trial.strangers if trial.strangers else None,
    )
    found = collection(wanted.path)
    titles = found.corpus.titles()
    book, covered, foreign = kinds(found, wanted)
    async with opened(found.corpus, book, wanted) as subject:
        for is_covered, questions in ((True, covered), (False, foreign)):
            for done, question in enumerate(questions, start=1):
                row = await _read(subject, question)
                about = titles.get(_document(question), question.id)
                yield {"set": trial.name, "kind": trial.kind, "covered": is_covered, "about": about, **row}
                wanted.progress("asking", done, len(questions))


def _document(question: Question) -> str:
    """The document that a question was written about, also where that one does not answer it."""
    return str(question.given.get("context_id") or next(iter(question.relevant), ""))


async def _read(subject: Subject, question: Question) -> Row:
    text = text_of(question)
    found = await subject.book.retriever.retrieve(subject.edition, text, top_k=5, filters=EVERYWHERE)
    seen = await evidence.weigh(subject.edition, subject.book.reader, found)
    answers = _answers(question)
    return {
        "question": text,
        "features": [getattr(seen.features, name) for name in evidence.Features.__slots__],
        "units": [_unit(entry, answers) for entry in seen.units],
    }


def _unit(entry: Weighed, answers: Sequence[str]) -> Row:
    title = " > ".join(entry.result.heading_hierarchy) or entry.result.title
    inside = [answer for answer in answers if contains([entry.text], [answer])]
    return {"title": title, "text": entry.text, "score": entry.score, "answer": max(inside, key=len, default="")}


def _answers(question: Question) -> list[str]:
    """What people marked as the answer: a few words, or whole sentences."""
    sentences = [said for output in question.given.get("output", ()) for said in output["selected_sentences"]]
    return [answer for answer in [*question.given.get("answers", ()), *sentences] if answer.strip()]


async def claimed(name: str, given: argparse.Namespace) -> AsyncIterator[Row]:
    """Each claim of a collection with the quotes that today's rule finds for it."""
    settings = Settings.load({"data_dir": given.data_dir})
    wanted = Wanted(given.collections / name, settings, progress(name), limit=given.limit)
    pairs = Pairs(wanted.path, choose=wanted.some)
    async with Book.open(patient(settings)) as book:
        for done, claim in enumerate(pairs.claims, start=1):
            found = support.Desk(claim.passages, pairs).look_up(claim.text, named=())
            texts = [found.sentence, found.quoted]
            vectors = dict(zip(texts, [vector async for vector in book.reader.documents(texts)], strict=True))
            read = support.compared(found, vectors)
            yield {
                "set": wanted.collection,
                "supported": claim.supported,
                "claim": claim.text,
                "title": " > ".join(found.quotes[0].result.heading_hierarchy) if found.quotes else "",
                "quote": found.quoted,
                "evidence": "\n".join(passage.text for passage in claim.passages)[:400],
                "features": [getattr(read.features, known) for known in support.Features.__slots__],
                "confidence": read.confidence,
            }
            wanted.progress("reading", done, len(pairs.claims))


async def gather(given: argparse.Namespace) -> None:
    given.out.mkdir(parents=True, exist_ok=True)
    sources = (
        [asked(trial, given) for trial in TRIALS] if given.what == "asked" else [claimed(name, given) for name in PROOF]
    )
    with (given.out / f"{given.what}.jsonl").open("w", encoding="utf-8") as file:
        for source in sources:
            async for row in source:
                file.write(json.dumps(row) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("asked", "claimed"))
    parser.add_argument("collections", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--limit", type=int, default=sys.maxsize)
    parser.add_argument("--data-dir", type=Path)
    asyncio.run(gather(parser.parse_args()))


if __name__ == "__main__":
    main()
