"""Writes a trained network as an ONNX graph in 8-bit integers that reads one pair at a time.

python -m training.export WEIGHTS.npz OUT.onnx [--full]

WEIGHTS is what training/train.py writes beside its checkpoint.

The graph has one input, `ids`: the token ids of `[CLS] claim [SEP] heading: quote [SEP]`, shape [1, tokens], at most
`MAX_TOKENS`. Its output `support`, shape [1], is the log-odds that the quote supports the claim. Weights have one scale
for each output column, words one for each row; activations are quantised at run time, one pair at a time, so that a
score does not depend on other pairs. `--full` writes 32-bit floats instead, to measure what the integers cost.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Array = NDArray[np.float32]
    Weights = Mapping[str, Array]

LAYERS, HEADS, EPSILON = 12, 12, 1e-12
MAX_TOKENS = 256
SEPARATOR = 102
WORD_RANGE, WEIGHT_RANGE = 127, 64
"""Weights stay in -64..64: without an instruction for sums of byte products, pairs of them are added in 16 bits."""
FUSED = "com.microsoft"


class Graph:
    """Collects nodes and constants; each method returns the name of its result."""

    def __init__(self) -> None:
        self._nodes: list[NodeProto] = []
        self._constants: list[TensorProto] = []

    def constant(self, value: NDArray[np.generic]) -> str:
        name = f"constant{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, dtype=np.int64))

    def add(self, operator: str, *inputs: str, domain: str = "", outputs: int = 1, **attributes: float) -> str:
        names = [f"node{len(self._nodes)}.{number}" for number in range(outputs)]
        node = NodeProto(op_type=operator, input=inputs, output=names, domain=domain)
        node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
        self._nodes.append(node)
        return names[0]

    def model(self, result: str) -> bytes:
        given = helper.make_tensor_value_info("ids", TensorProto.INT64, [1, "tokens"])
        made = helper.make_tensor_value_info("support", TensorProto.FLOAT, [1])
        self._nodes.append(NodeProto(op_type="Identity", input=[result], output=["support"]))
        graph = helper.make_graph(self._nodes, "entailment", [given], [made], self._constants)
        versions = [helper.make_opsetid("", 20), helper.make_opsetid(FUSED, 1)]
        serialized: bytes = helper.make_model(graph, opset_imports=versions, ir_version=9).SerializeToString(
            deterministic=True
        )
        return serialized


class Floats:
    """Matrix products in 32-bit floats."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def words(self, table: Array) -> str:
        return self.graph.add("Gather", self.graph.constant(table), "ids")

    def dense(self, values: str, matrix: Array, bias: Array) -> str:
        product = self.graph.add("MatMul", values, self.graph.constant(matrix))
        return self.graph.add("Add", product, self.graph.constant(bias))

    def attention(self, values: str, matrix: Array, bias: Array) -> str:
        constant = self.graph.constant
        return self.graph.add("Attention", values, constant(matrix), constant(bias), domain=FUSED, num_heads=HEADS)


