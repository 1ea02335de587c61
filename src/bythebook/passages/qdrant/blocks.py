"""A catalogue in blocks: how the SQLite file of a generation travels to a server and back.

Two generations share most of their blocks, so that a reader who has the last one fetches only what is new.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from typing import TYPE_CHECKING, NamedTuple

from bythebook.errors import QdrantConnectionError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

BLOCK = 1 << 18
AT_ONCE = 16


class Block(NamedTuple):
    """A piece of the file. `number` counts from 1."""

    number: int
    digest: str
    data: bytes

    def as_payload(self) -> dict[str, str]:
        packed = base64.b64encode(zlib.compress(self.data, 6)).decode("ascii")
        return {"digest": self.digest, "data": packed}


def cut(path: Path) -> Iterator[Block]:
    """The blocks of a file, in order."""
    with path.open("rb") as file:
        number = 0
        while data := file.read(BLOCK):
            number += 1
            yield Block(number, hashlib.sha256(data).hexdigest(), data)


def digest_of(blocks: Sequence[str]) -> str:
    """Of a whole file, from the digests of its blocks."""
    return hashlib.sha256("".join(blocks).encode("ascii")).hexdigest()


def unpacked(data: str, *, digest: str) -> bytes:
    """The bytes of a block, which must be what they were."""
    try:
        read = zlib.decompress(base64.b64decode(data, validate=True))
    except (ValueError, zlib.error):
        read = b""
    if hashlib.sha256(read).hexdigest() != digest:
        raise QdrantConnectionError(
            "a block of the catalogue on the Qdrant server is damaged. Run 'bythebook ingest --rebuild' to write the "
            "book anew."
        )
    return read
