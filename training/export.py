"""Writes what was learned as a graph of bytes that onnxruntime runs by itself, and reads pairs with it.

python -m training.export WEIGHTS LEARNED.npz OUT

WEIGHTS is the published `model.safetensors`, LEARNED what training/train.py wrote, OUT a folder for the graph.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bythebook.embeddings.minilm.download import CONSTANTS, GRAPH
from bythebook.embeddings.minilm.embedder import LAST
from bythebook.embeddings.minilm.onnx_export import LONGEST, Bytes, Graph, _layer, _norm, read_tensors

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from bythebook.embeddings.minilm.onnx_export import Arithmetic, Written

    Weights = Mapping[str, NDArray[np.float32]]

INT64 = 7
HEADS = 2


def evidence_graph(weights: Weights, *, beside: str) -> Written:
    """A graph from the ids of two texts to the logits of both heads."""
    arithmetic = Bytes(Graph(beside=beside))
    graph, ids = arithmetic.graph, "ids"
    add, constant = graph.add, graph.constant
    values = _embeddings(weights, arithmetic, ids=ids)
    number = 0
    while f"encoder.layer.{number}.output.dense.weight" in weights:
        values = _layer(weights, arithmetic, values=values, at=f"encoder.layer.{number}.")
        number += 1
    tokens = add("MatMul", values, constant(np.ascontiguousarray(weights["token.weight"].T)))
    tokens = add("Add", tokens, constant(weights["token.bias"]))
    most = add("ReduceMax", tokens, graph.integers(1), keepdims=0)
    mean = add("ReduceMean", values, graph.integers(1), keepdims=0)
    heads = add("MatMul", mean, constant(np.ascontiguousarray(weights["heads.weight"].T)))
    heads = add("Add", heads, constant(weights["heads.bias"]))
    both = add("Add", heads, add("Mul", most, constant(weights["most"][None, :])))
    return graph.finish(both, ids=ids, width=HEADS)


def _embeddings(weights: Weights, arithmetic: Arithmetic, *, ids: str) -> str:
    """Those of the embedding model, but that what follows the first separator is of the second kind."""
    graph, at = arithmetic.graph, "embeddings."
    add, constant = graph.add, graph.constant
    ends = add("Cast", add("Equal", ids, graph.integers(LAST)), to=INT64)
    passed = add("CumSum", ends, graph.integers(1), exclusive=1)
    kinds = add("Min", passed, graph.integers(1))
    typed = add("Gather", constant(weights[f"{at}token_type_embeddings.weight"]), kinds)
    length = add("Slice", add("Shape", ids), graph.integers(1), graph.integers(2))
    places = constant(weights[f"{at}position_embeddings.weight"][:LONGEST])
    here = add("Slice", places, graph.integers(0), length, graph.integers(0))
    words = arithmetic.words(weights[f"{at}word_embeddings.weight"], ids)
    return _norm(weights, graph, values=add("Add", add("Add", words, typed), here), at=f"{at}LayerNorm")


class Judge:
    """The finished model: reads one pair at a time, on so many threads."""

    def __init__(self, folder: Path, *, threads: int) -> None:
        import onnxruntime  # type: ignore[import-untyped]

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 3
        self._session: Any = onnxruntime.InferenceSession(folder / GRAPH, options, providers=["CPUExecutionProvider"])

    def read(self, ids: Sequence[int]) -> tuple[float, float]:
        """The logits: does the sentence answer the question, do the quotes support the claim?"""
        (found,) = self._session.run(None, {"ids": np.array([ids], dtype=np.int64)})
        return float(found[0, 0]), float(found[0, 1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path)
    parser.add_argument("learned", type=Path)
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    published = read_tensors(given.weights.read_bytes())
    learned = dict(np.load(given.learned))
    kept = {name: value for name, value in published.items() if name.startswith("embeddings.")}
    written = evidence_graph({**kept, **learned}, beside=CONSTANTS)
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / GRAPH).write_bytes(written.graph)
    (given.out / CONSTANTS).write_bytes(written.constants)
    print(f"{(len(written.graph) + len(written.constants)) / 1e6:.1f} MB in {given.out}")


if __name__ == "__main__":
    main()
