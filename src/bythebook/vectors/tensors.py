"""Reads weights out of a safetensors file: a length, a JSON header, then the numbers. No code is ever run."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from bythebook.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

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
