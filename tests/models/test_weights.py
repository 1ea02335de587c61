from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper, numpy_helper

from bythebook.errors import ConfigurationError
from bythebook.models.weights import LAYER_PARTS, read_pack, read_quantized_onnx, read_safetensors
from tests.support import reference_bert
from tests.support.model_weights import write_pack


def safetensors(header: object, body: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


def entry(start: int, end: int, *, shape: object = (2,), dtype: str = "F32") -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


def test_reads_tensors_by_name_with_their_shape() -> None:
    body = np.arange(6, dtype="<f4").tobytes()
    header = {"__metadata__": {"format": "pt"}, "a": entry(0, 16, shape=[2, 2]), "b": entry(16, 24)}

    tensors = read_safetensors(safetensors(header, body))

    assert {name: tensor.tolist() for name, tensor in tensors.items()} == {"a": [[0, 1], [2, 3]], "b": [4, 5]}


def test_skips_tensors_of_other_types() -> None:
    assert read_safetensors(safetensors({"ids": entry(0, 8, shape=[1], dtype="I64")}, bytes(8))) == {}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        pytest.param(b"", "header too small", id="empty"),
        pytest.param(b"\x01\x00", "header too small", id="shorter than its length"),
        pytest.param((2**63).to_bytes(8, "little") + b"{}", "header too large", id="a header longer than any memory"),
        pytest.param((3).to_bytes(8, "little") + b"{}", "invalid header length", id="a header longer than the file"),
        pytest.param(safetensors(b"not json"), "invalid JSON in header", id="not JSON"),
        pytest.param(safetensors(b"\xff\xfe"), "invalid UTF-8 in header", id="not text"),
        pytest.param(safetensors([]), "invalid JSON in header", id="not an object"),
        pytest.param(
            safetensors({"a": entry(0, 16)}, bytes(8)), "invalid shape, data type, or offset", id="beyond the end"
        ),
        pytest.param(safetensors({"a": entry(8, 0)}, bytes(8)), "invalid offset for tensor `a`", id="backwards"),
        pytest.param(safetensors({"a": entry(-8, 0)}, bytes(8)), "`-8`", id="before the start"),
        pytest.param(
            safetensors({"a": entry(0, 8, shape=[3])}, bytes(8)),
            "invalid shape, data type, or offset",
            id="more numbers than bytes",
        ),
        pytest.param(
            safetensors({"a": entry(0, 8, shape=[2**40, 2**40])}, bytes(8)), "overflow", id="an enormous shape"
        ),
        pytest.param(
            safetensors({"a": entry(0, 8, shape="2")}, bytes(8)), "expected a sequence", id="a shape that is not a list"
        ),
        pytest.param(
            safetensors({"a": {"dtype": "F32", "shape": [2]}}, bytes(8)),
            "missing field `data_offsets`",
            id="no offsets",
        ),
        pytest.param(
            safetensors({"a": entry(0, 8), "b": entry(4, 12)}, bytes(12)),
            "invalid offset for tensor `b`",
            id="overlapping",
        ),
    ],
)
def test_rejects_a_damaged_file(data: bytes, said: str) -> None:
    with pytest.raises(ConfigurationError, match=f"The weights are not a valid safetensors file: .*{said}"):
        read_safetensors(data)


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_read_or_rejected(data: bytes) -> None:
    with suppress(ConfigurationError):
        read_safetensors(safetensors(data))


def test_a_pack_has_the_weights_under_their_published_names_and_the_tokenizer() -> None:
    weights = reference_bert.random_weights(seed=3, words=64)

    read, tokenizer = read_pack(write_pack(weights, b"{}"))

    assert tokenizer == b"{}"
    assert read.keys() == weights.keys()
    assert max(float(np.abs(read[name] - weights[name]).max()) for name in weights) < 0.002


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(lambda data: b"OTHERS" + data[6:], "its first letters are others", id="another format"),
        pytest.param(lambda data: data[:4000], "", id="cut short"),
        pytest.param(lambda data: data[:16] + b"x" + data[17:], "", id="a description that is not JSON"),
        pytest.param(lambda _: b"", "its first letters are others", id="empty"),
    ],
)
def test_rejects_a_damaged_pack(change: Callable[[bytes], bytes], said: str) -> None:
    data = change(write_pack(reference_bert.random_weights(seed=3, words=64), b"{}"))

    with pytest.raises(ConfigurationError, match=f"The weights are not a valid pack: .*{said}"):
        read_pack(data)


def quantized_cross_encoder(weights: Mapping[str, NDArray[np.float32]]) -> bytes:
    """A file as quantisation exports it: the matrices have names that say nothing, and stand in their order."""
    constants: list[TensorProto] = []
    nodes: list[NodeProto] = []

    def add(name: str, value: NDArray[np.generic]) -> None:
        constants.append(numpy_helper.from_array(np.array(value, order="C"), name))

    def quantize(name: str, value: NDArray[np.float32]) -> None:
        scale = np.float32(np.abs(value).max() / 127)
        add(f"{name}_quantized", np.rint(value / scale).astype(np.int8))
        add(f"{name}_scale", np.array(scale))
        add(f"{name}_zero_point", np.array(0, dtype=np.int8))

    for name, value in weights.items():
        if value.ndim == 1:
            add(name if name.startswith("classifier") else f"bert.{name}", value)
        elif name.startswith("embeddings."):
            quantize(f"bert.{name}", value)
    matrices = [f"encoder.layer.{number}.{part}.weight" for number in range(2) for part in LAYER_PARTS]
    for number, name in enumerate([*matrices, "pooler.dense.weight", "classifier.weight"]):
        quantize(f"onnx::MatMul_{number}", weights[name].T)
        nodes.append(helper.make_node("MatMulInteger", ["x", f"onnx::MatMul_{number}_quantized"], [f"y{number}"]))
    body = helper.make_graph(nodes, "g", [], [], constants)
    made: bytes = helper.make_model(body).SerializeToString()
    return made


def test_a_quantised_cross_encoder_has_the_weights_under_their_published_names() -> None:
    weights = reference_bert.random_weights(seed=4, words=64, layers=2)
    random = np.random.default_rng(4)
    for name, rows in (("pooler.dense", 384), ("classifier", 1)):
        weights[f"{name}.weight"] = random.standard_normal((rows, 384)).astype(np.float32)
        weights[f"{name}.bias"] = random.standard_normal(rows).astype(np.float32)

    read = read_quantized_onnx(quantized_cross_encoder(weights), layers=2)

    assert read.keys() == weights.keys()
    assert max(float(np.abs(read[name] - weights[name]).max()) for name in weights) < 0.02


@pytest.mark.parametrize("data", [b"", b"no file of onnx", bytes(100)], ids=["empty", "text", "zeros"])
def test_rejects_what_is_no_onnx_file(data: bytes) -> None:
    with pytest.raises(ConfigurationError, match="The weights are not a valid ONNX file"):
        read_quantized_onnx(data, layers=2)
