"""Answers: requests, responses, the proof of each sentence, and the events of a question."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Literal, TypeAlias, get_args

from bythebook.errors import InputError
from bythebook.index import NO_FILTERS, Filters
from bythebook.retrieval import Citation, RetrievalResult
from bythebook.serialization import from_json

LONGEST_QUERY = 1000
NO_INFORMATION = "I don't have information about"
"""A refusal contains these words."""
LONGEST_SELECTION = 5000

SelectionMode = Literal["only", "boost"]


class Outcome(StrEnum):
    """How a question was resolved. Failures are errors, not outcomes."""

    ANSWERED = "answered"
    REFUSED = "refused"
    CLARIFY = "clarify"


@dataclass(frozen=True, slots=True)
class AgentRequest:
    """A question to the book."""

    query: str
    top_k: int | None = None
    """How many passages to retrieve, 1 to 10. None uses the `retrieval_top_k` setting."""
    include_sources: bool = True
    session_id: str | None = None
    filters: Filters = NO_FILTERS
    selected_text: str = ""
    """Text the reader selected on the page, up to 5,000 characters."""
    selection_mode: SelectionMode = "boost"
    """`only`: answer from the selected text alone. `boost`: answer from the book, ranking the selected text first."""
    stream: bool = False
    store: bool = True
    """Whether a question without a session begins one, so that it can be followed up. False leaves nothing behind."""

    def __post_init__(self) -> None:
        self._check_types()
        # An undecodable byte on the command line arrives as a lone surrogate, which later stages cannot encode.
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

    def _check_types(self) -> None:
        for name, kind, words in (
            ("query", str, "text"),
            ("top_k", int | None, "a whole number"),
            ("session_id", str | None, "text"),
            ("filters", Filters, "Filters"),
            ("selected_text", str, "text"),
            *((flag, bool, "true or false") for flag in ("include_sources", "stream", "store")),
        ):
            value = getattr(self, name)
            if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
                raise InputError(f"{name} must be {words}, not {type(value).__name__}.")


@dataclass(frozen=True, slots=True)
class SentenceProof:
    """The verdict on one sentence of a model's answer, with the reason."""

    text: str
    """The sentence as the model wrote it, without citations."""
    verdict: Literal["kept", "replaced", "marked", "removed"]
    """`replaced`: the book's own words stand in its place."""
    reason: str
    citations: tuple[int, ...] = ()
    """Numbers of the citations that support it."""
    confidence: float = 0.0
    """Probability that the citations support it."""
    checked: tuple[str, ...] = ()
    """Its numbers, quantities, names, identifiers and negations, each with whether its quote has it."""


@dataclass(frozen=True, slots=True)
class ResponseMetadata:
    """Timings and counts of one response. Every time is measured."""

    response_time_ms: float
    index_generation: str
    embedding_time_ms: float = 0.0
    retrieval_time_ms: float = 0.0
    reranking_time_ms: float = 0.0
    generation_time_ms: float = 0.0
    proof_time_ms: float = 0.0
    """Time to score the evidence, decide between answer and refusal, and verify quotes."""
    first_token_ms: float | None = None
    """From the question to the first token of a model's answer."""
    chunk_count: int = 0
    cache_hit: bool = False
    reading: str = "none"
    """How much the reranker read: full, reduced (many questions at once) or none."""
    searches: int = 0
    """How many searches the model made."""
    passages_left_out: int = 0
    exchanges_left_out: int = 0
    """Exchanges dropped because the context window had no room for them."""
    removed: tuple[str, ...] = ()
    """Sentences of the model that no passage supports, with the reason."""
    proof: tuple[SentenceProof, ...] = ()
    """Every sentence of the model's answer, in order, with its verdict. Empty for extractive answers."""
    coverage: float | None = None
    """Probability that the book covers the question; None if the evidence check did not run."""
    proven: float | None = None
    """The share of a model's claims that are proven; None for extractive answers."""
    tokens_estimated: bool = False
    """Whether `tokens_used` was counted here, because the provider sent no figures."""

    def __post_init__(self) -> None:
        for name in (known.name for known in fields(self) if known.name.endswith("_ms") or known.name == "chunk_count"):
            if (getattr(self, name) or 0) < 0:
                raise InputError(f"{name} cannot be negative: {getattr(self, name)}")


@dataclass(frozen=True, slots=True)
class SectionLink:
    """A section of the book, as a link."""

    title: str
    """The heading path, joined by " > "."""
    url: str
    """Absolute, with the anchor of the section."""


@dataclass(frozen=True, slots=True)
class AgentResponse:
    """An answer with its evidence. A grounded answer has at least one citation; any other has none."""

    answer: str
    outcome: Outcome
    citations: tuple[Citation, ...]
    sources: tuple[RetrievalResult, ...]
    model: str
    metadata: ResponseMetadata
    suggestions: tuple[SectionLink, ...] = ()
    """Sections to read: the nearest ones to a refused question, and "see also" of an answer without a model."""
    questions: tuple[str, ...] = ()
    """Questions that the book answers, after small talk."""
    turn_number: int = 1
    tokens_used: int = 0
    session_id: str | None = None
    retrieval_performed: bool = False
    """Whether the book was searched, also if nothing was found."""
    retrieved_sources: tuple[str, ...] = ()
    """URLs of the retrieved pages without duplicates, best first; also without `include_sources`."""
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    def __post_init__(self) -> None:
        object.__setattr__(self, "outcome", Outcome(self.outcome))
        urls = self.retrieved_sources or (source.url for source in self.sources)
        object.__setattr__(self, "retrieved_sources", tuple(dict.fromkeys(urls)))
        object.__setattr__(self, "retrieval_performed", self.retrieval_performed or self.metadata.chunk_count > 0)
        if not self.answer.strip():
            raise InputError("an answer is never empty")
        if self.grounded != bool(self.citations):
            raise InputError("a grounded answer has citations, and no other has any")
        if self.outcome is Outcome.REFUSED and NO_INFORMATION not in self.answer:
            raise InputError(f"a refusal contains the words {NO_INFORMATION!r}")
        if self.turn_number < 1:
            raise InputError(f"turn_number counts from 1, not {self.turn_number}")
        if self.tokens_used < 0:
            raise InputError(f"tokens_used cannot be negative: {self.tokens_used}")

    @property
    def grounded(self) -> bool:
        return self.outcome is Outcome.ANSWERED

    @property
    def retrieval_count(self) -> int:
        return self.metadata.chunk_count

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "AgentResponse":
        """The response that was written as this JSON."""
        response: AgentResponse = from_json(cls, data)
        return response

    def format_with_sources(self) -> str:
        """The answer followed by a list of its sources."""
        if not self.citations:
            return self.answer
        lines = [f"[{c.number}] {c.title}: {c.url}" for c in self.citations]
        return "\n".join([self.answer, "", "---", "**Sources:**", *lines])


class State(StrEnum):
    """State of a request. Every request ends in completed or failed."""

    RECEIVED = "received"
    VALIDATING = "validating"
    RETRIEVING = "retrieving"
    GENERATING = "generating"
    COMPLETED = "completed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class StateChanged:
    """The request entered a new state."""

    state: State


@dataclass(frozen=True, slots=True)
class SourcesFound:
    """Passages were retrieved; a second search adds its passages."""

    results: tuple[RetrievalResult, ...]


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer as it is generated. Only `AnswerCompleted` is verified."""

    text: str


@dataclass(frozen=True, slots=True)
class AnswerCompleted:
    """The complete, verified answer."""

    response: AgentResponse


Event: TypeAlias = StateChanged | SourcesFound | TextDelta | AnswerCompleted
