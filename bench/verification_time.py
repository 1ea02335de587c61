"""The time to check a model's answer: evidence scoring before it, and verification of its five sentences after it.

python -m bench.verification_time [--times 40] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bythebook.answers.verification import prove
from bythebook.book import Book
from bythebook.index import NO_FILTERS
from bythebook.retrieval.evidence import score_evidence
from bythebook.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

BOOK = Path(__file__).parent.parent / "tests" / "books" / "lighthouse"
QUESTION = "How often does the fog horn sound, and what if it fails?"
ANSWER = (
    "The horn gives two blasts of three seconds every ninety seconds [1]. Ships know Brannock Point by this pattern "
    "[1]. The fog horn is sounded when the visibility falls below two nautical miles [2]. If the compressor fails, "
    "ring the bell by hand once a minute [3]. Then send the distress form to the harbour office at once [3]."
)
LIMIT, GOAL = 60.0, 20.0


def processor() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


async def timed(work: Callable[[], Awaitable[object]], times: int) -> dict[str, float]:
    """The median of elapsed and of processor milliseconds. The first three runs are for warm-up."""
    passed, worked = [], []
    for turn in range(times + 3):
        before, used = time.perf_counter(), processor()
        await work()
        if turn >= 3:
            passed.append((time.perf_counter() - before) * 1000)
            worked.append((processor() - used) * 1000)
    return {"passed": statistics.median(passed), "worked": statistics.median(worked)}


async def check(times: int) -> dict[str, dict[str, float]]:
    with tempfile.TemporaryDirectory() as folder:
        async with Book.open(Settings.load({"data_dir": Path(folder)})) as book:
            await book.ingest(BOOK)
            async with book.snapshot() as snapshot:
                retrieved = await book.retriever.retrieve(snapshot, QUESTION, top_k=5, filters=NO_FILTERS)
                found = retrieved.context.results
                entailment = await book.open_entailment()

                async def evidence() -> None:
                    await score_evidence(snapshot, book.reader, retrieved)

                async def proof() -> None:
                    proven = await prove(ANSWER, found, snapshot=snapshot, entailment=entailment)
                    if proven.share < 1:
                        raise SystemExit(f"five sentences were to be proven, not {proven.share:.0%} of them")

                async def both() -> None:
                    await evidence()
                    await proof()

                work = {"evidence": evidence, "proof": proof, "both": both}
                return {name: await timed(once, times) for name, once in work.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=40)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    took = asyncio.run(check(options.times))
    if options.json:
        print(json.dumps(took))
        return
    for name, spent in took.items():
        limit = f"  (at most {LIMIT:.0f}, better {GOAL:.0f})" if name == "both" else ""
        print(f"{name:<9} {spent['passed']:6.1f} ms, {spent['worked']:6.1f} ms of processor time{limit}")


if __name__ == "__main__":
    main()
