"""Pairs of texts as numbers, ready for training: a question and a sentence, or a claim and its quotes.

python -m training.pairs GATHERED OUT.npz [--without SET ...]

GATHERED is what `python -m training.gather` wrote. Questions and claims that are kept aside are left out, and so is
every sentence of an article that is kept aside; `--without` leaves out a whole collection.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bythebook.embeddings.minilm import download as installed
from bythebook.embeddings.minilm.embedder import FIRST, LAST
from bythebook.embeddings.minilm.wordpiece import Pieces
from training.gather import NEAR_MISSES, OUT_OF_BOOK
from training.split import articles_aside, claim_aside, question_aside, rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Row = dict[str, Any]

ANSWERS, SUPPORTS = 0, 1
"""The heads: does this sentence answer the question, do these quotes support the claim?"""
LONGEST = {ANSWERS: 64, SUPPORTS: 96}
_FIRST_TEXT, _TITLE = 40, 10
WRONG_OF_ANSWERED, WRONG_OF_OTHERS = 2, 1
"""How many sentences that do not answer are shown for a question that has an answer, and for one that has none."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two texts with what is known of them. `marked` are the tokens of the answer, as a half-open range."""

    ids: tuple[int, ...]
    second: int
    head: int
    label: float
    marked: tuple[int, int] | None
    """None where nobody marked the words of an answer."""


class Cutter:
    """Makes the ids of two texts as the model reads them: what is asked or claimed, then a title and the text below."""

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces

    def ids(self, first: str, second: tuple[str, str], *, head: int) -> tuple[list[int], int]:
        """The ids, and where those of the second text begin."""
        title, text = second
        above = self._pieces(title)[-_TITLE:]
        start = [FIRST, *self._pieces(first)[:_FIRST_TEXT], LAST]
        below = [*above, *self._pieces(":"), *self._pieces(text)] if above else self._pieces(text)
        read = [*start, *below][: LONGEST[head] - 1]
        return [*read, LAST], len(start)

    def marked(self, text: str, answer: str, *, at: int, upto: int) -> tuple[int, int]:
        """Where the tokens of the answer stand among the ids, of which those of `text` begin at `at`."""
        place = text.casefold().find(answer.casefold())
        if place < 0:
            return 0, 0
        begin = at + len(self._pieces(text[:place]))
        end = begin + len(self._pieces(text[place : place + len(answer)]))
        return min(begin, upto), min(end, upto)

    def above(self, title: str) -> int:
        """How many ids a title takes, with its colon."""
        ids = self._pieces(title)[-_TITLE:]
        return len(ids) + 1 if ids else 0


def question_pairs(row: Row, cutter: Cutter, articles: set[str]) -> Iterator[Pair]:
    """The sentences that answer, and the first few of those that do not."""
    units = [unit for unit in row["units"] if unit["title"].split(" > ")[0] not in articles]
    right = [unit for unit in units if unit["answer"] and row["covered"]]
    wrong = [unit for unit in units if unit not in right]
    for unit in [*right, *wrong[: WRONG_OF_ANSWERED if row["covered"] else WRONG_OF_OTHERS]]:
        ids, second = cutter.ids(row["question"], (unit["title"], unit["text"]), head=ANSWERS)
        answer = unit["answer"] if row["covered"] else ""
        marked: tuple[int, int] | None = (0, 0)
        if answer:
            start = second + cutter.above(unit["title"])
            marked = cutter.marked(unit["text"], answer, at=start, upto=len(ids) - 1)
        if row["set"] != "squad2":
            marked = None
        yield Pair(tuple(ids), second, ANSWERS, float(bool(answer)), marked)


def claim_pair(row: Row, cutter: Cutter) -> Pair:
    ids, second = cutter.ids(row["claim"], (row["title"], row["quote"]), head=SUPPORTS)
    return Pair(tuple(ids), second, SUPPORTS, float(row["supported"]), None)


def for_training(gathered: Path, cutter: Cutter, *, without: Sequence[str] = ()) -> Iterator[Pair]:
    """Every pair the model may see."""
    asked = rows(gathered / "asked.jsonl")
    articles = articles_aside(asked)
    for row in asked:
        aside = question_aside(row, articles)
        # What is asked of half a book was asked of the whole one too, but for what must be refused.
        again = row["kind"] == OUT_OF_BOOK and row["covered"]
        if row["kind"] in (NEAR_MISSES, OUT_OF_BOOK) and row["set"] not in without and not aside and not again:
            yield from question_pairs(row, cutter, articles)
    for row in rows(gathered / "claimed.jsonl"):
        if row["set"] not in without and not claim_aside(row) and row["quote"]:
            yield claim_pair(row, cutter)


def cutter() -> Cutter:
    """By the tokenizer of the embedding model that is installed."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "bythebook" / "models"
    return Cutter(Pieces(installed.find(cache).folder / installed.TOKENIZER))


def save(pairs: Sequence[Pair], path: Path) -> None:
    """As flat arrays, which need nothing of this package to be read."""
    marks = [pair.marked or (-1, -1) for pair in pairs]
    np.savez(
        path,
        ids=np.concatenate([np.array(pair.ids, dtype=np.int64) for pair in pairs]),
        lengths=np.array([len(pair.ids) for pair in pairs]),
        seconds=np.array([pair.second for pair in pairs]),
        heads=np.array([pair.head for pair in pairs]),
        labels=np.array([pair.label for pair in pairs], dtype=np.float32),
        marks=np.array(marks),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gathered", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--without", nargs="*", default=[])
    given = parser.parse_args()
    pairs = list(for_training(given.gathered, cutter(), without=given.without))
    save(pairs, given.out)
    for head, name in ((ANSWERS, "question and sentence"), (SUPPORTS, "claim and quotes")):
        own = [pair for pair in pairs if pair.head == head]
        yes, tokens = sum(pair.label for pair in own), sum(len(pair.ids) for pair in own)
        print(f"{name}: {len(own)} pairs, {yes:.0f} yes, {tokens} tokens")


if __name__ == "__main__":
    main()
