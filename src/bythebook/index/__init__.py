"""Passages: the chunks a question finds, and the place they are kept."""

from __future__ import annotations

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
_LONGEST_NUMBER = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Filters:
    """Which part of the book to look in. An empty filter lets everything through."""

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
    def parse(cls, texts: Sequence[str]) -> Filters:
        """Read `module=...`, `chapter=...` and `url=...`, as given on a command line."""
        names = {"module": "module", "chapter": "chapter", "url": "url_prefix"}
        given: dict[str, str] = {}
        for text in texts:
            name, equals, value = text.partition("=")
            if name.strip() not in names or not equals or not value.strip():
                raise InputError(f"{text!r} is not a filter. Use module=NAME, chapter=ID or url=PREFIX.")
            given[names[name.strip()]] = value.strip()
        return cls(**given)


EVERYWHERE = Filters()


class Passage(NamedTuple):
    """A chunk as it is kept: with its vector."""

    chunk: Chunk
    vector: Vector


class Candidate(NamedTuple):
    """A chunk that may bear on a question, and how much."""

    key: int
    """Its id as a number: what is ranked and looked up is never called by its name. Ours are all UUIDs, and those are
    longer than the numbers that collections of others may have."""
    score: float

    @property
    def chunk_id(self) -> str:
        return str(id_of(self.key))


def id_of(key: int) -> UUID | int:
    """The id that is this number."""
    return UUID(int=key) if key > _LONGEST_NUMBER else key


def best_first(scored: Iterable[Candidate]) -> list[Candidate]:
    """The one order of candidates: by score, and by id where scores are equal."""
    # Equal ones stay as they were. Two sorts without a comparison in Python are several times faster than one with.
    return sorted(sorted(scored, key=_KEY), key=_SCORE, reverse=True)


@dataclass(frozen=True, slots=True)
class Calibration:
    """Where the line lies for a book, and what came out on either side of it.

    A question is judged by the line that the others alone would have drawn: no figure is owed to itself.
    """

    cutoff: float
    kept: float
    """The part of the book's own questions it would answer."""
    refused: float
    """The part of foreign questions it would refuse."""
    questions: int
    """How many of its own were tried."""
    chunks: int
    """How large the book was."""
    foreign: int = 0
    """How many foreign questions were tried."""
    rule: str = ""
    """The rule the line was drawn for."""

    @property
    def precision(self) -> float | None:
        """The part of its refusals that were right. None when nothing was refused."""
        rightly, wrongly = self.refused * self.foreign, (1 - self.kept) * self.questions
        return round(rightly / (rightly + wrongly), 4) if rightly + wrongly > 0 else None

    @property
    def recall(self) -> float:
        """The part of what it should refuse that it did refuse."""
        return self.refused

    @property
    def how(self) -> str:
        """How the figures came about, in a sentence."""
        if not self.questions:
            return "no sentence of this book is long enough to make a question of, so the usual line is used"
        return (
            f"asked {self.questions} questions made of half the words of its own sentences, which it must answer, and "
            f"{self.foreign} about everything under the sun, which it must refuse; each is judged by the line the "
            "others draw"
        )


class PassageStore(Protocol):
    """Where the chunks of one generation of the book are kept, by vector and by words.

    It does not decide what is relevant: it hands over what the two rankings put forward.
    """

    async def candidates(self, vector: Vector | None, text: str, *, limit: int, filters: Filters) -> list[Candidate]:
        """The `limit` best chunks, best first, of the 100 or more that each ranking puts forward.

        The scores of a ranking are put on the scale of their own spread: three standard deviations below the mean
        become 0, three above become 1. A chunk has the sum of both. Without a vector, or without words in `text`,
        the other ranking stands alone.
        """
        ...

    async def compare(self, vector: Vector, keys: Sequence[int]) -> Mapping[int, tuple[Chunk, float]]:
        """The chunks with these keys, each with its cosine to `vector`. One that does not exist is not there."""
        ...

    async def fetch(self, chunk_ids: Sequence[str]) -> Mapping[str, Passage]:
        """The chunks with these ids. One that does not exist is not in the answer."""
        ...

    async def change(self, *, put: Sequence[Passage], drop: Sequence[str]) -> None:
        """Keep these passages, replacing those with the same id, and forget the dropped ones."""
        ...

    async def count(self, filters: Filters) -> int: ...
