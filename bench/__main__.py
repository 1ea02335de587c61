"""`python -m bench`: every metric as a ratio measured in one run, with its limit."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from bench import answer, ingest, size, startup
from bench.metrics import Metric
from bench.processes import ROOT, bythebook, python, run
from bench.synthetic_book import write_book

if TYPE_CHECKING:
    from collections.abc import Iterator

PARTS = ("ingest", "search", "start", "answer", "size")
PAGES, SECTIONS, FULL_SECTIONS = 500, 2, 6
ROUNDS, FULL_ROUNDS = 15, 41
SHARD, FULL_SHARD = 10_000, 100_000
MANUAL_QUESTION, BOOK_QUESTION = "How are chunks made?", "When does the amber buffer start?"


def main() -> None:
    given = _arguments()
    found: list[Metric] = []
    for figure in _figures(given):
        found.append(figure)
        print(figure, file=sys.stderr if given.json else sys.stdout, flush=True)
    if given.json:
        print(json.dumps({"figures": [figure.to_dict() for figure in found]}, indent=2))
    sys.exit(0 if all(figure.passed for figure in found) else 1)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("only", nargs="*", metavar="PART", help=f"what to measure: {', '.join(PARTS)}; all by default")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--full",
        action="store_true",
        help="also 100,000 chunks, longer pages and more rounds; takes about half an hour",
    )
    parser.add_argument("--pages", type=int, default=PAGES, help="how many pages the written book has")
    parser.add_argument("--docs", type=Path, help="measure with a copy of this folder instead of a written book")
    given = parser.parse_args()
    if wrong := set(given.only) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(wrong))}; there are {', '.join(PARTS)}")
    return given


def _figures(given: argparse.Namespace) -> Iterator[Metric]:
    wanted = given.only or PARTS
    kept = ROOT / ".bythebook" / "bench"
    kept.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bythebook-bench-") as folder:
        work = Path(folder)
        docs, index = _book(given, work), work / "index"
        if "size" in wanted:
            yield from size.figures(ROOT / "requirements.lock")
        if "ingest" in wanted:
            yield from ingest.figures(work, docs=docs, index=index)
        if "start" in wanted:
            yield from _starts(given, work, docs=docs, index=index)
        if "answer" in wanted:
            yield from answer.figures(kept)
        if "search" in wanted:
            for chunks in (SHARD, FULL_SHARD) if given.full else (SHARD,):
                yield from _searches(kept, chunks=chunks)


def _book(given: argparse.Namespace, work: Path) -> Path:
    """The pages of the benchmark. They are edited during the run, so a given folder is copied."""
    docs = work / "docs"
    if given.docs:
        return Path(shutil.copytree(given.docs, docs))
    return write_book(docs, pages=given.pages, sections=FULL_SECTIONS if given.full else SECTIONS)


def _starts(given: argparse.Namespace, work: Path, *, docs: Path, index: Path) -> Iterator[Metric]:
    rounds = FULL_ROUNDS if given.full else ROUNDS
    manual = work / "manual"
    run(bythebook("ingest", ROOT / "docs", "--data-dir", manual, "--json"))
    if not index.exists():
        run(bythebook("ingest", docs, "--data-dir", index, "--json"))
    books = {"the manual": (manual, MANUAL_QUESTION), "the book": (index, BOOK_QUESTION)}
    yield from startup.answers(books, rounds=rounds)
    yield from startup.smallest(rounds=5)


def _searches(kept: Path, *, chunks: int) -> Iterator[Metric]:
    raw = run(python("-m", "bench.search", str(chunks), str(kept / f"shard-{chunks}"))).json()
    for label, limit in (("p50", 1.3), ("p95", None)):
        ours, engine, threaded = (raw[f"{name} {label} ms"] for name in ("ours", "engine", "engine in a thread"))
        name = f"hybrid search of {chunks} chunks, {label}, ours / the engine's"
        yield Metric(
            name, ours / engine, at_most=limit, raw={"ours ms": ours, "engine ms": engine, "in a thread ms": threaded}
        )


if __name__ == "__main__":
    main()
