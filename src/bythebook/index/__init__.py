"""The index: passages, filters, candidates, and the `PassageStore` port that stores and searches them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple, Protocol
from uuid import UUID

from bythebook.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bythebook.chunking import Chunk
    from bythebook.embeddings import Vector


_KEY, _SCORE = itemgetter(0), itemgetter(1)
_MAX_INTEGER_ID = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Filters:
    """Restricts a search to a part of the book. An empty filter matches everything."""

    module: str = ""
    chapter: str = ""
    url_prefix: str = ""

    def __post_init__(self) -> None:
        try:
            f"{self.module}{self.chapter}{self.url_prefix}".encode()
        except UnicodeEncodeError:
            raise InputError(f"a filter must be text in UTF-8, not {str(self)!r}") from None

    def __bool__(self) -> bool:
        return bool(self.module or self.chapter or self.url_prefix)

    def __str__(self) -> str:
        if not self:
            return ""
        named = {"module": self.module, "chapter": self.chapter, "url": self.url_prefix}
        return ", ".join(f"{name}={value}" for name, value in named.items() if value)

    @classmethod
    def from_mapping(cls, given: Mapping[str, str]) -> Filters:
        """The filters of a mapping with the names of the fields."""
        if unknown := sorted(set(given) - {"module", "chapter", "url_prefix"}):
            raise InputError(f"there is no filter {unknown[0]!r}. Use module, chapter or url_prefix.")
        if wrong := next((name for name, value in given.items() if not isinstance(value, str)), None):
            raise InputError(f"the filter {wrong!r} must be text.")
        return cls(**given)

    @classmethod
    def parse(cls, texts: Sequence[str]) -> Filters:
        """Parse `module=...`, `chapter=...` and `url=...`, the syntax of the command line."""
        names = {"module": "module", "chapter": "chapter", "url": "url_prefix"}
        given: dict[str, str] = {}
        for text in texts:
            name, equals, value = text.partition("=")
            if name.strip() not in names or not equals or not value.strip():
                raise InputError(f"{text!r} is not a filter. Use module=NAME, chapter=ID or url=PREFIX.")
            given[names[name.strip()]] = value.strip()
        return cls(**given)


NO_FILTERS = Filters()

_SAFE_URL = re.compile(r"https?://[^/\s]|file:|urn:(?:qdrant|bythebook):", re.IGNORECASE)


def is_safe_url(url: str) -> bool:
    """Whether readers may be sent to this URL: http, https, file, or a URN of this package."""
    return bool(_SAFE_URL.match(url))


class Passage(NamedTuple):
    """A chunk with its vector, as it is stored."""

    chunk: Chunk
    vector: Vector


class Candidate(NamedTuple):
    """A chunk that may answer a question, with its score."""

    key: int
    """The id of the chunk as an integer, which is faster to rank and look up. Our ids are UUIDs, which are greater
    than the 64-bit integer ids that other collections may use."""
    score: float

    @property
    def chunk_id(self) -> str:
        return str(to_point_id(self.key))


def to_point_id(key: int) -> UUID | int:
    """The point id with this key: a UUID or a 64-bit integer."""
    return UUID(int=key) if key > _MAX_INTEGER_ID else key


def sort_candidates(scored: Iterable[Candidate]) -> list[Candidate]:
    """Sort candidates by score, and by id where scores are equal, so that the order is deterministic."""
    # Sorting is stable. Two sorts with C key functions are several times faster than one with a Python key.
    return sorted(sorted(scored, key=_KEY), key=_SCORE, reverse=True)


@dataclass(frozen=True, slots=True)
class Calibration:
    """The cutoff of the evidence check for a book, and how well it separates on- and off-topic questions.

    The rates are cross-validated: each question is judged by the cutoff that the other questions give.
    """

    cutoff: float
    kept: float
    """The share of the book's own questions above the cutoff, which are answered."""
    refused: float
    """The share of off-topic questions below the cutoff, which are refused."""
    questions: int
    """The number of the book's own questions in the sample."""
    chunks: int
    """The size of the book at calibration time."""
    foreign: int = 0
    """The number of off-topic questions in the sample."""
    rule: str = ""
    """The parameters of the evidence rule that the cutoff was chosen for."""

    @property
    def precision(self) -> float | None:
        """The share of refusals that are correct. None if nothing was refused."""
        correct, wrong = self.refused * self.foreign, (1 - self.kept) * self.questions
        return round(correct / (correct + wrong), 4) if correct + wrong > 0 else None

    @property
    def recall(self) -> float:
        """The share of off-topic questions that are refused."""
        return self.refused

    @property
    def explanation(self) -> str:
        """How the rates were measured, in a sentence."""
        if not self.questions:
            return "no sentence of this book is long enough to make a question of, so the default cutoff is used"
        return (
            f"measured with {self.questions} questions made of half the words of the book's sentences, which it must "
            f"answer, and {self.foreign} off-topic questions and near misses, which it must refuse; each is judged by "
            "the cutoff that the others give"
        )


class PassageStore(Protocol):
    """Stores the passages of one generation and searches them by vector (dense) and by BM25 terms (sparse).

    It does not decide what is relevant: it returns the fused candidates of both rankings.
    """

    async def search(self, vector: Vector | None, text: str, *, limit: int, filters: Filters) -> list[Candidate]:
        """The `limit` best chunks, best first, fused from at least 100 candidates of each ranking.

        The scores of each ranking are normalised (distribution-based score fusion): three standard deviations below
        the mean become 0, three above become 1. A chunk's score is the sum of both. Without a vector, or without
        terms in `text`, only the other ranking is used.
        """
        ...

    async def compare(self, vector: Vector, keys: Sequence[int]) -> Mapping[int, tuple[Chunk, float]]:
        """The chunks with these keys, each with its cosine to `vector`. Missing chunks are left out."""
        ...

    async def fetch(self, chunk_ids: Sequence[str]) -> Mapping[str, Passage]:
        """The passages with these ids. Missing ones are left out."""
        ...

    async def update(self, *, put: Sequence[Passage], drop: Sequence[str]) -> None:
        """Upsert the passages in `put` and delete those with the ids in `drop`."""
        ...

    async def count(self, filters: Filters) -> int: ...
