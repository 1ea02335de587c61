"""An ONNX graph, written node by node, with its large constants in a file of their own.

The second file is mapped into memory instead of read: the graph opens in half the time, and processes that use it
share one copy. This is the only module that needs the `onnx` package.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Attribute = int | float

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
