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


def test_tensors_come_back_by_name_with_their_shape() -> None:
    body = np.arange(6, dtype="<f4").tobytes()
    header = {"__metadata__": {"format": "pt"}, "a": entry(0, 16, shape=[2, 2]), "b": entry(16, 24)}

    tensors = read_tensors(safetensors(header, body))

    assert {name: tensor.tolist() for name, tensor in tensors.items()} == {"a": [[0, 1], [2, 3]], "b": [4, 5]}


def test_tensors_of_other_types_are_left_out() -> None:
    assert read_tensors(safetensors({"ids": entry(0, 8, shape=[1], dtype="I64")}, bytes(8))) == {}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        pytest.param(b"", "header", id="empty"),
        pytest.param(b"\x01\x00", "header", id="shorter than its length"),
        pytest.param((2**63).to_bytes(8, "little") + b"{}", "header", id="a header longer than any memory"),
        pytest.param((3).to_bytes(8, "little") + b"{}", "header", id="a header longer than the file"),
        pytest.param(safetensors(b"not json"), "not JSON", id="not JSON"),
        pytest.param(safetensors(b"\xff\xfe"), "not JSON", id="not text"),
        pytest.param(safetensors([]), "not a JSON object", id="not an object"),
        pytest.param(safetensors({"a": entry(0, 16)}, bytes(8)), "'a'", id="beyond the end"),
        pytest.param(safetensors({"a": entry(8, 0)}, bytes(8)), "'a'", id="backwards"),
        pytest.param(safetensors({"a": entry(-8, 0)}, bytes(8)), "'a'", id="before the start"),
        pytest.param(safetensors({"a": entry(0, 8, shape=[3])}, bytes(8)), "'a'", id="more numbers than bytes"),
        pytest.param(safetensors({"a": entry(0, 8, shape=[2**40, 2**40])}, bytes(8)), "'a'", id="an enormous shape"),
        pytest.param(safetensors({"a": entry(0, 8, shape="2")}, bytes(8)), "'a'", id="a shape that is no list"),
        pytest.param(safetensors({"a": {"dtype": "F32", "shape": [2]}}, bytes(8)), "'a'", id="no place"),
        pytest.param(
            safetensors({"a": entry(0, 8), "b": entry(4, 12)}, bytes(12)), "over each other", id="one over another"
        ),
    ],
)
def test_a_file_that_cannot_be_right_is_refused(data: bytes, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        read_tensors(data)


@given(st.binary(max_size=200))
def test_any_other_bytes_are_refused_or_read_but_never_crash(data: bytes) -> None:
    with suppress(ConfigurationError):
        read_tensors(safetensors(data))
