"""Turns MiniLM's published weights into a graph of bytes that runs fast on ordinary processors and opens at once.

The graph is written in its final form, so nothing is left for onnxruntime to optimise when it is opened:

- It takes one text, without padding, so there is no attention mask to carry. Activations are quantised by one scale
  for the whole tensor; in a batch the vector of a text would depend on what stands beside it.
- Weights are bytes, scaled for each output column, in -64..64: where a processor has no instruction for sums of byte
  products, it adds pairs of them in 16 bits, and 2 x 255 x 64 is the most that fits.
- Words are bytes, scaled for each row.
- Bias, residual and norm are separate nodes. onnxruntime's fused one is seven times slower than its plain norm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from bythebook.errors import ConfigurationError
from bythebook.vectors.graph import Graph

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from bythebook.vectors.graph import Written

    Array = NDArray[np.float32]
    Weights = Mapping[str, Array]

LAYERS, HEADS, WIDTH = 6, 12, 384
LONGEST = 256
EPSILON = 1e-12
WORD_RANGE, WEIGHT_RANGE = 127, 64
FLOAT = 1


def quantized_graph(weights: Weights, *, beside: str) -> Written:
    """A graph from token ids to a unit vector, a quarter of the size of `weights`. `beside` will name its constants."""
    return _graph(weights, Bytes(Graph(beside=beside)))


def full_graph(weights: Weights, *, beside: str) -> Written:
    """The same computation in 32-bit floats: slow and large, and what `quantized_graph` is measured against."""
    return _graph(weights, Floats(Graph(beside=beside)))


class Arithmetic(Protocol):
    """The steps that the two graphs compute differently."""

    graph: Graph

    def words(self, table: Array, ids: str) -> str: ...
    def dense(self, values: str, matrix: Array) -> str: ...
    def attention(self, values: str, matrix: Array, bias: Array) -> str: ...


class Floats:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def words(self, table: Array, ids: str) -> str:
        return self.graph.add("Gather", self.graph.constant(table), ids)

    def dense(self, values: str, matrix: Array) -> str:
        return self.graph.add("MatMul", values, self.graph.constant(matrix))

    def attention(self, values: str, matrix: Array, bias: Array) -> str:
        constant = self.graph.constant
        return self.graph.fused("Attention", values, constant(matrix), constant(bias), num_heads=HEADS)


class Bytes:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def words(self, table: Array, ids: str) -> str:
        numbers, scale = as_bytes(table, axis=1, limit=WORD_RANGE)
        add, constant = self.graph.add, self.graph.constant
        rows = add("Cast", add("Gather", constant(numbers), ids), to=FLOAT)
        return add("Mul", rows, add("Gather", constant(scale), ids))

    def dense(self, values: str, matrix: Array) -> str:
        numbers, scale = as_bytes(matrix, axis=0, limit=WEIGHT_RANGE)
        constant = self.graph.constant
        return self.graph.fused("DynamicQuantizeMatMul", values, constant(numbers), constant(scale[0]))

    def attention(self, values: str, matrix: Array, bias: Array) -> str:
        numbers, scale = as_bytes(matrix, axis=0, limit=WEIGHT_RANGE)
        constant = self.graph.constant
        given, given_scale, given_zero = self.graph.quantize(values)
        zeros = constant(np.zeros(matrix.shape[1], dtype=np.int8))
        weights = (constant(numbers), constant(bias), given_scale, constant(scale[0]))
        no_mask = ""
        return self.graph.fused("QAttention", given, *weights, no_mask, given_zero, zeros, num_heads=HEADS)


def as_bytes(matrix: Array, *, axis: int, limit: int) -> tuple[NDArray[np.int8], Array]:
    """Numbers in -limit..limit, and the scales along `axis` that turn them back into `matrix`, nearly."""
    largest = np.abs(matrix).max(axis=axis, keepdims=True)
    scale = np.where(largest > 0, largest / limit, 1).astype(np.float32)
    return np.rint(matrix / scale).astype(np.int8), scale


def _graph(weights: Weights, arithmetic: Arithmetic) -> Written:
    graph, ids = arithmetic.graph, "ids"
    try:
        values = _embeddings(weights, arithmetic, ids=ids)
        for number in range(LAYERS):
            values = _layer(weights, arithmetic, values=values, at=f"encoder.layer.{number}.")
    except KeyError as exc:
        raise ConfigurationError(f"The weights are not those of all-MiniLM-L6-v2: they lack {exc}.") from exc
    mean = graph.add("ReduceMean", values, graph.integers(1), keepdims=0)
    return graph.finish(graph.add("LpNormalization", mean, axis=-1, p=2), ids=ids, width=WIDTH)


def _embeddings(weights: Weights, arithmetic: Arithmetic, *, ids: str) -> str:
    graph, at = arithmetic.graph, "embeddings."
    places = weights[f"{at}position_embeddings.weight"][:LONGEST] + weights[f"{at}token_type_embeddings.weight"][0]
    length = graph.add("Slice", graph.add("Shape", ids), graph.integers(1), graph.integers(2))
    here = graph.add("Slice", graph.constant(places), graph.integers(0), length, graph.integers(0))
    words = arithmetic.words(weights[f"{at}word_embeddings.weight"], ids)
    return _norm(weights, graph, values=graph.add("Add", words, here), at=f"{at}LayerNorm")


def _layer(weights: Weights, arithmetic: Arithmetic, *, values: str, at: str) -> str:
    parts = [f"{at}attention.self.{part}" for part in ("query", "key", "value")]
    matrix = np.concatenate([weights[f"{part}.weight"].T for part in parts], axis=1)
    bias = np.concatenate([weights[f"{part}.bias"] for part in parts])
    seen = arithmetic.attention(values, matrix, bias)
    values = _joined(weights, arithmetic, made=seen, before=values, at=f"{at}attention.output.")
    wide = arithmetic.dense(values, weights[f"{at}intermediate.dense.weight"].T)
    graph = arithmetic.graph
    bent = graph.fused("BiasGelu", wide, graph.constant(weights[f"{at}intermediate.dense.bias"]))
    return _joined(weights, arithmetic, made=bent, before=values, at=f"{at}output.")


def _joined(weights: Weights, arithmetic: Arithmetic, *, made: str, before: str, at: str) -> str:
    """What a part of a layer made, brought to its width, added to what came before it, and normed."""
    graph = arithmetic.graph
    narrow = arithmetic.dense(made, weights[f"{at}dense.weight"].T)
    shifted = graph.add("Add", narrow, graph.constant(weights[f"{at}dense.bias"]))
    return _norm(weights, graph, values=graph.add("Add", shifted, before), at=f"{at}LayerNorm")


def _norm(weights: Weights, graph: Graph, *, values: str, at: str) -> str:
    scale, shift = graph.constant(weights[f"{at}.weight"]), graph.constant(weights[f"{at}.bias"])
    return graph.add("LayerNormalization", values, scale, shift, axis=-1, epsilon=EPSILON)
