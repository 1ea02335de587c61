"""Every span and every event there is. `docs/observing.md` has the same tables; a test compares them."""

from __future__ import annotations

import logging
from dataclasses import dataclass

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
