"""The gain of a second Ray worker: `python -m bench.ray_scaling [--pages N]`.

A written book is ingested on a cluster of this machine with one worker and with two, in turns, and without a cluster.
The cluster runs already, as it would elsewhere, so that its start is in none of the times. Needs the extra `ray`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bench.metrics import Metric
from bench.processes import bythebook, run
from bench.synthetic_book import write_book
from bythebook.models.runtime import available_cores

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.processes import Took

WAYS = {"one worker": ("ray", 1), "two workers": ("ray", 2), "no cluster": ("local", 0)}


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """The address of a local cluster of two workers."""
    script = (
        "import ray, sys\n"
        f"context = ray.init(num_cpus=2, include_dashboard=False, _temp_dir={str(folder)!r})\n"
        "print(context.address_info['address'], flush=True)\n"
        "sys.stdin.read()\n"
    )
    # A client must use the token of the cluster, which is passed in the same variable.
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_AUTH_MODE="token")
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as head:
        if head.stdout is None:
            raise AssertionError("its output is a pipe")
        address = head.stdout.readline().strip()
        if not address:
            raise SystemExit("the cluster did not start. Is Ray installed? pip install 'bythebook[ray]'")
        yield address


def ingested(docs: Path, index: Path, way: str, address: str) -> Took:
    engine, workers = WAYS[way]
    os.environ.update(BYTHEBOOK_RAY_ADDRESS=address, BYTHEBOOK_RAY_WORKERS=str(workers))
    return run(bythebook("ingest", docs, "--data-dir", index, "--engine", engine, "--json"))


def figures(work: Path, *, pages: int, rounds: int) -> Iterator[Metric]:
    docs = write_book(work / "docs", pages=pages, sections=2)
    with cluster(work / "ray") as address:
        for number in range(rounds):
            taken = {way: ingested(docs, work / f"{way} {number}", way, address) for way in WAYS}
            raw = {"chunks": taken["no cluster"].json()["chunks"], "cores": available_cores()}
            raw |= {f"{way} s": took.wall for way, took in taken.items()}
            gained = taken["one worker"].wall / taken["two workers"].wall
            yield Metric("ingest on a cluster, one worker / two workers", gained, raw=raw)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.ray_scaling", description=__doc__)
    parser.add_argument("--pages", type=int, default=500, help="how many pages the written book has")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bythebook-fanning-") as folder:
        for figure in figures(Path(folder), pages=given.pages, rounds=given.rounds):
            print(figure, flush=True)


if __name__ == "__main__":
    main()
