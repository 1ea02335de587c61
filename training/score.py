"""What the finished model says of everything that was gathered and not learned from, and how long it takes.

python -m training.score GATHERED MODEL OUT.npz [--learned-without SET ...] [--limit N]

MODEL is a folder that `training.export` wrote. Of collections the model did not learn from, named after
`--learned-without`, every question and claim is scored; of the others those kept aside. With `--limit` at most so many
of each kind, drawn by chance.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from training.export import Judge
from training.pairs import ANSWERS, SUPPORTS, cutter
from training.split import articles_aside, claim_aside, question_aside, rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from training.pairs import Cutter

    Numbers = NDArray[np.float64]
    Row = dict[str, Any]

UNITS = 4
TIMED = 300
"""How many pairs the time is taken of."""


class Scorer:
    """A model that reads whatever was gathered."""

    def __init__(self, judge: Judge, cut: Cutter) -> None:
        self._judge, self._cut = judge, cut

    def question(self, row: Row) -> list[float]:
        """How well each unit answers; a question with fewer units than are read closely is filled up."""
        found = [self._read(ids, ANSWERS) for ids in self.of_question(row)]
        return [*found, *[np.nan] * (UNITS - len(found))]

    def claim(self, row: Row) -> list[float]:
        return [self._read(self.of_claim(row), SUPPORTS)]

    def of_question(self, row: Row) -> list[list[int]]:
        units = [(unit["title"], unit["text"]) for unit in row["units"]]
        return [self._cut.ids(row["question"], unit, head=ANSWERS)[0] for unit in units]

    def of_claim(self, row: Row) -> list[int]:
        return self._cut.ids(row["claim"], (row["title"], row["quote"]), head=SUPPORTS)[0]

    def _read(self, ids: list[int], head: int) -> float:
        return self._judge.read(ids)[head]


def scored(given: Sequence[Row], aside: Sequence[bool], of: Callable[[Row], list[float]], *, width: int) -> Numbers:
    """The scores by row; rows that were learned from have none."""
    found = np.full((len(given), width), np.nan)
    which = [place for place, wanted in enumerate(aside) if wanted]
    with ThreadPoolExecutor(2) as pool:
        for done, (place, scores) in enumerate(
            zip(which, pool.map(of, [given[place] for place in which]), strict=True)
        ):
            found[place] = scores
            if done % 500 == 0:
                print(f"{done} of {len(which)}", file=sys.stderr)
    return found


def drawn(given: Sequence[Row], aside: Sequence[bool], limit: int) -> list[bool]:
    """At most `limit` of those of each collection and kind."""
    order = np.random.default_rng(1).permutation(len(given))
    left: Counter[tuple[Any, ...]] = Counter()
    chosen = [False] * len(given)
    for place in order:
        kind = tuple(given[place].get(name) for name in ("set", "kind", "covered", "supported"))
        left[kind] += aside[place]
        chosen[place] = aside[place] and left[kind] <= limit
    return chosen


def took(pairs: Sequence[list[int]], judge: Judge, clock: Callable[[], float]) -> str:
    """How long a pair takes by this clock."""
    times = []
    for ids in pairs:
        started = clock()
        judge.read(ids)
        times.append((clock() - started) * 1000)
    quick, slow = np.percentile(times, [50, 95])
    return f"{quick:.1f} ms at the median, one in twenty over {slow:.1f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gathered", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--learned-without", nargs="*", default=[])
    parser.add_argument("--limit", type=int, default=sys.maxsize)
    given = parser.parse_args()
    new = {"ray_docs_qa", *given.learned_without}
    asked, claimed = (rows(given.gathered / f"{name}.jsonl") for name in ("asked", "claimed"))
    articles = articles_aside(asked)
    scorer = Scorer(Judge(given.model, threads=1), cutter())
    of_questions = [row["set"] in new or question_aside(row, articles) for row in asked]
    of_claims = [row["set"] in new or claim_aside(row) for row in claimed]
    np.savez(
        given.out,
        asked=scored(asked, drawn(asked, of_questions, given.limit), scorer.question, width=UNITS),
        claimed=scored(claimed, drawn(claimed, of_claims, given.limit), scorer.claim, width=1),
    )
    alone, together = (Judge(given.model, threads=threads) for threads in (1, 2))
    questions = [ids for row in asked[: TIMED // UNITS] for ids in scorer.of_question(row)]
    for name, pairs in (("questions", questions), ("claims", [scorer.of_claim(row) for row in claimed[::8][:TIMED]])):
        print(f"{name}: {len(pairs)} pairs of {np.mean([len(ids) for ids in pairs]):.0f} tokens")
        print("  two threads:", took(pairs, together, time.perf_counter))
        print("  one thread, processor time:", took(pairs, alone, time.thread_time))


if __name__ == "__main__":
    main()
