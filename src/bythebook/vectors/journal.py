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

    from bythebook.vectors import Identity, Vector

_HASH = 32
_CHECK = 4


class Journal:
    """Vectors by the hash of their text, in one append-only file for each embedder."""

    def __init__(self, folder: Path, identity: Identity) -> None:
        name = hashlib.sha256(f"{identity.model}/{identity.dimension}".encode()).hexdigest()[:16]
        self._path = folder / f"vectors-{name}.journal"
        self._size = _HASH + 4 * identity.dimension + _CHECK
        folder.mkdir(parents=True, exist_ok=True)
        self.vectors = self._read()
        """Everything written down so far, by the hash of its text."""
        self._file = self._path.open("ab", buffering=0)

    def _read(self) -> dict[str, Vector]:
        """Every whole record. What follows a torn or damaged one is cut off, to be computed again."""
        data = self._path.read_bytes() if self._path.exists() else b""
        vectors: dict[str, Vector] = {}
        good = 0
        for start in range(0, len(data) - self._size + 1, self._size):
            record = data[start : start + self._size]
            if zlib.crc32(record[:-_CHECK]) != int.from_bytes(record[-_CHECK:]):
                break
            vectors[record[:_HASH].hex()] = np.frombuffer(record[_HASH:-_CHECK], dtype="<f4")
            good = start + self._size
        if good < len(data):
            with self._path.open("r+b") as file:
                file.truncate(good)
        return vectors

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
