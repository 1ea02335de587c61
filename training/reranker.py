"""Reads the weights of the reranker that training begins from out of its int8 ONNX file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import numpy_helper

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    Weights = dict[str, NDArray[np.float32]]

LAYERS = 12
PARTS = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "intermediate.dense",
    "output.dense",
)
"""The matrices of a layer, in the order in which the graph multiplies by them."""


def read_reranker(path: Path) -> Weights:
    """The weights in 32-bit floats, by BERT's published names. The classifier, which has one logit, is left out."""
    graph = onnx.load(path).graph
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    found = {
        _published(name): value for name, value in constants.items() if name.startswith("bert.") and _is_float(value)
    }
    for table in ("word_embeddings", "position_embeddings", "token_type_embeddings"):
        found[f"embeddings.{table}.weight"] = _dequantize(constants, f"bert.embeddings.{table}.weight")
    products = [node.input[1].removesuffix("_quantized") for node in graph.node if node.op_type == "MatMulInteger"]
    weights = [name for name in products if f"{name}_scale" in constants]
    names = [f"encoder.layer.{number}.{part}.weight" for number in range(LAYERS) for part in PARTS]
    for name, stored in zip([*names, "pooler.dense.weight"], weights, strict=False):
        found[name] = np.ascontiguousarray(_dequantize(constants, stored).T)
    return found


def _published(name: str) -> str:
    return name.removeprefix("bert.")


def _is_float(value: NDArray[Any]) -> bool:
    return value.dtype == np.float32 and value.ndim == 1


def _dequantize(constants: Mapping[str, NDArray[Any]], name: str) -> NDArray[np.float32]:
    numbers, scale, zero = (constants[f"{name}_{part}"] for part in ("quantized", "scale", "zero_point"))
    found: NDArray[np.float32] = (numbers.astype(np.float32) - zero.astype(np.float32)) * np.float32(scale)
    return found
