"""A whole answer without a model, in one process: `python -m bench.answer INDEX` prints milliseconds as JSON.

Every question is asked once, so nothing of it is cached. `INDEX` is the data folder of a written book.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bench.metrics import Metric
from bench.processes import bythebook, python, run
from bench.synthetic_book import things, write_book
from bythebook import Book, Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGES, SECTIONS = 598, 8
"""About 10,000 chunks."""
WARM_UP, QUESTIONS = 5, 60
_FORMS = (
    "When does the {} start?", "What are the limits of the {}?", "How is the {} upgraded?",
    "Which setting has the {} react faster?", "What happens when the {} fails?",
)  # fmt: skip
_STAGES = ("embedding_time_ms", "retrieval_time_ms", "reranking_time_ms", "proof_time_ms")


def figures(kept: Path) -> Iterator[Metric]:
    """The time of an answer. The book is written and ingested once."""
    index = kept / "answer-index"
    if not (index / "index" / "CURRENT").exists():
        docs = write_book(kept / "answer-book", pages=PAGES, sections=SECTIONS)
        run(bythebook("ingest", docs, "--data-dir", index, "--json"))
    took = run(python("-m", "bench.answer", str(index))).json()
    stages = {name.removesuffix("_time_ms") + " ms": took[name] for name in _STAGES}
    chunks = run(bythebook("status", "--data-dir", index, "--json")).json()["chunks"]
    name = f"extractive answer, {chunks} chunks, median"
    yield Metric(f"{name}, wall time", took["wall"], "ms", at_most=120.0, raw={"p95 ms": took["p95"]} | stages)
    yield Metric(f"{name}, processor time", took["cpu"], "ms", at_most=250.0, raw={"answered": took["answered"]})


async def measure(index: Path) -> dict[str, float]:
    """Medians in milliseconds over questions that were not asked before."""
    walls, cpus, answered = list[float](), list[float](), 0
    stages: dict[str, list[float]] = {name: [] for name in _STAGES}
    questions = [_FORMS[at % len(_FORMS)].format(thing) for at, thing in enumerate(things()[7::9])]
    async with Book.open(Settings.load({"data_dir": index})) as book:
        for question in questions[:WARM_UP]:
            await book.ask(question)
        for question in questions[WARM_UP : WARM_UP + QUESTIONS]:
            wall, cpu = time.perf_counter(), time.process_time()
            response = await book.ask(question)
            walls.append(1000 * (time.perf_counter() - wall))
            cpus.append(1000 * (time.process_time() - cpu))
            answered += response.grounded
            for name, times in stages.items():
                times.append(getattr(response.metadata, name))
    found = {"wall": statistics.median(walls), "p95": statistics.quantiles(walls, n=20)[-1]}
    found |= {name: statistics.median(times) for name, times in stages.items()}
    return found | {"cpu": statistics.median(cpus), "answered": answered}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure(Path(sys.argv[1])))))
