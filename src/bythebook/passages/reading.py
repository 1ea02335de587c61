"""Reading closely what another embedder has found.

The evidence rule and the proof were fitted to one embedder's cosines, and others have other scales. So whoever finds
the passages, the local model reads them: nothing is sent or paid for a question but its own vector.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bythebook.chunks import under

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bythebook.passages import RetrievalContext, RetrievalResult
    from bythebook.vectors import Embedder, Vector

STRETCH = 220
"""As many tokens as the local model's own chunks have: it does not see the end of a longer text."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The query's vector, and its cosine to the nearest stretch of the passages."""

    vector: Vector
    nearest: float


async def read_by(reader: Embedder, context: RetrievalContext) -> Reading:
    """How near the reader finds the passages to the query."""
    vector = await reader.query(context.query)
    texts = [stretch for result in context.results for stretch in _stretches(result, reader)]
    cosines = [float(vector @ other) async for other in reader.documents(texts)]
    return Reading(vector, min(max([0.0, *cosines]), 1.0))


def _stretches(result: RetrievalResult, reader: Embedder) -> Iterator[str]:
    """The passage in parts of about the same length that the reader sees whole, each below its headings."""
    parts = -(-reader.count(result.text) // STRETCH) or 1
    words = result.text.split(" ")
    size = -(-len(words) // parts)
    for first in range(0, len(words), size):
        yield under(result.heading_hierarchy, " ".join(words[first : first + size]))
