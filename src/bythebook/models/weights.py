"""Reads published weights of BERT-shaped encoders in their file formats, under BERT's names for them.

This is the only module, with the ONNX graph, that conversion needs: numpy, onnx and safetensors are imported here.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper
from safetensors import SafetensorError
from safetensors.numpy import load

from bythebook.errors import ConfigurationError

Array = NDArray[np.float32]
Weights = dict[str, Array]

LAYER_PARTS = (
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "intermediate.dense",
    "output.dense",
)
"""The matrices of a layer, in the order in which they are multiplied."""


def read_safetensors(data: bytes) -> Weights:
    """Every 32-bit float tensor in a safetensors file. Raises ConfigurationError if the file is damaged."""
    try:
        tensors = load(data)
    except SafetensorError as exc:
        reason = str(exc).removeprefix("Error while deserializing: ")
        raise ConfigurationError(f"The weights are not a valid safetensors file: {reason}.") from exc
    except (KeyError, ValueError, TypeError) as exc:
        raise ConfigurationError(f"The weights have a tensor that cannot be read: {exc}.") from exc
    return {name: tensor for name, tensor in tensors.items() if tensor.dtype == np.float32}


_MAGIC = b"HMSEMB01"
_PACKED_NAMES = {
    "word_emb": "embeddings.word_embeddings.weight",
    "pos_emb": "embeddings.position_embeddings.weight",
    "type_emb": "embeddings.token_type_embeddings.weight",
    "emb_ln.w": "embeddings.LayerNorm.weight",
    "emb_ln.b": "embeddings.LayerNorm.bias",
}
_PACKED_PARTS = {
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "f1": "intermediate.dense",
    "f2": "output.dense",
    "fln": "output.LayerNorm",
}
_KINDS = {"w": "weight", "b": "bias"}


def read_pack(data: bytes) -> tuple[Weights, bytes]:
    """The weights in a pack (`.hmsemb`), and its `tokenizer.json`.

    The format: eight letters, the length of a JSON description as 64 bits, the description, the tokenizer, then the
    tensors. A tensor of integers is all of them, followed by one scale for each group of 64.
    """
    try:
        if data[:8] != _MAGIC:
            raise ValueError("its first letters are others")
        at = 16 + int.from_bytes(data[8:16], "little")
        described = json.loads(data[16:at])
        tokenizer = data[at : at + described["tokenizer_len"]]
        at += len(tokenizer)
        weights: Weights = {}
        for tensor in described["tensors"]:
            weights.update(_rename_weight(tensor["name"], _unpack(tensor, data[at : at + tensor["len"]])))
            at += tensor["len"]
    except (ValueError, KeyError, TypeError) as exc:
        raise ConfigurationError(f"The weights are not a valid pack: {exc}.") from exc
    return weights, tokenizer


def _unpack(tensor: Mapping[str, Any], data: bytes) -> Array:
    shape, count = tensor["shape"], int(np.prod(tensor["shape"]))
    if tensor["dtype"] == "f32":
        return np.frombuffer(data, dtype="<f4").reshape(shape)
    scales = np.frombuffer(data[count:], dtype="<f4")
    groups = np.frombuffer(data[:count], dtype=np.int8).reshape(-1, tensor["group"])
    exact: Array = (groups.astype(np.float32) * scales[:, None]).reshape(shape)
    return exact


def _rename_weight(name: str, value: Array) -> Weights:
    if name in _PACKED_NAMES:
        return {_PACKED_NAMES[name]: value}
    layer, part, kind = name.split(".")
    at = f"encoder.layer.{layer.removeprefix('l')}."
    if part == "qkv":
        return {
            f"{at}{published}.{_KINDS[kind]}": third
            for published, third in zip(LAYER_PARTS[:3], np.split(value, 3), strict=True)
        }
    return {f"{at}{_PACKED_PARTS[part]}.{_KINDS[kind]}": value}


def read_quantized_onnx(data: bytes, *, layers: int) -> Weights:
    """The weights of a BERT cross-encoder that was exported to ONNX and quantised, in 32-bit floats.

    Its matrices have names of the export; they are told by their order.
    """
    try:
        graph = onnx.load_from_string(data).graph
        constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
        found = {
            name.removeprefix("bert."): value
            for name, value in constants.items()
            if name.startswith(("bert.", "classifier.")) and value.dtype == np.float32 and value.ndim == 1
        }
        for table in ("word_embeddings", "position_embeddings", "token_type_embeddings"):
            found[f"embeddings.{table}.weight"] = _dequantize(constants, f"bert.embeddings.{table}.weight")
        products = [node.input[1].removesuffix("_quantized") for node in graph.node if node.op_type == "MatMulInteger"]
        matrices = [name for name in products if f"{name}_scale" in constants]
        names = [f"encoder.layer.{number}.{part}.weight" for number in range(layers) for part in LAYER_PARTS]
        for name, stored in zip([*names, "pooler.dense.weight", "classifier.weight"], matrices, strict=True):
            found[name] = np.ascontiguousarray(_dequantize(constants, stored).T)
    except Exception as exc:  # protobuf and onnx raise unrelated classes for an invalid file
        raise ConfigurationError(f"The weights are not a valid ONNX file: {exc}.") from exc
    return found


def _dequantize(constants: Mapping[str, NDArray[Any]], name: str) -> Array:
    numbers, scale, zero = (constants[f"{name}_{part}"] for part in ("quantized", "scale", "zero_point"))
    found: Array = (numbers.astype(np.float32) - zero.astype(np.float32)) * np.float32(scale)
    return found
