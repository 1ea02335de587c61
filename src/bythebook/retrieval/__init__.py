"""Retrieval: the passages that answer a question, in order, with their citations."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from urllib.parse import urlsplit

from bythebook.errors import InputError
from bythebook.retrieval.text_fragments import link, place

LONGEST_EXCERPT = 200


@dataclass(frozen=True, slots=True)
class RetrievalResult:
    """A passage that was found for a question. Results are ordered by relevance, `position` counting from 1."""

    chunk_id: str
    document_id: str
    text: str
    score: float
    """Cosine of question and passage, clipped to 0-1."""
    position: int
    url: str
    title: str
    chunk_index: int
    token_count: int
    heading_hierarchy: tuple[str, ...] = ()
    module_name: str = ""
    chapter_id: str = ""
    anchor: str = ""
    rerank_score: float = 0.0
    """What the order rests on: both rankings fused, with the evidence of the page around it."""
    start: int = 0
    """Where the text begins in its page."""
    fence: str = ""
    """The line that opened the code block the text begins inside of, where one had to be cut."""

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise InputError("a retrieval result needs text")
        if not 0.0 <= self.score <= 1.0:
            raise InputError(f"score must be between 0 and 1, not {self.score}")
        if self.position < 1:
            raise InputError(f"position counts from 1, not {self.position}")
        if self.token_count < 1:
            raise InputError(f"token_count must be positive, not {self.token_count}")


@dataclass(frozen=True, slots=True)
class Citation:
    """The very words an answer rests on, and where they stand."""

    number: int
    title: str
    url: str
    """Absolute, with the section's anchor and a text fragment, so that a browser opens the page at the quote."""
    score: float
    chunk_id: str
    quote: str
    start: int
    """Where the quote begins in its chunk; `end` likewise. Both count characters."""
    end: int
    verified: bool

    def __post_init__(self) -> None:
        if not urlsplit(self.url).scheme:
            raise InputError(f"a citation needs an absolute URL, not {self.url!r}")
        if not 0.0 <= self.score <= 1.0:
            raise InputError(f"score must be between 0 and 1, not {self.score}")
        if self.end - self.start != len(self.quote):
            raise InputError("a citation's offsets must span its quote")

    @property
    def excerpt(self) -> str:
        """The quote on one line, cut to 200 characters."""
        line = " ".join(self.quote.split())
        return line if len(line) <= LONGEST_EXCERPT else line[: LONGEST_EXCERPT - 1].rstrip() + "…"

    def __str__(self) -> str:
        return f"[Source: {self.title}]({self.url})"


@dataclass(frozen=True, slots=True)
class RetrievalContext:
    """What was found for one query."""

    query: str
    results: tuple[RetrievalResult, ...]
    retrieved_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    filter_applied: str = ""
    cache_hit: bool = False

    @property
    def total_tokens(self) -> int:
        return sum(result.token_count for result in self.results)

    def format_for_prompt(self) -> str:
        """The passages as numbered blocks, for a model to read."""
        if not self.results:
            return "No relevant content found in the book."
        blocks = [f"[{r.position}] Source: {r.title} ({r.url})\n{r.text}" for r in self.results]
        return "Context from book:\n\n" + "\n\n".join(blocks)

    def trim_to_budget(self, tokens: int) -> RetrievalContext:
        """The best results that together need at most `tokens`: the lowest are dropped first."""
        kept = list(self.results)
        while kept and sum(result.token_count for result in kept) > tokens:
            kept.pop()
        return replace(self, results=tuple(kept))

    def get_citations(self) -> tuple[Citation, ...]:
        """Every passage as a citation of its whole text, numbered by its position."""
        return tuple(citation(r, 0, len(r.text), number=r.position) for r in self.results)

    def format_sources_footer(self) -> str:
        """The sources as a list to stand below an answer, empty when there are none."""
        if not self.results:
            return ""
        lines = [f"[{r.position}] {r.url} (score: {r.score:.2f})" for r in self.results]
        return "\n".join(["", "---", "**Sources:**", *lines])


def citation(result: RetrievalResult, start: int, end: int, *, number: int) -> Citation:
    """The citation of `result.text[start:end]`."""
    quote = result.text[start:end]
    return Citation(
        number=number,
        title=place(result.title, anchor=result.anchor),
        url=link(result.url, anchor=result.anchor, words=quote),
        score=result.score,
        chunk_id=result.chunk_id,
        quote=quote,
        start=start,
        end=end,
        verified=True,
    )
