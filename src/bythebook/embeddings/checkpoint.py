"""A checkpoint file of the vectors of a generation that is not published yet.

Embedding is most of the work of an ingest. Each vector is appended as soon as it is computed, so that an ingest that
was killed resumes instead of starting over.
"""

import hashlib
import zlib
from pathlib import Path

import numpy as np

from bythebook.embeddings import EmbedderId, Vector

_HASH_BYTES = 32
_CHECKSUM_BYTES = 4


class VectorCheckpoint:
    """Vectors by the hash of their text, in one append-only file for each embedder."""

    def __init__(self, folder: Path, identity: EmbedderId) -> None:
        self._path = _path(folder, identity)
        folder.mkdir(parents=True, exist_ok=True)
        self.vectors = read_checkpoint(folder, identity)
        """Every vector in the file."""
        self._file = self._path.open("ab", buffering=0)
        # A torn record may follow the last complete one. The next record must not be appended after it.
        self._file.truncate(len(self.vectors) * _record_size(identity))

    def add(self, content_hash: str, vector: Vector) -> None:
        """Append the vector. It survives a kill of this process once this returns."""
        body = bytes.fromhex(content_hash) + vector.astype("<f4").tobytes()
        self._file.write(body + zlib.crc32(body).to_bytes(_CHECKSUM_BYTES))
        self.vectors[content_hash] = vector

    def close(self) -> None:
        self._file.close()

    def clear(self) -> None:
        """Remove all vectors, once they are in a published generation."""
        self.vectors.clear()
        self._file.truncate(0)


def read_checkpoint(folder: Path, identity: EmbedderId) -> dict[str, Vector]:
    """Every vector with a valid checksum, up to the first damaged record, by the hash of its text."""
    path, size = _path(folder, identity), _record_size(identity)
    data = path.read_bytes() if path.exists() else b""
    vectors: dict[str, Vector] = {}
    for start in range(0, len(data) - size + 1, size):
        record = data[start : start + size]
        if zlib.crc32(record[:-_CHECKSUM_BYTES]) != int.from_bytes(record[-_CHECKSUM_BYTES:]):
            break
        vectors[record[:_HASH_BYTES].hex()] = np.frombuffer(record[_HASH_BYTES:-_CHECKSUM_BYTES], dtype="<f4")
    return vectors


def _path(folder: Path, identity: EmbedderId) -> Path:
    name = hashlib.sha256(f"{identity.model}/{identity.dimension}".encode()).hexdigest()[:16]
    return folder / f"vectors-{name}.journal"


def _record_size(identity: EmbedderId) -> int:
    return _HASH_BYTES + 4 * identity.dimension + _CHECKSUM_BYTES
