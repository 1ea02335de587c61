"""Ingest: against the bare runtime, against peers, unchanged, and with one edited page."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

from bench.metrics import Metric
from bench.processes import bythebook, python, run
from bench.turns import Runner, in_turns_to_the_end

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bench.processes import Took

EDIT = "\nA lamp keeper trims the wick of the ninth lantern at dusk, whatever the weather.\n"


def figures(work: Path, *, docs: Path, index: Path) -> Iterator[Metric]:
    """All ingest benchmarks. The book remains at `index`."""
    texts = work / "texts.json"
    run(python("-m", "bench.chunk_texts", str(docs), str(texts)))
    yield from _against_peers(work, texts)
    shutil.rmtree(index, ignore_errors=True)
    first, bare = _beside_the_bare_runtime(docs, index, texts)
    yield from _first(first, bare, texts=len(json.loads(texts.read_text(encoding="utf-8"))))
    yield from _again(docs, index, first)
    yield from _edited(docs, index, first)


def _beside_the_bare_runtime(docs: Path, index: Path, texts: Path) -> tuple[Took, Took]:
    """The first ingest, from the start of its process, and the embedding of its texts, from when that is ready."""
    bare = Runner(python("-m", "bench.onnx_baseline", "all", str(texts)))
    bare.hold_when_ready()
    ingest = Runner(_command(docs, index))
    ingest.hold()
    in_turns_to_the_end(ingest, bare)
    return ingest.took(), bare.took()


def _command(docs: Path, index: Path) -> list[str]:
    return bythebook("ingest", docs, "--data-dir", index, "--json")


def _ingest(docs: Path, index: Path) -> Took:
    return run(_command(docs, index))


def _against_peers(work: Path, texts: Path) -> Iterator[Metric]:
    full = work / "full"
    run(python("-m", "bench.full_precision", str(full)))
    rates = run(python("-m", "bench.onnx_baseline", "ways", str(texts), str(full / "graph.onnx"))).json()
    raw = {f"{name} texts/s": rate for name, rate in rates.items()}
    yield Metric("embedding, ours / fp32 in batches of 32 as peers do", rates["ours"] / rates["peers"],
                 at_least=2.0, raw=raw)  # fmt: skip
    yield Metric("embedding, ours / the same graph on two threads", rates["ours"] / rates["sketch"], raw=raw)


def _first(took: Took, bare: Took, *, texts: int) -> Iterator[Metric]:
    report = took.json()
    raw: dict[str, Any] = {"ingest s": took.wall, "bare s": bare.wall, "CPU ratio": took.cpu / bare.cpu}
    raw |= {"pages": report["pages"], "chunks": report["chunks"], "chunks/s": report["chunks"] / took.wall}
    if report["embedded"] != texts:
        raw["embedded"], raw["bare texts"] = report["embedded"], texts
    yield Metric(
        "ingest, whole process / embedding with the bare runtime", took.wall / bare.wall, at_most=1.05, raw=raw
    )
    yield Metric("peak memory of that ingest", took.peak_memory / 1e6, unit="MB", at_most=700.0)


def _again(docs: Path, index: Path, first: Took) -> Iterator[Metric]:
    again = _ingest(docs, index)
    embedded = again.json()["embedded"]
    raw = {"embedded": embedded, "part of the first ingest": again.wall / first.wall}
    yield Metric("ingest again, nothing changed, whole process", again.wall, unit="s", at_most=2.0, raw=raw)
    yield Metric("chunks embedded by it", embedded, unit="", at_most=0)


def _edited(docs: Path, index: Path, first: Took) -> Iterator[Metric]:
    """A sentence more at the end of one page: its last chunk is new, or the two that it is cut into."""
    page = sorted(docs.rglob("*.md"))[0]
    before = page.read_text(encoding="utf-8")
    try:
        page.write_text(before + EDIT, encoding="utf-8")
        took = _ingest(docs, index)
    finally:
        page.write_text(before, encoding="utf-8")
    report = took.json()
    raw = {"changed pages": report["changed"], "part of the first ingest": took.wall / first.wall}
    yield Metric("ingest again, one page edited, whole process", took.wall, unit="s", at_most=3.0, raw=raw)
    yield Metric("chunks embedded by it", report["embedded"], unit="", at_most=2)
    _ingest(docs, index)
