"""The manifest of a generation on a server: what it is, how it was made, and how far it has come."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from bythebook.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

FORMAT = 1
"""Raised when what is on a server can no longer be read by an older bythebook."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything about a generation that must be known before it is opened."""

    digest: str
    """Of the catalogue: two generations with the same digest are the same book."""
    size: int
    blocks: tuple[str, ...]
    """The digest of each block of the catalogue, in order."""
    pages: int
    chunks: int
    model: str
    dimension: int
    average_length: float
    calibration: Mapping[str, float]
    chunking: Mapping[str, int]
    """How pages were cut, where whoever wrote the generation knows it."""
    coverage: Mapping[str, Any] = field(default_factory=dict)
    """What could not be read of each source, as the ingest that wrote the generation saw it."""
    state: str = "writing"
    written_at: str = ""
    """When whoever writes it was last seen."""
    published_at: str = ""
    superseded_at: str = ""
    format: int = FORMAT

    def as_payload(self) -> dict[str, Any]:
        return asdict(self) | {"blocks": list(self.blocks)}


def read_manifest(payload: Mapping[str, Any], *, collection: str) -> Manifest:
    """The manifest in a payload. Raises ConfigurationError for one that a newer bythebook has written."""
    if payload.get("format") != FORMAT:
        raise ConfigurationError(
            f"{collection!r} was written by a newer bythebook (format {payload.get('format')}, we read {FORMAT}). "
            "Update bythebook here."
        )
    known = {name: payload[name] for name in Manifest.__slots__}
    return Manifest(**known | {"blocks": tuple(payload["blocks"])})
