"""The throughput of the server with fifty readers, and the latency it adds to the first word of a model.

python -m bench.serving [--readers 50] [--seconds 30] [--workers 1] [--only extractive|model] [--json]

The book is the manual. The first two parts have no model: readers who never stop asking, and readers who think for
one to three seconds. In the third there is one that takes 300 ms to its first word and 30 ms for each further one. As
many readers ask it directly at the same time, and the difference is what the server adds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from bench.metrics import Metric
from bench.processes import ROOT, bythebook, environment, python, run
from bench.simulated_readers import DOCS, Heard, crowd, post, quantile, questions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

THINKING = (1.0, 3.0)
SPOKEN = (
    "An answer has exactly one outcome. Every sentence of an answer rests on a passage that was retrieved, and a "
    "citation has the verbatim quote that supports it, with a link that opens the page at the very sentence."
)
DELAYS = ("--delay-first", "0.3", "--delay-token", "0.03")
UNLIMITED = "1000000/second"


@contextmanager
def served(folder: Path, *arguments: str, **settings: str) -> Iterator[tuple[str, int]]:
    """The URL and process of a server for the manual, which is ingested if necessary."""
    settings |= {"rate_limit_address": UNLIMITED, "log_level": "warning", "max_conversation_turns": "100000"}
    variables = {f"BYTHEBOOK_{name.upper()}": value for name, value in settings.items()}
    command = bythebook("serve", "--json", "--port", "0", "--data-dir", folder, *arguments)
    with subprocess.Popen(command, env=environment() | variables, stdout=subprocess.PIPE, text=True) as process:
        if process.stdout is None:
            raise AssertionError("its output is a pipe")
        try:
            yield json.loads(process.stdout.readline())["url"], process.pid
        finally:
            process.terminate()


@contextmanager
def model() -> Iterator[str]:
    """The URL of a scripted model with fixed delays in a separate process."""
    command = python("-m", "bythebook.testing", "--port", "0", "--text", SPOKEN, *DELAYS)
    with subprocess.Popen(command, cwd=ROOT, env=environment(), stderr=subprocess.PIPE, text=True) as process:
        if process.stderr is None:
            raise AssertionError("its messages go to a pipe")
        try:
            yield process.stderr.readline().split()[2].rstrip(",")
        finally:
            process.terminate()


async def sessions(url: str, readers: int) -> list[str]:
    made = [await post(f"{url}/v1/sessions", {}, first=b"{") for _ in range(readers)]
    return [json.loads(each.body.partition(b"\r\n\r\n")[2])["id"] for each in made]


async def asking(url: str, readers: int, *, stream: bool) -> Callable[[int], Awaitable[Heard]]:
    """A turn in a new session with a new question."""
    mine, every, number = await sessions(url, readers), questions(readers), count()

    async def turn(reader: int) -> Heard:
        query = every[next(number) % len(every)]
        body = {"query": query, "session_id": mine[reader], "stream": stream}
        heard = await post(f"{url}/v1/ask", body, first=b"event: delta" if stream else b"{")
        if heard.status != 200 or (stream and b"event: answer" not in heard.body):
            raise SystemExit(f"a question failed: {heard.body[-500:].decode()}")
        return heard

    return turn


def directly(url: str) -> Callable[[int], Awaitable[Heard]]:
    """A direct call of the same model."""
    body = {"model": "m", "messages": [{"role": "user", "content": "Tell me."}], "stream": True}
    return lambda _reader: post(f"{url}/chat/completions", body, first=b'"content": "An', last=b"[DONE]")


def memory(pid: int) -> float:
    """The memory of the process and its children in megabytes. Shared memory is counted once."""
    started = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    rollups = (Path(f"/proc/{each}/smaps_rollup").read_text().splitlines() for each in (pid, *started))
    return sum(int(line.split()[1]) for lines in rollups for line in lines if line.startswith("Pss:")) / 1000


def without_a_model(folder: Path, given: argparse.Namespace) -> Iterator[Metric]:
    with served(folder, "--workers", str(given.workers)) as (url, pid):
        for name, thinking in (("never stop", (0.0, 0.0)), ("think 1-3 s", THINKING)):
            heard = asyncio.run(_crowd(url, given, thinking))
            whole = [each.whole for each in heard]
            raw = {"p50 ms": statistics.median(whole), "turns": len(heard), "memory MB": memory(pid)}
            who = f"{given.readers} readers who {name}"
            yield Metric(f"{who}: turns a second", len(heard) / given.seconds, unit="/s", raw=raw)
            yield Metric(f"{who}: whole answer, p95", quantile(whole, 0.95), unit="ms")


async def _crowd(url: str, given: argparse.Namespace, thinking: tuple[float, float]) -> list[Heard]:
    turn = await asking(url, given.readers, stream=False)
    return await crowd(turn, readers=given.readers, seconds=given.seconds, thinking=thinking)


def with_a_model(folder: Path, given: argparse.Namespace) -> Iterator[Metric]:
    with model() as provider:
        settings = {"base_url": provider, "model": "scripted", "retrieval_mode": "prefetch", "followups": "rule"}
        with served(folder, "--workers", str(given.workers), **settings) as (url, pid):
            ours, direct = asyncio.run(_both(url, provider, given))
            used = memory(pid)
    raw = {"turns": len(ours), "direct p50 ms": statistics.median(direct), "ours p50 ms": statistics.median(ours)}
    raw |= {"direct p95 ms": quantile(direct, 0.95), "ours p95 ms": quantile(ours, 0.95), "memory MB": used}
    added = raw["ours p50 ms"] - raw["direct p50 ms"], raw["ours p95 ms"] - raw["direct p95 ms"]
    yield Metric("added to the first word, median", added[0], unit="ms", at_most=25, raw=raw)
    yield Metric("added to the first word, p95", added[1], unit="ms", at_most=100)


async def _both(url: str, provider: str, given: argparse.Namespace) -> tuple[list[float], list[float]]:
    turn = await asking(url, given.readers, stream=True)
    await turn(0)  # warm-up: the first question loads modules
    both = [
        crowd(each, readers=given.readers, seconds=given.seconds, thinking=THINKING)
        for each in (turn, directly(provider))
    ]
    ours, direct = await asyncio.gather(*both)
    # Uncovered questions do not reach the model.
    spoken = [heard.first for heard in ours if b"event: delta" in heard.body]
    return spoken, [heard.first for heard in direct]


PARTS = {"extractive": without_a_model, "model": with_a_model}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--readers", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--only", choices=PARTS, help="this part alone")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = []
    with tempfile.TemporaryDirectory(prefix="bythebook-bench-") as folder:
        run(bythebook("ingest", DOCS, "--data-dir", folder, "--json"))
        for part in (PARTS[given.only],) if given.only else PARTS.values():
            for figure in part(Path(folder), given):
                found.append(figure)
                print(figure, file=sys.stderr if given.json else sys.stdout, flush=True)
    if given.json:
        print(json.dumps({"figures": [figure.to_dict() for figure in found]}, indent=2))
    sys.exit(0 if all(figure.passed for figure in found) else 1)


if __name__ == "__main__":
    main()
