"""The journal: vectors that were computed for a generation that is not published yet.

Embedding is most of the work of an ingest. Each vector is written down as soon as it is known, so that a run that was
killed is taken up where it stopped.
"""

from __future__ import annotations

import hashlib
import zlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

    from bythebook.embeddings import Identity, Vector

_HASH = 32
_CHECK = 4


class Journal:
    """Vectors by the hash of their text, in one append-only file for each embedder."""

    def __init__(self, folder: Path, identity: Identity) -> None:
        self._path = _path(folder, identity)
        folder.mkdir(parents=True, exist_ok=True)
        self.vectors = recorded(folder, identity)
        """Everything written down so far."""
        self._file = self._path.open("ab", buffering=0)
        # What follows the last whole record is torn; the next one must not be written behind it.
        self._file.truncate(len(self.vectors) * _size(identity))

    def add(self, content_hash: str, vector: Vector) -> None:
        """Write the vector down. It outlives this process from the moment this returns."""
        body = bytes.fromhex(content_hash) + vector.astype("<f4").tobytes()
        self._file.write(body + zlib.crc32(body).to_bytes(_CHECK))
        self.vectors[content_hash] = vector

    def close(self) -> None:
        self._file.close()

    def clear(self) -> None:
        """Forget everything: it is in a published generation now."""
        self.vectors.clear()
        self._file.truncate(0)


def recorded(folder: Path, identity: Identity) -> dict[str, Vector]:
    """Every vector that was written down whole, by the hash of its text."""
    path, size = _path(folder, identity), _size(identity)
    data = path.read_bytes() if path.exists() else b""
    vectors: dict[str, Vector] = {}
    for start in range(0, len(data) - size + 1, size):
        record = data[start : start + size]
        if zlib.crc32(record[:-_CHECK]) != int.from_bytes(record[-_CHECK:]):
            break
        vectors[record[:_HASH].hex()] = np.frombuffer(record[_HASH:-_CHECK], dtype="<f4")
    return vectors


def _path(folder: Path, identity: Identity) -> Path:
    name = hashlib.sha256(f"{identity.model}/{identity.dimension}".encode()).hexdigest()[:16]
    return folder / f"vectors-{name}.journal"


def _size(identity: Identity) -> int:
    return _HASH + 4 * identity.dimension + _CHECK
