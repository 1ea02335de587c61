"""Turns MiniLM's published weights into a graph of bytes that runs fast on any processor and opens at once.

The graph is written in its final form, so nothing is left for onnxruntime to optimise when it is opened:

- It takes one text, without padding, so there is no attention mask to carry. Quantising is per tensor and would
  make the vectors of a batch depend on each other; alone, a text gives the same bits everywhere.
- Weights are bytes, scaled for each output column, in -64..64: on processors without VNNI, products of full-range
  bytes overflow the 16-bit sums. The scale of the activations is found at run time.
- Words are bytes, scaled for each row.
- The bias, the residual and the norm are three nodes. onnxruntime's fused one is several times slower than they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from bythebook.errors import ConfigurationError
from bythebook.vectors.graph import Graph

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Array = NDArray[np.float32]
    Weights = Mapping[str, Array]

LAYERS, HEADS, WIDTH = 6, 12, 384
LONGEST = 256
EPSILON = 1e-12
WORD_RANGE, WEIGHT_RANGE = 127, 64


def quantized_graph(weights: Weights) -> bytes:
    """An ONNX file that turns token ids into a unit vector, with a quarter of the bytes of `weights`."""
    return _graph(weights, QuantizedMath(Graph()))


def full_graph(weights: Weights) -> bytes:
    """The same computation in 32-bit floats: slow and large, and what `quantized_graph` is measured against."""
    return _graph(weights, FullMath(Graph()))


class Math(Protocol):
    """The steps whose arithmetic differs between the two graphs."""

    graph: Graph

    def words(self, table: Array, ids: str) -> str: ...
    def dense(self, values: str, matrix: Array) -> str: ...
    def attention(self, values: str, matrix: Array, bias: Array) -> str: ...


class FullMath:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def words(self, table: Array, ids: str) -> str:
        return self.graph.add("Gather", self.graph.constant(table), ids)

    def dense(self, values: str, matrix: Array) -> str:
        return self.graph.add("MatMul", values, self.graph.constant(matrix))

    def attention(self, values: str, matrix: Array, bias: Array) -> str:
        constant = self.graph.constant
        return self.graph.fused("Attention", values, constant(matrix), constant(bias), num_heads=HEADS)


class QuantizedMath:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def words(self, table: Array, ids: str) -> str:
        numbers, scale = as_bytes(table, axis=1, limit=WORD_RANGE)
        add, constant = self.graph.add, self.graph.constant
        rows = add("Cast", add("Gather", constant(numbers), ids), to=1)
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
        return self.graph.fused("QAttention", given, *weights, "", given_zero, zeros, num_heads=HEADS)


def as_bytes(matrix: Array, *, axis: int, limit: int) -> tuple[NDArray[np.int8], Array]:
    """Numbers in -limit..limit, and the scales along `axis` that turn them back into `matrix`, nearly."""
    largest = np.abs(matrix).max(axis=axis, keepdims=True)
    scale = np.where(largest > 0, largest / limit, 1).astype(np.float32)
    return np.rint(matrix / scale).astype(np.int8), scale


def _graph(weights: Weights, math: Math) -> bytes:
    graph, ids = math.graph, "ids"
    try:
        values = _embeddings(weights, math, ids)
        for number in range(LAYERS):
            values = _layer(weights, math, values, at=f"encoder.layer.{number}.")
    except KeyError as exc:
        raise ConfigurationError(f"The weights are not those of all-MiniLM-L6-v2: {exc} is missing.") from exc
    mean = graph.add("ReduceMean", values, graph.integers(1), keepdims=0)
    return graph.finish(graph.add("LpNormalization", mean, axis=-1, p=2), ids=ids, width=WIDTH)


def _embeddings(weights: Weights, math: Math, ids: str) -> str:
    graph, at = math.graph, "embeddings."
    places = weights[f"{at}position_embeddings.weight"][:LONGEST] + weights[f"{at}token_type_embeddings.weight"][0]
    length = graph.add("Slice", graph.add("Shape", ids), graph.integers(1), graph.integers(2))
    here = graph.add("Slice", graph.constant(places), graph.integers(0), length, graph.integers(0))
    words = math.words(weights[f"{at}word_embeddings.weight"], ids)
    return _norm(weights, graph, graph.add("Add", words, here), at=f"{at}LayerNorm")


def _layer(weights: Weights, math: Math, values: str, *, at: str) -> str:
    parts = [f"{at}attention.self.{part}" for part in ("query", "key", "value")]
    matrix = np.concatenate([weights[f"{part}.weight"].T for part in parts], axis=1)
    bias = np.concatenate([weights[f"{part}.bias"] for part in parts])
    seen = math.attention(values, matrix, bias)
    values = _joined(weights, math, (seen, values), at=f"{at}attention.output.")
    wide = math.dense(values, weights[f"{at}intermediate.dense.weight"].T)
    bent = math.graph.fused("BiasGelu", wide, math.graph.constant(weights[f"{at}intermediate.dense.bias"]))
    return _joined(weights, math, (bent, values), at=f"{at}output.")


def _joined(weights: Weights, math: Math, pair: tuple[str, str], *, at: str) -> str:
    new, before = pair
    graph = math.graph
    made = math.dense(new, weights[f"{at}dense.weight"].T)
    total = graph.add("Add", graph.add("Add", made, graph.constant(weights[f"{at}dense.bias"])), before)
    return _norm(weights, graph, total, at=f"{at}LayerNorm")


def _norm(weights: Weights, graph: Graph, values: str, *, at: str) -> str:
    scale, shift = graph.constant(weights[f"{at}.weight"]), graph.constant(weights[f"{at}.bias"])
    return graph.add("LayerNormalization", values, scale, shift, axis=-1, epsilon=EPSILON)
