"""Follow-ups: what a question of a conversation asks, said so that it can be looked for alone."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Exchange", "Standalone"]


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question that was asked before, and what came of it."""

    question: str
    answer: str = ""
    sources: tuple[str, ...] = ()
    """The titles of the sections its answer cited, in the order a reader saw them."""
    chunk_ids: tuple[str, ...] = ()
    """The chunks those citations are from, in the same order."""


@dataclass(frozen=True, slots=True)
class Standalone:
    """What a question asks, understood from those before it."""

    text: str
    """What to look for, and to weigh the evidence by. The question itself where it leans on nothing."""
    depends: bool = False
    """Whether the question alone would have been understood wrongly or not at all."""
    unclear: bool = False
    """Whether even the conversation does not say what is asked: the reader should be asked back."""
    source: int | None = None
    """The source of the latest exchange with sources that the question points at, counting from 1."""
    whole: bool = False
    """Whether it asks for that source as such, and for nothing in particular: there is no more to it than the book."""
    searches: tuple[str, ...] = ()
    """What to search for where several rankings can be added up: finds more than `text` alone."""

    @property
    def every(self) -> tuple[str, ...]:
        """All there is to search for, `text` first."""
        return tuple(dict.fromkeys((self.text, *self.searches)))
