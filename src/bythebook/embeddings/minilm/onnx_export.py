"""Turns MiniLM's published weights into a graph of bytes that runs fast on ordinary processors and opens at once.

The graph is written in its final form, so nothing is left for onnxruntime to optimise when it is opened:

- It takes one text, without padding, so there is no attention mask to carry. Activations are quantised by one scale
  for the whole tensor; in a batch the vector of a text would depend on what stands beside it.
- Weights are bytes, scaled for each output column, in -64..64: where a processor has no instruction for sums of byte
  products, it adds pairs of them in 16 bits, and 2 x 255 x 64 is the most that fits.
- Words are bytes, scaled for each row.
- Bias, residual and norm are separate nodes. onnxruntime's fused one is seven times slower than its plain norm.

An ONNX graph, written node by node, with its large constants in a file of their own.

The second file is mapped into memory instead of read: the graph opens in half the time, and processes that use it
share one copy. This is the only module that needs the `onnx` package.

Reads weights out of a safetensors file: a length, a JSON header, then the numbers. No code is ever run.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from bythebook.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Array = NDArray[np.float32]
    Weights = Mapping[str, Array]

    from numpy.typing import NDArray

    Attribute = int | float

    from collections.abc import Mapping

    from numpy.typing import NDArray


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


FUSED = "com.microsoft"
OPERATORS, FUSED_OPERATORS, FORMAT = 20, 1, 9
LARGE, ALIGNMENT = 1024, 64


@dataclass(frozen=True, slots=True)
class Written:
    """A finished graph, and the constants it expects beside it."""

    graph: bytes
    constants: bytes


class Graph:
    """Collects nodes and constants, handing back the name of what each of them yields."""

    def __init__(self, *, beside: str) -> None:
        self._beside = beside
        self._nodes: list[NodeProto] = []
        self._constants: list[TensorProto] = []
        self._large = bytearray()

    def constant(self, value: NDArray[np.generic]) -> str:
        name = f"constant{len(self._constants)}"
        small = value.nbytes < LARGE
        self._constants.append(numpy_helper.from_array(value, name) if small else self._outside(value, name))
        return name

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, dtype=np.int64))

    def add(self, operator: str, *inputs: str, **attributes: Attribute) -> str:
        return self._append(NodeProto(op_type=operator, input=inputs), attributes)[0]

    def fused(self, operator: str, *inputs: str, **attributes: Attribute) -> str:
        """One of onnxruntime's own operators, each of which does the work of several standard ones."""
        return self._append(NodeProto(op_type=operator, input=inputs, domain=FUSED), attributes)[0]

    def quantize(self, values: str) -> tuple[str, str, str]:
        """`values` as bytes, with the scale and the zero point found at run time."""
        numbers, scale, zero = self._append(NodeProto(op_type="DynamicQuantizeLinear", input=[values]), {}, outputs=3)
        return numbers, scale, zero

    def finish(self, result: str, *, ids: str, width: int) -> Written:
        """The graph from one row of token `ids` to `result`, one row of `width` floats."""
        given = helper.make_tensor_value_info(ids, TensorProto.INT64, [1, "tokens"])
        made = helper.make_tensor_value_info(result, TensorProto.FLOAT, [1, width])
        body = helper.make_graph(self._nodes, "embedder", [given], [made], self._constants)
        versions = [helper.make_opsetid("", OPERATORS), helper.make_opsetid(FUSED, FUSED_OPERATORS)]
        model = helper.make_model(body, opset_imports=versions, ir_version=FORMAT)
        return Written(model.SerializeToString(deterministic=True), bytes(self._large))

    def _append(self, node: NodeProto, attributes: dict[str, Attribute], *, outputs: int = 1) -> list[str]:
        names = [f"node{len(self._nodes)}.{number}" for number in range(outputs)]
        node.output.extend(names)
        node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
        self._nodes.append(node)
        return names

    def _outside(self, value: NDArray[np.generic], name: str) -> TensorProto:
        self._large.extend(bytes(-len(self._large) % ALIGNMENT))
        place = {"location": self._beside, "offset": len(self._large), "length": value.nbytes}
        self._large.extend(np.ascontiguousarray(value).tobytes())
        kind = helper.np_dtype_to_tensor_dtype(value.dtype)
        tensor = TensorProto(name=name, dims=value.shape, data_type=kind, data_location=TensorProto.EXTERNAL)
        for key, known in place.items():
            tensor.external_data.add(key=key, value=str(known))
        return tensor


PREFIX = 8
LONGEST_HEADER = 1_000_000


def read_tensors(data: bytes) -> dict[str, NDArray[np.float32]]:
    """Every 32-bit float tensor in a safetensors file, by name. A header that lies about where they are is refused."""
    header, start = _header(data)
    body = memoryview(data)[start:]
    tensors = {
        name: _tensor(name, entry, body)
        for name, entry in header.items()
        if name != "__metadata__" and isinstance(entry, dict) and entry.get("dtype") == "F32"
    }
    _require_apart(header)
    return tensors


def _header(data: bytes) -> tuple[dict[str, object], int]:
    length = int.from_bytes(data[:PREFIX], "little")
    if len(data) < PREFIX or not 0 < length <= min(LONGEST_HEADER, len(data) - PREFIX):
        raise ConfigurationError("The weights are not a safetensors file: the length of its header cannot be right.")
    try:
        header = json.loads(data[PREFIX : PREFIX + length])
    except ValueError as exc:
        raise ConfigurationError("The weights are not a safetensors file: its header is not JSON.") from exc
    if not isinstance(header, dict):
        raise ConfigurationError("The weights are not a safetensors file: its header is not a JSON object.")
    return header, PREFIX + length


def _tensor(name: str, entry: Mapping[str, object], body: memoryview) -> NDArray[np.float32]:
    shape, (start, end) = _numbers(name, entry.get("shape")), _span(name, entry)
    if not 0 <= start <= end <= len(body) or end - start != 4 * int(np.prod(shape, dtype=object)):
        raise ConfigurationError(f"The weights are damaged: tensor {name!r} does not lie where the header says.")
    return np.frombuffer(body[start:end], dtype="<f4").reshape(shape)


def _span(name: str, entry: Mapping[str, object]) -> tuple[int, int]:
    span = _numbers(name, entry.get("data_offsets"))
    if len(span) != 2:
        raise ConfigurationError(f"The weights are damaged: tensor {name!r} does not say where it lies.")
    return span[0], span[1]


def _numbers(name: str, value: object) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(number) is int and number >= 0 for number in value):
        raise ConfigurationError(f"The weights are damaged: the header of tensor {name!r} cannot be read.")
    return tuple(value)


def _require_apart(header: Mapping[str, object]) -> None:
    spans = sorted(
        _span(name, entry) for name, entry in header.items() if name != "__metadata__" and isinstance(entry, dict)
    )
    if any(before[1] > after[0] for before, after in pairwise(spans)):
        raise ConfigurationError("The weights are damaged: two tensors lie over each other.")
