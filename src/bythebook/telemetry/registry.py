"""Every span and every event there is. `docs/observing.md` has the same tables; a test compares them.

Every figure that is kept, and what it counts. `docs/observing.md` has the same table; a test compares them.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from enum import StrEnum

SPANS = {
    "request": "an HTTP request, to its last byte",
    "question": "a question, from its arrival to its answer",
    "opening the book": "opening the current generation, or waiting until somebody else has",
    "waiting for an earlier question": "waiting until an earlier question of the same conversation is answered",
    "understanding the question": "making a follow-up stand alone, by a model where there is one",
    "embedding": "turning the question into a vector",
    "searching": "finding the passages",
    "weighing": "reading the passages closely: do they cover the question?",
    "generating": "the model speaks",
    "proving": "finding a quote for every sentence of the model",
    "remembering": "keeping the turn in its conversation",
    "call": "a call to a service outside, with its retries",
    "ingest": "reading sources into the book",
    "reading": "what has changed in the sources, cut into chunks",
    "embedding chunks": "chunks become vectors",
    "writing": "a new generation is written and published",
}


@dataclass(frozen=True, slots=True)
class Told:
    """An event: how much it matters, what it means, and what is told with it."""

    level: int
    help: str
    fields: tuple[str, ...]


EVENTS = {
    "request": Told(logging.INFO, "a request was answered", ("method", "route", "status", "seconds", "bytes")),
    "question": Told(
        logging.INFO,
        "a question has its answer",
        (
            *("outcome", "model", "seconds", "first_token_seconds", "tokens", "passages", "cache_hit", "generation"),
            *("question", "selected_text", "answer"),
        ),
    ),
    "question_failed": Told(
        logging.WARNING, "a question has no answer", ("error", "stage", "message", "seconds", "question")
    ),
    "state": Told(logging.DEBUG, "a question has come to this state", ("state",)),
    "call": Told(logging.DEBUG, "an outside call has come to this state", ("upstream", "stage", "state", "attempt")),
    "call_retrying": Told(
        logging.WARNING, "an outside call is tried again", ("upstream", "stage", "state", "attempt", "wait", "error")
    ),
    "call_failed": Told(
        logging.WARNING, "an outside call was given up", ("upstream", "stage", "state", "attempt", "error")
    ),
    "breaker": Told(logging.WARNING, "a circuit breaker has changed", ("upstream", "state")),
    "aside_failed": Told(logging.WARNING, "what a server does beside answering has failed", ("error",)),
    "not_swept": Told(logging.WARNING, "what is old could not be forgotten now", ("error",)),
    "notes_lost": Told(logging.WARNING, "what was asked could not be written down", ("count", "error")),
    "opened": Told(logging.INFO, "a generation of the book was opened", ("generation", "pages", "chunks")),
    "ingested": Told(
        logging.INFO,
        "sources were read into the book",
        ("generation", "pages", "chunks", "added", "changed", "removed", "skipped", "embedded", "seconds"),
    ),
}


class Kind(StrEnum):
    """How the values of a figure make one."""

    COUNT = "counter"
    """They add up, and never go down."""
    SECONDS = "histogram"
    """They are spread over buckets of time."""
    BALANCE = "sum of workers"
    """They add up and go down again: what is going on now, in all workers together."""
    LEVEL = "newest value"
    """The newest one stands."""
    WORST = "highest of workers"
    """The newest one of each worker; of several workers, the highest."""


@dataclass(frozen=True, slots=True)
class Figure:
    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()

    @property
    def exported(self) -> str:
        """Its name for Prometheus."""
        return f"bythebook_{self.name}_total" if self.kind is Kind.COUNT else f"bythebook_{self.name}"


BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)

FIGURES = {
    figure.name: figure
    for figure in (
        Figure("requests", Kind.COUNT, "HTTP requests that were answered.", ("method", "route", "status")),
        Figure("request_seconds", Kind.SECONDS, "How long a request took, to its last byte.", ("route",)),
        Figure("readers", Kind.BALANCE, "Questions and searches that are being answered now."),
        Figure("shed", Kind.COUNT, "Requests that were turned away to protect the others.", ("reason",)),
        Figure("questions", Kind.COUNT, "Questions by how they ended.", ("outcome",)),
        Figure("first_token_seconds", Kind.SECONDS, "From the question to the first word a reader sees."),
        Figure("tokens", Kind.COUNT, "Tokens that models have read and written, by their own count.", ("kind",)),
        Figure("stage_seconds", Kind.SECONDS, "How long each stage took.", ("stage",)),
        Figure("calls", Kind.COUNT, "Calls to services outside, by each state they came to.", ("upstream", "state")),
        Figure("call_seconds", Kind.SECONDS, "How long an outside call took, with its retries.", ("upstream",)),
        Figure("breaker", Kind.WORST, "The circuit breaker: 0 closed, 1 half open, 2 open.", ("upstream",)),
        Figure("index_generation", Kind.LEVEL, "The number of the generation that answers."),
        Figure("pages", Kind.LEVEL, "Pages in that generation."),
        Figure("chunks", Kind.LEVEL, "Chunks in that generation."),
    )
}
