from __future__ import annotations

import json
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.embeddings.minilm.onnx_export import read_tensors
from bythebook.errors import ConfigurationError


def safetensors(header: object, body: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


def entry(start: int, end: int, *, shape: object = (2,), dtype: str = "F32") -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


def test_reads_tensors_by_name_with_their_shape() -> None:
    body = np.arange(6, dtype="<f4").tobytes()
    header = {"__metadata__": {"format": "pt"}, "a": entry(0, 16, shape=[2, 2]), "b": entry(16, 24)}

    tensors = read_tensors(safetensors(header, body))

    assert {name: tensor.tolist() for name, tensor in tensors.items()} == {"a": [[0, 1], [2, 3]], "b": [4, 5]}


def test_skips_tensors_of_other_types() -> None:
    assert read_tensors(safetensors({"ids": entry(0, 8, shape=[1], dtype="I64")}, bytes(8))) == {}


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
        read_tensors(data)


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_read_or_rejected(data: bytes) -> None:
    with suppress(ConfigurationError):
        read_tensors(safetensors(data))
