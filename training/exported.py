"""Reads the weights of the model in the package back out of its graph, so that a training can begin from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import numpy_helper

from training.reranker import LAYERS

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from training.reranker import Weights

BLOCKS = ("attention.output", "output")
"""The two halves of a layer. Each ends with a bias and a norm."""


def is_exported(path: Path) -> bool:
    """Whether the graph is one that training/export.py wrote."""
    return any(node.op_type == "QAttention" for node in onnx.load(path, load_external_data=False).graph.node)


def read_exported(path: Path) -> Weights:
    """The weights in 32-bit floats, by BERT's published names, from a graph that training/export.py wrote.

    A layer's constants are found by the operator that has them, in the order of the graph. Integers become the floats
    that they approximate, at most 1/128 of the largest of their column away from what was trained.
    """
    graph = onnx.load(path).graph
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    operands: dict[str, list[list[NDArray[Any]]]] = {}
    for node in graph.node:
        if own := [constants[name] for name in node.input if name in constants]:
            operands.setdefault(node.op_type, []).append(own)
    (words,), (scales,), (types,) = operands["Gather"][:3]
    found = {
        "embeddings.word_embeddings.weight": words * scales,
        "embeddings.token_type_embeddings.weight": types,
        "embeddings.position_embeddings.weight": next(own[0] for own in operands["Slice"] if own[0].ndim > 1),
    }
    matrices = [numbers * scale for numbers, scale in operands["DynamicQuantizeMatMul"]]
    blocks = [f"encoder.layer.{number}.{block}" for number in range(LAYERS) for block in BLOCKS]
    for number, (numbers, bias, scale, *_) in enumerate(operands["QAttention"]):
        at = f"encoder.layer.{number}."
        for part, columns, values in zip(
            ("query", "key", "value"), np.split(numbers * scale, 3, axis=1), np.split(bias, 3), strict=True
        ):
            found[f"{at}attention.self.{part}.weight"] = columns.T
            found[f"{at}attention.self.{part}.bias"] = values
        for part, matrix in zip(
            ("attention.output", "intermediate", "output"), matrices[3 * number : 3 * number + 3], strict=True
        ):
            found[f"{at}{part}.dense.weight"] = matrix.T
        (found[f"{at}intermediate.dense.bias"],) = operands["BiasGelu"][number]
    heads = ("pooler.dense", "classifier")
    for name, (matrix,) in zip(heads, operands["MatMul"], strict=True):
        found[f"{name}.weight"] = matrix.T
    for name, (bias,) in zip([*(f"{block}.dense" for block in blocks), *heads], operands["Add"], strict=True):
        found[f"{name}.bias"] = bias
    for name, (scale, shift) in zip(["embeddings", *blocks], operands["LayerNormalization"], strict=True):
        found[f"{name}.LayerNorm.weight"], found[f"{name}.LayerNorm.bias"] = scale, shift
    return {name: np.ascontiguousarray(value, dtype=np.float32) for name, value in found.items()}
