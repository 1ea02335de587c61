"""Writes BERT-shaped encoders as quantised ONNX graphs that open fast and run fast on ordinary processors.

A graph is written in its final form, so onnxruntime has nothing to optimise when it opens it:

- It takes one text without padding, so it needs no attention mask. Activations are quantised by one scale for the
  whole tensor; in a batch, the vector of a text would depend on the other texts.
- Weights are int8, scaled for each output column, in -64..64: a processor without an instruction for sums of byte
  products adds pairs of them in 16 bits, and 2 x 255 x 64 is the most that fits.
- Word embeddings are int8, scaled for each row.
- A few columns of activations are far larger than all others in some models, and would leave few of the 256 steps
  to the rest. They are multiplied in 32-bit floats, apart from the others.
- Bias, residual and norm are separate nodes. onnxruntime's fused node is seven times slower than its plain norm.

Large constants go into a second file, which onnxruntime maps into memory instead of reading it: the graph opens in
half the time, and processes share one copy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper, numpy_helper

from bythebook.errors import ConfigurationError

Array = NDArray[np.float32]
Weights = Mapping[str, Array]
Attribute = int | float

WORD_RANGE, WEIGHT_RANGE = 127, 64
FLOAT = 1


@dataclass(frozen=True, slots=True)
class Architecture:
    """The shape of an encoder."""

    layers: int
    max_tokens: int
    heads: int = 12
    width: int = 384
    first_position: int = 0
    separator: int | None = None
    """The token between two texts. Tokens after the first one are of the second text; None if there is one text."""
    exact_columns: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """By matrix, such as `2.output`: the columns of its input that are multiplied in 32-bit floats."""
    epsilon: float = 1e-12


class Arithmetic(Protocol):
    """The operations that graphs of integers and of floats implement differently."""

    graph: GraphBuilder

    def embed_words(self, table: Array, ids: str) -> str: ...
    def dense(self, values: str, matrix: Array, *, exact: Sequence[int] = ()) -> str: ...
    def attention(self, values: str, matrix: Array, bias: Array) -> str: ...


class Int8Arithmetic:
    """Products of bytes: a quarter of the size of floats."""

    def __init__(self, graph: GraphBuilder, *, heads: int) -> None:
        self.graph = graph
        self._heads = heads

    def embed_words(self, table: Array, ids: str) -> str:
        numbers, scale = quantize_matrix(table, axis=1, limit=WORD_RANGE)
        add, constant = self.graph.add, self.graph.constant
        rows = add("Cast", add("Gather", constant(numbers), ids), to=FLOAT)
        return add("Mul", rows, add("Gather", constant(scale), ids))

    def dense(self, values: str, matrix: Array, *, exact: Sequence[int] = ()) -> str:
        if not exact:
            return self._product(values, matrix)
        add, constant = self.graph.add, self.graph.constant
        columns = np.array(exact, dtype=np.int64)
        mask = np.ones(matrix.shape[0], dtype=np.float32)
        mask[columns] = 0
        rest = self._product(add("Mul", values, constant(mask)), matrix * mask[:, None])
        large = add("Gather", values, constant(columns), axis=-1)
        return add("Add", rest, add("MatMul", large, constant(np.ascontiguousarray(matrix[columns]))))

    def attention(self, values: str, matrix: Array, bias: Array) -> str:
        constant = self.graph.constant
        numbers, scale = quantize_matrix(matrix, axis=0, limit=WEIGHT_RANGE)
        integers, input_scale, input_zero = self.graph.quantize(values)
        zeros = constant(np.zeros(matrix.shape[1], dtype=np.int8))
        weights = (constant(numbers), constant(bias), input_scale, constant(scale[0]))
        no_mask = ""
        return self.graph.add_fused("QAttention", integers, *weights, no_mask, input_zero, zeros, num_heads=self._heads)

    def _product(self, values: str, matrix: Array) -> str:
        numbers, scale = quantize_matrix(matrix, axis=0, limit=WEIGHT_RANGE)
        constant = self.graph.constant
        return self.graph.add_fused("DynamicQuantizeMatMul", values, constant(numbers), constant(scale[0]))


def quantize_matrix(matrix: Array, *, axis: int, limit: int) -> tuple[NDArray[np.int8], Array]:
    """Integers in -limit..limit and the scales along `axis`. Their product approximates `matrix`."""
    largest = np.abs(matrix).max(axis=axis, keepdims=True)
    scale = np.where(largest > 0, largest / limit, 1).astype(np.float32)
    return np.rint(matrix / scale).astype(np.int8), scale


class Encoder:
    """Adds the nodes of an encoder to a graph, and the heads that read its last hidden states."""

    def __init__(self, weights: Weights, shape: Architecture, arithmetic: Arithmetic) -> None:
        self.graph = arithmetic.graph
        self._weights, self._shape, self._arithmetic = weights, shape, arithmetic

    def hidden_states(self) -> str:
        """The last hidden states for the token ids in the input `ids`."""
        try:
            values = self._embeddings()
            for number in range(self._shape.layers):
                values = self._layer(values, number)
        except KeyError as exc:
            raise ConfigurationError(f"The weights are not those of this model: they lack {exc}.") from exc
        return values

    def first_state(self, values: str) -> str:
        """The hidden state of the first token."""
        graph = self.graph
        return graph.add("Reshape", graph.add("Gather", values, graph.integers(0), axis=1), graph.integers(1, -1))

    def linear(self, values: str, name: str) -> str:
        """A small product in 32-bit floats."""
        product = self.graph.add("MatMul", values, self.graph.constant(self._weights[f"{name}.weight"].T))
        return self.graph.add("Add", product, self.graph.constant(self._weights[f"{name}.bias"]))

    def _embeddings(self) -> str:
        graph, weights, shape = self.graph, self._weights, self._shape
        at = "embeddings."
        types = weights[f"{at}token_type_embeddings.weight"]
        first = shape.first_position
        positions = weights[f"{at}position_embeddings.weight"][first : first + shape.max_tokens]
        length = graph.add("Slice", graph.add("Shape", "ids"), graph.integers(1), graph.integers(2))
        words = self._arithmetic.embed_words(weights[f"{at}word_embeddings.weight"], "ids")
        if shape.separator is None:
            positions = positions + types[0]
        else:
            ends = graph.add("Cast", graph.add("Equal", "ids", graph.integers(shape.separator)), to=TensorProto.INT64)
            passed = graph.add("CumSum", ends, graph.integers(1), exclusive=1)
            second = graph.add("Min", passed, graph.integers(1))
            words = graph.add("Add", words, graph.add("Gather", graph.constant(types), second))
        position = graph.add("Slice", graph.constant(positions), graph.integers(0), length, graph.integers(0))
        return self._norm(graph.add("Add", words, position), at=f"{at}LayerNorm")

    def _layer(self, values: str, number: int) -> str:
        weights, graph, exact = self._weights, self.graph, self._shape.exact_columns
        at = f"encoder.layer.{number}."
        parts = [f"{at}attention.self.{part}" for part in ("query", "key", "value")]
        matrix = np.concatenate([weights[f"{part}.weight"].T for part in parts], axis=1)
        bias = np.concatenate([weights[f"{part}.bias"] for part in parts])
        attended = self._arithmetic.attention(values, matrix, bias)
        values = self._add_residual(attended, values, at=f"{at}attention.output.")
        wide = self._arithmetic.dense(
            values, weights[f"{at}intermediate.dense.weight"].T, exact=exact.get(f"{number}.intermediate", ())
        )
        activated = graph.add_fused("BiasGelu", wide, graph.constant(weights[f"{at}intermediate.dense.bias"]))
        return self._add_residual(activated, values, at=f"{at}output.", exact=exact.get(f"{number}.output", ()))

    def _add_residual(self, output: str, residual: str, *, at: str, exact: Sequence[int] = ()) -> str:
        """Project the output of a sublayer to the layer width, add the residual, and normalise."""
        graph, weights = self.graph, self._weights
        narrow = self._arithmetic.dense(output, weights[f"{at}dense.weight"].T, exact=exact)
        shifted = graph.add("Add", narrow, graph.constant(weights[f"{at}dense.bias"]))
        return self._norm(graph.add("Add", shifted, residual), at=f"{at}LayerNorm")

    def _norm(self, values: str, *, at: str) -> str:
        constant = self.graph.constant
        scale, shift = constant(self._weights[f"{at}.weight"]), constant(self._weights[f"{at}.bias"])
        return self.graph.add("LayerNormalization", values, scale, shift, axis=-1, epsilon=self._shape.epsilon)


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
        value = np.ascontiguousarray(value)
        small = value.nbytes < LARGE
        self._constants.append(numpy_helper.from_array(value, name) if small else self._external(value, name))
        return name

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, dtype=np.int64))

    def add(self, operator: str, *inputs: str, **attributes: Attribute) -> str:
        return self._append(NodeProto(op_type=operator, input=inputs), attributes)[0]

    def add_fused(self, operator: str, *inputs: str, **attributes: Attribute) -> str:
        """Add a fused operator of onnxruntime, which replaces several standard operators."""
        return self._append(NodeProto(op_type=operator, input=inputs, domain=FUSED), attributes)[0]

    def quantize(self, values: str) -> tuple[str, str, str]:
        """Quantise `values` at run time. Returns the integers, the scale and the zero point."""
        numbers, scale, zero = self._append(NodeProto(op_type="DynamicQuantizeLinear", input=[values]), {}, outputs=3)
        return numbers, scale, zero

    def finish(self, results: Mapping[str, tuple[str, Sequence[int | str]]]) -> OnnxGraph:
        """The graph from one row of token ids, `ids`, to the named results, each with its shape."""
        inputs = helper.make_tensor_value_info("ids", TensorProto.INT64, [1, "tokens"])
        outputs = []
        for name, (result, shape) in results.items():
            self._nodes.append(NodeProto(op_type="Identity", input=[result], output=[name]))
            outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        body = helper.make_graph(self._nodes, "encoder", [inputs], outputs, self._constants)
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
        self._large.extend(value.tobytes())
        kind = helper.np_dtype_to_tensor_dtype(value.dtype)
        tensor = TensorProto(name=name, dims=value.shape, data_type=kind, data_location=TensorProto.EXTERNAL)
        for key, entry in location.items():
            tensor.external_data.add(key=key, value=str(entry))
        return tensor
