"""Converts MiniLM's published weights to a quantised ONNX graph that opens fast and runs fast on ordinary processors.

The graph is written in its final form, so onnxruntime has nothing to optimise when it opens it:

- It takes one text without padding, so it needs no attention mask. Activations are quantised by one scale for the
  whole tensor; in a batch, the vector of a text would depend on the other texts.
- Weights are int8, scaled for each output column, in -64..64: a processor without an instruction for sums of byte
  products adds pairs of them in 16 bits, and 2 x 255 x 64 is the most that fits.
- Word embeddings are int8, scaled for each row.
- Bias, residual and norm are separate nodes. onnxruntime's fused node is seven times slower than its plain norm.

Large constants go into a second file, which onnxruntime maps into memory instead of reading it: the graph opens in
half the time, and processes share one copy. This is the only module that needs the `onnx` package.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper, numpy_helper
from safetensors import SafetensorError
from safetensors.numpy import load

from bythebook.errors import ConfigurationError

Array = NDArray[np.float32]
Weights = Mapping[str, Array]
Attribute = int | float


LAYERS, HEADS, WIDTH = 6, 12, 384
MAX_TOKENS = 256
EPSILON = 1e-12
WORD_RANGE, WEIGHT_RANGE = 127, 64
FLOAT = 1


def quantized_graph(weights: Weights, *, constants_file: str) -> OnnxGraph:
    """A graph from token ids to a unit vector, a quarter of the size of `weights`."""
    return _graph(weights, Int8Arithmetic(GraphBuilder(constants_file=constants_file)))


def full_graph(weights: Weights, *, constants_file: str) -> OnnxGraph:
    """The same computation in 32-bit floats: slow and large. It is the reference for `quantized_graph`."""
    return _graph(weights, Float32Arithmetic(GraphBuilder(constants_file=constants_file)))


class Arithmetic(Protocol):
    """The operations that the two graphs implement differently."""

    graph: GraphBuilder

    def embed_words(self, table: Array, ids: str) -> str: ...
    def dense(self, values: str, matrix: Array) -> str: ...
    def attention(self, values: str, matrix: Array, bias: Array) -> str: ...


class Float32Arithmetic:
    def __init__(self, graph: GraphBuilder) -> None:
        self.graph = graph

    def embed_words(self, table: Array, ids: str) -> str:
        return self.graph.add("Gather", self.graph.constant(table), ids)

    def dense(self, values: str, matrix: Array) -> str:
        return self.graph.add("MatMul", values, self.graph.constant(matrix))

    def attention(self, values: str, matrix: Array, bias: Array) -> str:
        constant = self.graph.constant
        return self.graph.add_fused_node("Attention", values, constant(matrix), constant(bias), num_heads=HEADS)


class Int8Arithmetic:
    def __init__(self, graph: GraphBuilder) -> None:
        self.graph = graph

    def embed_words(self, table: Array, ids: str) -> str:
        numbers, scale = quantize_matrix(table, axis=1, limit=WORD_RANGE)
        add, constant = self.graph.add, self.graph.constant
        rows = add("Cast", add("Gather", constant(numbers), ids), to=FLOAT)
        return add("Mul", rows, add("Gather", constant(scale), ids))

    def dense(self, values: str, matrix: Array) -> str:
        numbers, scale = quantize_matrix(matrix, axis=0, limit=WEIGHT_RANGE)
        constant = self.graph.constant
        return self.graph.add_fused_node("DynamicQuantizeMatMul", values, constant(numbers), constant(scale[0]))

    def attention(self, values: str, matrix: Array, bias: Array) -> str:
        numbers, scale = quantize_matrix(matrix, axis=0, limit=WEIGHT_RANGE)
        constant = self.graph.constant
        integers, input_scale, input_zero = self.graph.quantize(values)
        zeros = constant(np.zeros(matrix.shape[1], dtype=np.int8))
        weights = (constant(numbers), constant(bias), input_scale, constant(scale[0]))
        no_mask = ""
        return self.graph.add_fused_node("QAttention", integers, *weights, no_mask, input_zero, zeros, num_heads=HEADS)


def quantize_matrix(matrix: Array, *, axis: int, limit: int) -> tuple[NDArray[np.int8], Array]:
    """Integers in -limit..limit and the scales along `axis`. Their product approximates `matrix`."""
    largest = np.abs(matrix).max(axis=axis, keepdims=True)
    scale = np.where(largest > 0, largest / limit, 1).astype(np.float32)
    return np.rint(matrix / scale).astype(np.int8), scale


def _graph(weights: Weights, arithmetic: Arithmetic) -> OnnxGraph:
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
    positions = (
        weights[f"{at}position_embeddings.weight"][:MAX_TOKENS] + weights[f"{at}token_type_embeddings.weight"][0]
    )
    length = graph.add("Slice", graph.add("Shape", ids), graph.integers(1), graph.integers(2))
    position = graph.add("Slice", graph.constant(positions), graph.integers(0), length, graph.integers(0))
    words = arithmetic.embed_words(weights[f"{at}word_embeddings.weight"], ids)
    return _norm(weights, graph, values=graph.add("Add", words, position), at=f"{at}LayerNorm")


def _layer(weights: Weights, arithmetic: Arithmetic, *, values: str, at: str) -> str:
    parts = [f"{at}attention.self.{part}" for part in ("query", "key", "value")]
    matrix = np.concatenate([weights[f"{part}.weight"].T for part in parts], axis=1)
    bias = np.concatenate([weights[f"{part}.bias"] for part in parts])
    attended = arithmetic.attention(values, matrix, bias)
    values = _add_residual(weights, arithmetic, output=attended, residual=values, at=f"{at}attention.output.")
    wide = arithmetic.dense(values, weights[f"{at}intermediate.dense.weight"].T)
    graph = arithmetic.graph
    activated = graph.add_fused_node("BiasGelu", wide, graph.constant(weights[f"{at}intermediate.dense.bias"]))
    return _add_residual(weights, arithmetic, output=activated, residual=values, at=f"{at}output.")


def _add_residual(weights: Weights, arithmetic: Arithmetic, *, output: str, residual: str, at: str) -> str:
    """Project the output of a sublayer to the layer width, add the residual, and normalise."""
    graph = arithmetic.graph
    narrow = arithmetic.dense(output, weights[f"{at}dense.weight"].T)
    shifted = graph.add("Add", narrow, graph.constant(weights[f"{at}dense.bias"]))
    return _norm(weights, graph, values=graph.add("Add", shifted, residual), at=f"{at}LayerNorm")


def _norm(weights: Weights, graph: GraphBuilder, *, values: str, at: str) -> str:
    scale, shift = graph.constant(weights[f"{at}.weight"]), graph.constant(weights[f"{at}.bias"])
    return graph.add("LayerNormalization", values, scale, shift, axis=-1, epsilon=EPSILON)


FUSED = "com.microsoft"
OPERATORS, FUSED_OPERATORS, FORMAT = 20, 1, 9
LARGE, ALIGNMENT = 1024, 64


@dataclass(frozen=True, slots=True)
class OnnxGraph:
    """A serialised graph and the content of its constants file."""

    graph: bytes
    constants: bytes


class GraphBuilder:
    """Builds an ONNX graph. Methods that add a node or a constant return the name of its output."""

    def __init__(self, *, constants_file: str) -> None:
        self._constants_file = constants_file
        self._nodes: list[NodeProto] = []
        self._constants: list[TensorProto] = []
        self._large = bytearray()

    def constant(self, value: NDArray[np.generic]) -> str:
        name = f"constant{len(self._constants)}"
        small = value.nbytes < LARGE
        self._constants.append(numpy_helper.from_array(value, name) if small else self._external(value, name))
        return name

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, dtype=np.int64))

    def add(self, operator: str, *inputs: str, **attributes: Attribute) -> str:
        return self._append(NodeProto(op_type=operator, input=inputs), attributes)[0]

    def add_fused_node(self, operator: str, *inputs: str, **attributes: Attribute) -> str:
        """Add a fused operator of onnxruntime, which replaces several standard operators."""
        return self._append(NodeProto(op_type=operator, input=inputs, domain=FUSED), attributes)[0]

    def quantize(self, values: str) -> tuple[str, str, str]:
        """Quantise `values` at run time. Returns the integers, the scale and the zero point."""
        numbers, scale, zero = self._append(NodeProto(op_type="DynamicQuantizeLinear", input=[values]), {}, outputs=3)
        return numbers, scale, zero

    def finish(self, result: str, *, ids: str, width: int) -> OnnxGraph:
        """The graph from one row of token `ids` to `result`, one row of `width` floats."""
        inputs = helper.make_tensor_value_info(ids, TensorProto.INT64, [1, "tokens"])
        outputs = helper.make_tensor_value_info(result, TensorProto.FLOAT, [1, width])
        body = helper.make_graph(self._nodes, "embedder", [inputs], [outputs], self._constants)
        versions = [helper.make_opsetid("", OPERATORS), helper.make_opsetid(FUSED, FUSED_OPERATORS)]
        model = helper.make_model(body, opset_imports=versions, ir_version=FORMAT)
        return OnnxGraph(model.SerializeToString(deterministic=True), bytes(self._large))

    def _append(self, node: NodeProto, attributes: dict[str, Attribute], *, outputs: int = 1) -> list[str]:
        names = [f"node{len(self._nodes)}.{number}" for number in range(outputs)]
        node.output.extend(names)
        node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
        self._nodes.append(node)
        return names

    def _external(self, value: NDArray[np.generic], name: str) -> TensorProto:
        self._large.extend(bytes(-len(self._large) % ALIGNMENT))
        location = {"location": self._constants_file, "offset": len(self._large), "length": value.nbytes}
        self._large.extend(np.ascontiguousarray(value).tobytes())
        kind = helper.np_dtype_to_tensor_dtype(value.dtype)
        tensor = TensorProto(name=name, dims=value.shape, data_type=kind, data_location=TensorProto.EXTERNAL)
        for key, entry in location.items():
            tensor.external_data.add(key=key, value=str(entry))
        return tensor


def read_tensors(data: bytes) -> dict[str, Array]:
    """Every 32-bit float tensor in a safetensors file, by name. Raises ConfigurationError if the file is damaged."""
    try:
        tensors = load(data)
    except SafetensorError as exc:
        reason = str(exc).removeprefix("Error while deserializing: ")
        raise ConfigurationError(f"The weights are not a valid safetensors file: {reason}.") from exc
    except (KeyError, ValueError, TypeError) as exc:
        raise ConfigurationError(f"The weights have a tensor that cannot be read: {exc}.") from exc
    return {name: tensor for name, tensor in tensors.items() if tensor.dtype == np.float32}
