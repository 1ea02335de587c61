"""Answers: what is asked, what is said, and what it rests on."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, get_args

from bythebook.errors import InputError
from bythebook.index import EVERYWHERE, Filters

if TYPE_CHECKING:
    from bythebook.retrieval import Citation, RetrievalResult

LONGEST_QUERY = 1000
LONGEST_SELECTION = 5000

SelectionMode = Literal["only", "boost"]


class Outcome(StrEnum):
    """What became of a question. A failure is none of these: it is an error."""

    ANSWERED = "answered"
    REFUSED = "refused"
    CLARIFY = "clarify"


@dataclass(frozen=True, slots=True)
class AgentRequest:
    """A question to the book."""

    query: str
    top_k: int | None = None
    """How many passages to find, 1 to 10. None leaves it to the book's own setting, which is 5 unless it says else."""
    include_sources: bool = True
    session_id: str | None = None
    filters: Filters = EVERYWHERE
    selected_text: str = ""
    """What the reader has marked on the page, up to 5,000 characters."""
    selection_mode: SelectionMode = "boost"
    """`only`: answer from the marked text alone. `boost`: from the book, the marked text first."""
    stream: bool = False

    def __post_init__(self) -> None:
        # A byte of a command line that is no character arrives as half of one, which nothing after this can read.
        whole = self.query.encode("utf-8", "replace").decode()
        object.__setattr__(self, "query", whole.strip())
        if not self.query:
            raise InputError("the question is empty. Ask something the book might answer.")
        if len(self.query) > LONGEST_QUERY:
            raise InputError(f"the question has {len(self.query)} characters; at most {LONGEST_QUERY} are read.")
        if len(self.selected_text) > LONGEST_SELECTION:
            raise InputError(f"the selected text has more than {LONGEST_SELECTION} characters; select less.")
        if self.selection_mode not in get_args(SelectionMode):
            raise InputError(f"selection_mode must be 'only' or 'boost', not {self.selection_mode!r}.")
        if self.top_k is not None and not 1 <= self.top_k <= 10:
            raise InputError(f"top_k must be from 1 to 10, not {self.top_k}.")


@dataclass(frozen=True, slots=True)
class SentenceProof:
    """What became of one sentence of a model, and why."""

    text: str
    """As the model said it, without citations."""
    verdict: Literal["kept", "marked", "removed"]
    reason: str
    citations: tuple[int, ...] = ()
    """The numbers of the citations that bear it out."""
    confidence: float = 0.0
    """How sure it is that they do."""
    checked: tuple[str, ...] = ()
    """Its numbers, measures, names, identifiers and denials, each with whether the passages have it."""


@dataclass(frozen=True, slots=True)
class ResponseMetadata:
    """How the answer came about. Every time was measured."""

    response_time_ms: float
    index_generation: str
    embedding_time_ms: float = 0.0
    retrieval_time_ms: float = 0.0
    generation_time_ms: float = 0.0
    proof_time_ms: float = 0.0
    """Reading the passages closely: what decides between an answer and a refusal, and finds the quotes."""
    first_token_ms: float | None = None
    """From the question to the first word of a model's answer."""
    chunk_count: int = 0
    cache_hit: bool = False
    searches: int = 0
    """How often the model searched by itself."""
    passages_left_out: int = 0
    exchanges_left_out: int = 0
    """What the model's window had no room for."""
    removed: tuple[str, ...] = ()
    """Sentences of the model that no passage supports, with the reason."""
    proof: tuple[SentenceProof, ...] = ()
    """Every sentence of the model, in its order, with what became of it. Empty for answers in the book's own words."""
    confidence: float | None = None
    """How sure the evidence check was that the book covers the question; None when it was not asked."""

    def __post_init__(self) -> None:
        for name in (known.name for known in fields(self) if known.name.endswith("_ms") or known.name == "chunk_count"):
            if (getattr(self, name) or 0) < 0:
                raise InputError(f"{name} cannot be negative: {getattr(self, name)}")


@dataclass(frozen=True, slots=True)
class AgentResponse:
    """An answer with everything it rests on. Grounded means at least one citation; not grounded means none."""

    answer: str
    outcome: Outcome
    citations: tuple[Citation, ...]
    sources: tuple[RetrievalResult, ...]
    model: str
    metadata: ResponseMetadata
    suggestions: tuple[str, ...] = ()
    """The sections nearest to a question the book does not answer."""
    turn_number: int = 1
    tokens_used: int = 0
    session_id: str | None = None
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    def __post_init__(self) -> None:
        if not self.answer.strip():
            raise InputError("an answer is never empty")
        if self.grounded != bool(self.citations):
            raise InputError("a grounded answer has citations, and no other has any")
        if self.turn_number < 1:
            raise InputError(f"turn_number counts from 1, not {self.turn_number}")
        if self.tokens_used < 0:
            raise InputError(f"tokens_used cannot be negative: {self.tokens_used}")

    @property
    def grounded(self) -> bool:
        return self.outcome is Outcome.ANSWERED

    @property
    def retrieval_performed(self) -> bool:
        return self.metadata.chunk_count > 0

    @property
    def retrieval_count(self) -> int:
        return self.metadata.chunk_count

    @property
    def retrieved_sources(self) -> tuple[str, ...]:
        """The URLs of the pages that were found, each once, best first."""
        return tuple(dict.fromkeys(source.url for source in self.sources))

    def format_with_sources(self) -> str:
        """The answer with its sources below."""
        if not self.citations:
            return self.answer
        lines = [f"[{c.number}] {c.title}: {c.url}" for c in self.citations]
        return "\n".join([self.answer, "", "---", "**Sources:**", *lines])
