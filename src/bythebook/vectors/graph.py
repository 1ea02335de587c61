"""An ONNX graph, written node by node. The only module beside `convert` that needs the `onnx` package."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Attribute = int | float

FUSED = "com.microsoft"
OPERATORS, FUSED_OPERATORS, FORMAT = 20, 1, 9


class Graph:
    """Collects nodes and constants, handing back the name of what each of them yields."""

    def __init__(self) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []

    def constant(self, value: NDArray[np.generic]) -> str:
        name = f"constant{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, dtype=np.int64))

    def add(self, operator: str, *inputs: str, **attributes: Attribute) -> str:
        return self._append(operator, inputs, "", attributes)[0]

    def fused(self, operator: str, *inputs: str, **attributes: Attribute) -> str:
        """One of onnxruntime's own operators, each of which does the work of several standard ones."""
        return self._append(operator, inputs, FUSED, attributes)[0]

    def quantize(self, values: str) -> tuple[str, str, str]:
        """`values` as bytes, with the scale and the zero point found at run time."""
        numbers, scale, zero = self._append("DynamicQuantizeLinear", (values,), "", {}, outputs=3)
        return numbers, scale, zero

    def _append(
        self, operator: str, inputs: tuple[str, ...], domain: str, attributes: dict[str, Attribute], *, outputs: int = 1
    ) -> list[str]:
        names = [f"node{len(self._nodes)}.{number}" for number in range(outputs)]
        node = helper.make_node(operator, list(inputs), names, domain=domain)
        node.attribute.extend(helper.make_attribute(name, value) for name, value in sorted(attributes.items()))
        self._nodes.append(node)
        return names

    def finish(self, result: str, *, ids: str, width: int) -> bytes:
        """The graph from one row of token `ids` to `result`, a row of `width` floats, as the bytes of an ONNX file."""
        given = helper.make_tensor_value_info(ids, TensorProto.INT64, [1, "tokens"])
        made = helper.make_tensor_value_info(result, TensorProto.FLOAT, [1, width])
        body = helper.make_graph(self._nodes, "embedder", [given], [made], self._constants)
        versions = [helper.make_opsetid("", OPERATORS), helper.make_opsetid(FUSED, FUSED_OPERATORS)]
        serialized: bytes = helper.make_model(body, opset_imports=versions, ir_version=FORMAT).SerializeToString()
        return serialized
