"""Embedding with the bare runtime: the same texts in several ways.

`python -m bench.onnx_baseline all TEXTS` says when it is ready and embeds every text in the fastest of them. `python -m
bench.onnx_baseline ways TEXTS GRAPH` embeds a sample in all of them, taking turns, and prints texts a second as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime  # type: ignore[import-untyped]
from tokenizers import Tokenizer

from bythebook.models import GRANITE, install
from bythebook.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Way = Callable[[Sequence[str]], None]

CORES = 2
PEERS_BATCH = 32
LONGEST, FIRST, LAST = 512, 0, 2
SAMPLE = 4 * PEERS_BATCH


def main() -> None:
    task, texts = sys.argv[1], json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    model = install.find(Settings.load().model_folder, GRANITE).folder
    tokenizer = Tokenizer.from_file(str(model / install.TOKENIZER))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    if task == "all":
        way = ours(model, tokenizer)
        way(texts[:CORES])
        print("ready", flush=True)
        way(texts)
        return
    ways = {
        "ours": ours(model, tokenizer),
        "sketch": sketch(model, tokenizer),
        "peers": peers(Path(sys.argv[3]), tokenizer),
    }
    print(json.dumps(_in_turns(ways, texts[:: max(len(texts) // SAMPLE, 1)][:SAMPLE])))


def ours(model: Path, tokenizer: Tokenizer) -> Way:
    """One text at a time on each core, with the graph as stored."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.enable_mem_pattern = options.enable_cpu_mem_arena = False
    session = _session(model / install.GRAPH, options)
    pool = ThreadPoolExecutor(CORES)

    def embed(text: str) -> None:
        session.run(None, {"ids": np.array([_ids(tokenizer, text)], dtype=np.int64)})

    def way(texts: Sequence[str]) -> None:
        list(pool.map(embed, texts))

    return way


def sketch(model: Path, tokenizer: Tokenizer) -> Way:
    """One text at a time on all cores, the usual way."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = CORES
    session = _session(model / install.GRAPH, options)

    def way(texts: Sequence[str]) -> None:
        for text in texts:
            session.run(None, {"ids": np.array([_ids(tokenizer, text)], dtype=np.int64)})

    return way


def peers(graph: Path, tokenizer: Tokenizer) -> Way:
    """Full precision in padded batches of 32 texts of similar length, as embedding libraries do."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = CORES
    session = _session(graph, options)

    def way(texts: Sequence[str]) -> None:
        rows = sorted((_ids(tokenizer, text) for text in texts), key=len)
        for first in range(0, len(rows), PEERS_BATCH):
            batch = rows[first : first + PEERS_BATCH]
            width = max(map(len, batch))
            session.run(None, {"ids": np.array([row + [0] * (width - len(row)) for row in batch], dtype=np.int64)})

    return way


def _session(graph: Path, options: Any) -> Any:
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def _ids(tokenizer: Tokenizer, text: str) -> list[int]:
    return [FIRST, *tokenizer.encode(text, add_special_tokens=False).ids[: LONGEST - 2], LAST]


def _timed(way: Way, texts: Sequence[str]) -> float:
    way(texts[:CORES])
    started = time.perf_counter()
    way(texts)
    return time.perf_counter() - started


def _in_turns(ways: dict[str, Way], texts: Sequence[str]) -> dict[str, float]:
    """Texts per second of each way. The ways alternate after each batch."""
    seconds = dict.fromkeys(ways, 0.0)
    for first in range(0, len(texts), PEERS_BATCH):
        for name, way in ways.items():
            seconds[name] += _timed(way, texts[first : first + PEERS_BATCH])
    return {name: len(texts) / taken for name, taken in seconds.items()}


if __name__ == "__main__":
    main()
