"""Follow-ups: rewriting a question of a conversation so that it can be searched without the conversation."""

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

    @property
    def every(self) -> tuple[str, ...]:
        """All search texts without duplicates, `text` first."""
        return tuple(dict.fromkeys((self.text, *self.searches)))