class Integers:
    """Matrix products in 8-bit integers."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def words(self, table: Array) -> str:
        numbers, scale = quantize(table, axis=1, limit=WORD_RANGE)
        add, constant = self.graph.add, self.graph.constant
        rows = add("Cast", add("Gather", constant(numbers), "ids"), to=TensorProto.FLOAT)
        return add("Mul", rows, add("Gather", constant(scale), "ids"))

    def dense(self, values: str, matrix: Array, bias: Array) -> str:
        numbers, scale = quantize(matrix, axis=0, limit=WEIGHT_RANGE)
        constant = self.graph.constant
        no_zeros = ""
        weights = (constant(numbers), constant(scale[0]), no_zeros, constant(bias))
        return self.graph.add("DynamicQuantizeMatMul", values, *weights, domain=FUSED)

    def attention(self, values: str, matrix: Array, bias: Array) -> str:
        numbers, scale = quantize(matrix, axis=0, limit=WEIGHT_RANGE)
        add, constant = self.graph.add, self.graph.constant
        given = add("DynamicQuantizeLinear", values, outputs=3)
        node = given.removesuffix(".0")
        zeros = constant(np.zeros(matrix.shape[1], dtype=np.int8))
        weights = (constant(numbers), constant(bias), f"{node}.1", constant(scale[0]))
        return add("QAttention", given, *weights, "", f"{node}.2", zeros, domain=FUSED, num_heads=HEADS)


def quantize(matrix: Array, *, axis: int, limit: int) -> tuple[NDArray[np.int8], Array]:
    """Numbers in -limit..limit, and the scales along `axis` that turn them back into `matrix`, nearly."""
    largest = np.abs(matrix).max(axis=axis, keepdims=True)
    scale = np.where(largest > 0, largest / limit, 1).astype(np.float32)
    return np.rint(matrix / scale).astype(np.int8), scale


def build_graph(weights: Weights, arithmetic: Floats | Integers) -> bytes:
    """The serialized graph of the network."""
    graph = arithmetic.graph
    values = _embeddings(weights, arithmetic)
    for number in range(LAYERS):
        values = _layer(weights, arithmetic, values=values, at=f"encoder.layer.{number}.")
    first = graph.add("Gather", values, graph.integers(0), axis=1)
    first = graph.add("Reshape", first, graph.integers(1, -1))
    pooled = graph.add("Tanh", _exact(weights, graph, first, "pooler.dense"))
    logits = _exact(weights, graph, pooled, "classifier")
    supported = graph.add("Reshape", graph.add("Slice", logits, *map(graph.integers, (0, 1, 1))), graph.integers(1))
    others = graph.add("Slice", logits, *map(graph.integers, (1, 3, 1)))
    return graph.model(graph.add("Sub", supported, graph.add("ReduceLogSumExp", others, graph.integers(1), keepdims=0)))


def _exact(weights: Weights, graph: Graph, values: str, name: str) -> str:
    product = graph.add("MatMul", values, graph.constant(weights[f"{name}.weight"].T))
    return graph.add("Add", product, graph.constant(weights[f"{name}.bias"]))


def _embeddings(weights: Weights, arithmetic: Floats | Integers) -> str:
    """Words, positions, and kinds: a token after the first separator is of the quote."""
    graph = arithmetic.graph
    ends = graph.add("Cast", graph.add("Equal", "ids", graph.integers(SEPARATOR)), to=TensorProto.INT64)
    passed = graph.add("CumSum", ends, graph.integers(1), exclusive=1)
    kinds = graph.add("Min", passed, graph.integers(1))
    typed = graph.add("Gather", graph.constant(weights["embeddings.token_type_embeddings.weight"]), kinds)
    length = graph.add("Slice", graph.add("Shape", "ids"), graph.integers(1), graph.integers(2))
    positions = graph.constant(weights["embeddings.position_embeddings.weight"][:MAX_TOKENS])
    here = graph.add("Slice", positions, graph.integers(0), length, graph.integers(0))
    words = arithmetic.words(weights["embeddings.word_embeddings.weight"])
    return _norm(
        weights, graph, values=graph.add("Add", graph.add("Add", words, typed), here), at="embeddings.LayerNorm"
    )


def _layer(weights: Weights, arithmetic: Floats | Integers, *, values: str, at: str) -> str:
    parts = [f"{at}attention.self.{part}" for part in ("query", "key", "value")]
    matrix = np.concatenate([weights[f"{part}.weight"].T for part in parts], axis=1)
    bias = np.concatenate([weights[f"{part}.bias"] for part in parts])
    seen = arithmetic.attention(values, matrix, bias)
    values = _output(weights, arithmetic, made=seen, before=values, at=f"{at}attention.output.")
    wide = arithmetic.dense(
        values, weights[f"{at}intermediate.dense.weight"].T, weights[f"{at}intermediate.dense.bias"]
    )
    bent = arithmetic.graph.add("Gelu", wide, domain=FUSED)
    return _output(weights, arithmetic, made=bent, before=values, at=f"{at}output.")


def _output(weights: Weights, arithmetic: Floats | Integers, *, made: str, before: str, at: str) -> str:
    narrow = arithmetic.dense(made, weights[f"{at}dense.weight"].T, weights[f"{at}dense.bias"])
    return _norm(weights, arithmetic.graph, values=arithmetic.graph.add("Add", narrow, before), at=f"{at}LayerNorm")


def _norm(weights: Weights, graph: Graph, *, values: str, at: str) -> str:
    scale, shift = graph.constant(weights[f"{at}.weight"]), graph.constant(weights[f"{at}.bias"])
    return graph.add("LayerNormalization", values, scale, shift, axis=-1, epsilon=EPSILON)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--full", action="store_true")
    given = parser.parse_args()
    arithmetic = Floats(Graph()) if given.full else Integers(Graph())
    written = build_graph(dict(np.load(given.weights)), arithmetic)
    given.out.write_bytes(written)
    print(f"{len(written) / 1e6:.1f} MB in {given.out}")


if __name__ == "__main__":
    main()
