"""Four times as many readers as the capacity of a server.

python -m bench.overload [--places 50] [--seconds 30] [--workers 1] [--arriving 0] [--json]

Admitted requests should not slow down, and the others should be rejected at once. A rejected reader retries after the
time that Retry-After names. The model takes 300 ms to its first word and 30 ms for each further one. The model, the
server and the readers are separate processes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from bench.metrics import Metric
from bench.processes import bythebook, run
from bench.serving import model, served
from bench.simulated_readers import DOCS, get, post, quantile

if TYPE_CHECKING:
    from collections.abc import Iterator

QUESTION = "How are chunks made?"


@dataclass(slots=True)
class OverloadTimes:
    """All durations, in milliseconds."""

    answered: list[float] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)
    live: list[float] = field(default_factory=list)


async def crowd(url: str, *, readers: int, seconds: float, arriving: float) -> OverloadTimes:
    """Readers who arrive within so many seconds and ask again after each answer or rejection, with a continuous
    liveness probe."""
    took, until, chance = OverloadTimes(), time.monotonic() + seconds, random.Random(readers)  # noqa: S311 - always the same

    async def read() -> None:
        await asyncio.sleep(chance.uniform(0, arriving))
        while time.monotonic() < until:
            heard = await post(f"{url}/v1/ask", {"query": QUESTION}, first=b"{")
            (took.answered if heard.status == 200 else took.refused).append(heard.whole)
            wait = re.search(rb"(?i)\r\nretry-after: ([0-9]+)", heard.body)
            await asyncio.sleep(float(wait[1]) if wait else 0)

    async def look() -> None:
        while time.monotonic() < until:
            took.live.append((await get(f"{url}/health/live")).whole)
            await asyncio.sleep(0.05)

    await asyncio.gather(look(), *(read() for _ in range(readers)))
    return took


def measured(folder: Path, *, places: int, seconds: float, workers: int = 1, arriving: float = 0.0) -> Iterator[Metric]:
    """What those with a place and those without one notice of the crowd."""
    went = {"seconds": seconds, "arriving": arriving}
    with model() as provider:
        settings = {"base_url": provider, "model": "scripted", "retrieval_mode": "prefetch"}
        settings["max_concurrent_requests"] = str(places // workers)
        with served(folder, "--workers", str(workers), **settings) as (url, _):
            # The lazy loading of the first question is not measured.
            asyncio.run(crowd(url, readers=1, seconds=1, arriving=0))
            alone = asyncio.run(crowd(url, readers=places, **went))
            many = asyncio.run(crowd(url, readers=4 * places, **went))
    before, now = statistics.median(alone.answered), statistics.median(many.answered)
    raw = {"ms": now, "ms before": before, "answered": len(many.answered), "refused": len(many.refused)}
    yield Metric("a whole answer in a crowd / before", now / before, at_most=1.2, raw=raw)
    yield Metric("refused within, p99", quantile(many.refused, 0.99), unit="ms", at_most=100)
    yield Metric("/health/live in a crowd, p99", quantile(many.live, 0.99), unit="ms", at_most=100)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--places", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument(
        "--arriving",
        type=float,
        default=0.0,
        metavar="S",
        help="within which they come; all in the same instant unless given",
    )
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bythebook-bench-") as folder:
        run(bythebook("ingest", DOCS, "--data-dir", folder, "--json"))
        wanted = {name: getattr(given, name) for name in ("places", "seconds", "workers", "arriving")}
        found = list(measured(Path(folder), **wanted))
    print(json.dumps([figure.to_dict() for figure in found], indent=2) if given.json else "\n".join(map(str, found)))
    sys.exit(0 if all(figure.passed for figure in found) else 1)


if __name__ == "__main__":
    main()
