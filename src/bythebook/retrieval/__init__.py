"""Retrieval: the results of a search and their citations."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from bythebook.errors import InputError
from bythebook.index import is_safe_url
from bythebook.retrieval.text_fragments import build_link, title_with_page

MAX_EXCERPT_CHARACTERS = 200
_FENCE = re.compile(r"^[ \t]*(?:`{3,}|~{3,}).*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class RetrievalResult:
    """A passage that was found for a question. Results are ordered by relevance; `position` starts at 1."""

    chunk_id: str
    document_id: str
    text: str
    score: float
    """The cosine of question and passage, clipped to 0-1."""
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
    """The score of the order: both rankings fused, plus the evidence of the page."""
    start: int = 0
    """The offset of the text in its page."""
    fence: str = ""
    """The opening line of a code block that was split before this text."""
    table_header: str = ""
    """The header of a table that was split before this text, as two lines of Markdown."""
    inline_code: tuple[tuple[int, int], ...] = ()
    """The start and end of each piece of inline code in the text, which has no marks for it."""

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise InputError("a retrieval result needs text")
        if not is_safe_url(self.url):
            raise InputError(f"the URL of a retrieval result is http, https, file or our own urn, not {self.url!r}")
        if not 0.0 <= self.score <= 1.0:
            raise InputError(f"score must be between 0 and 1, not {self.score}")
        if self.position < 1:
            raise InputError(f"position counts from 1, not {self.position}")
        if self.token_count < 1:
            raise InputError(f"token_count must be positive, not {self.token_count}")


@dataclass(frozen=True, slots=True)
class Citation:
    """A verbatim quote that supports an answer, and its location."""

    number: int
    title: str
    url: str
    """Absolute, with the section's anchor and a text fragment, so that a browser opens the page at the quote."""
    score: float
    chunk_id: str
    quote: str
    start: int
    """The character offset of the quote in its chunk; `end` is the offset of its end."""
    end: int
    verified: bool

    def __post_init__(self) -> None:
        if not is_safe_url(self.url):
            raise InputError(f"a citation needs an absolute URL: http, https, file or our own urn, not {self.url!r}")
        if not 0.0 <= self.score <= 1.0:
            raise InputError(f"score must be between 0 and 1, not {self.score}")
        if self.end - self.start != len(self.quote):
            raise InputError("a citation's offsets must span its quote")

    @property
    def excerpt(self) -> str:
        """The quote on one line without the fences of code, cut to 200 characters."""
        line = " ".join((_FENCE.sub("", self.quote).strip() or self.quote).split())
        return line if len(line) <= MAX_EXCERPT_CHARACTERS else line[: MAX_EXCERPT_CHARACTERS - 1].rstrip() + "…"

    def __str__(self) -> str:
        return f"[Source: {self.title}]({self.url})"


@dataclass(frozen=True, slots=True)
class RetrievalContext:
    """The results of one query."""

    query: str
    results: tuple[RetrievalResult, ...]
    retrieved_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    filter_applied: str = ""
    cache_hit: bool = False

    @property
    def total_tokens(self) -> int:
        return sum(result.token_count for result in self.results)

    def format_for_prompt(self) -> str:
        """The passages as numbered blocks for a prompt."""
        if not self.results:
            return "No relevant content found in the book."
        blocks = [f"[{r.position}] Source: {r.title} ({r.url})\n{r.text}" for r in self.results]
        return "Context from book:\n\n" + "\n\n".join(blocks)

    def trim_to_budget(self, tokens: int) -> RetrievalContext:
        """Drop the lowest results until the rest has at most `tokens` tokens."""
        kept = list(self.results)
        while kept and sum(result.token_count for result in kept) > tokens:
            kept.pop()
        return replace(self, results=tuple(kept))

    def drop_below(self, score: float) -> RetrievalContext:
        """The results with at least this cosine."""
        kept = [result for result in self.results if result.score >= score]
        return replace(self, results=tuple(replace(result, position=at) for at, result in enumerate(kept, start=1)))

    def get_citations(self) -> tuple[Citation, ...]:
        """A citation of the whole text of each passage, numbered by position."""
        return tuple(to_citation(r, 0, len(r.text), number=r.position) for r in self.results)

    def format_sources_footer(self) -> str:
        """The sources as a Markdown list for the end of an answer, empty if there are none."""
        if not self.results:
            return ""
        lines = [f"[{r.position}] {r.url} (score: {r.score:.2f})" for r in self.results]
        return "\n".join(["", "---", "**Sources:**", *lines])


def to_citation(result: RetrievalResult, start: int, end: int, *, number: int, words: str = "") -> Citation:
    """A citation of `result.text[start:end]`. Its link opens the page at `words`, which are the quote by default."""
    quote = result.text[start:end]
    return Citation(
        number=number,
        title=title_with_page(result.title, anchor=result.anchor),
        url=build_link(result.url, anchor=result.anchor, words=words or quote),
        score=result.score,
        chunk_id=result.chunk_id,
        quote=quote,
        start=start,
        end=end,
        verified=True,
    )
