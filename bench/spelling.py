"""Readers who misspell, and readers who ask for a name: python -m bench.spelling COLLECTION [--limit N] [--json]

Every question of the collection is asked as it is, and once more with one slip in one of its longer words: two letters
swapped, one left out, one too many, or another. Then 300 names that stand in at most three chunks are asked for, such
as `spin_once` or `HTTPException`; a hit is a chunk that has the name.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from bench.fitting import progress
from bythebook.evals import EvalRequest
from bythebook.evals.datasets import load_dataset
from bythebook.evals.retrieval import ndcg
from bythebook.evals.runner import open_dataset
from bythebook.index import NO_FILTERS
from bythebook.retrieval.retriever import CANDIDATES, rank_candidates
from bythebook.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bythebook.evals.datasets import EvalQuestion
    from bythebook.evals.runner import BookUnderTest

NAMES = 300
_FEW = 3
_WORD = re.compile(r"[A-Za-z]{5,}")
_NAME = re.compile(r"[A-Za-z]\w*(?:\.\w+)*_\w+|\b[A-Z][a-z]+(?:[A-Z][a-z]+)+\b|--[a-z]+(?:-[a-z]+)+")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def misspelt(question: str, chance: random.Random) -> str:
    """The question with one slip, in a word that is long enough for it; never in its first or last letter."""
    words = list(_WORD.finditer(question))
    if not words:
        return question
    found = chance.choice(words)
    word, at, letter = found[0], chance.randrange(1, len(found[0]) - 1), chance.choice(_LETTERS)
    slips = (
        word[:at] + word[at + 1] + word[at] + word[at + 2 :],
        word[:at] + word[at + 1 :],
        word[:at] + letter + word[at:],
        word[:at] + letter + word[at + 1 :],
    )
    return question[: found.start()] + chance.choice(slips) + question[found.end() :]


async def as_it_is(subject: BookUnderTest, text: str) -> list[str]:
    """The documents that are found for the unmodified text."""
    wanted = [(await subject.book.embedder.embed_query(text), text)]
    ranked = await rank_candidates(subject.snapshot, wanted, limit=CANDIDATES, filters=NO_FILTERS)
    return await subject.documents_of([candidate.chunk_id for candidate in ranked])


async def slips(subject: BookUnderTest, questions: Sequence[EvalQuestion]) -> dict[str, float]:
    """nDCG@10 of the original questions, and of misspelt ones without and with spelling correction."""
    chance = random.Random(7)  # noqa: S311 - the same every time
    found: dict[str, list[float]] = {"as asked": [], "misspelt, as it is": [], "misspelt, put right": []}
    for question in questions:
        wrong = misspelt(question.text, chance)
        found["as asked"].append(ndcg(question.relevant, await subject.search_documents([question.text])))
        found["misspelt, as it is"].append(ndcg(question.relevant, await as_it_is(subject, wrong)))
        found["misspelt, put right"].append(ndcg(question.relevant, await subject.search_documents([wrong])))
    return {name: fmean(values) for name, values in found.items()}


async def names(subject: BookUnderTest) -> dict[str, float]:
    """How often a chunk with the name is first, and in the first five."""
    where: dict[str, set[str]] = {}
    ids = subject.snapshot.catalog.all_chunk_ids()
    for first in range(0, len(ids), 500):
        for chunk_id, passage in (await subject.snapshot.store.fetch(ids[first : first + 500])).items():
            for name in set(_NAME.findall(passage.chunk.embedded)):
                where.setdefault(name, set()).add(chunk_id)
    rare = sorted(name for name, chunks in where.items() if len(chunks) <= _FEW and 6 <= len(name) <= 40)
    random.Random(3).shuffle(rare)  # noqa: S311 - the same every time
    hits: dict[int, list[bool]] = {1: [], 5: []}
    for name in rare[:NAMES]:
        question = f"What is {name}?"
        wanted = [(await subject.book.embedder.embed_query(question), question)]
        found = await rank_candidates(subject.snapshot, wanted, limit=CANDIDATES, filters=NO_FILTERS)
        for count, hit in hits.items():
            hit.append(any(candidate.chunk_id in where[name] for candidate in found[:count]))
    return {f"names, hit@{count}": fmean(hit) for count, hit in hits.items() if hit}


async def measure(given: argparse.Namespace) -> dict[str, float]:
    settings = Settings.load({"data_dir": given.data_dir})
    wanted = EvalRequest(given.collection, settings, progress(given.collection.name), limit=given.limit)
    found = load_dataset(given.collection)
    async with open_dataset(found.corpus, given.collection.name, wanted) as subject:
        return {**await slips(subject, wanted.sample(found.answered)), **await names(subject)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collection", type=Path)
    parser.add_argument("--limit", type=int, default=1000)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    figures = asyncio.run(measure(given))
    lines = [f"{name:<22} {value:.3f}" for name, value in figures.items()]
    print(json.dumps(figures) if given.json else "\n".join(lines))


if __name__ == "__main__":
    main()
