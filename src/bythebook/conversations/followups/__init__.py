"""Follow-ups: rewriting a question of a conversation so that it can be searched without the conversation."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Exchange", "StandaloneQuestion"]


@dataclass(frozen=True, slots=True)
class Exchange:
    """An earlier question with its answer."""

    question: str
    answer: str = ""
    sources: tuple[str, ...] = ()
    """Titles of the sections the answer cited, in the order the reader saw them."""
    chunk_ids: tuple[str, ...] = ()
    """Chunks of these citations, in the same order."""
    answered: bool = True
    """False if the question was refused, asked back or small talk: it is then never the subject of a later one."""


@dataclass(frozen=True, slots=True)
class StandaloneQuestion:
    """A question rewritten with the context of the earlier questions."""

    text: str
    """The text to search for and to score the evidence by. The question itself if it needs no context."""
    depends: bool = False
    """True if the question needs the conversation to be understood."""
    unclear: bool = False
    """True if the conversation does not resolve the question: ask the reader back."""
    source: int | None = None
    """Number of the source the question refers to, among the sources of the latest answer that had any."""
    whole: bool = False
    """True if it asks for that source in general ("tell me more about source 2")."""
    searches: tuple[str, ...] = ()
    """Further search texts, for retrievers that merge rankings. They find more than `text` alone."""
    wants_code: bool = False
    """True if it asks for an example of what was answered before."""
    alternative: StandaloneQuestion | None = None
    """The reading with the subject of the conversation, of a question that can be read both ways.

    It counts only if the book does not cover the reading that stands alone.
    """

    @property
    def every(self) -> tuple[str, ...]:
        """All search texts without duplicates, `text` first."""
        return tuple(dict.fromkeys((self.text, *self.searches)))
