"""The names of all spans, log events and metrics. A test compares them with the tables in `docs/observing.md`."""

import logging
from dataclasses import dataclass
from enum import StrEnum

SPANS = {
    "request": "an HTTP request, to its last byte",
    "question": "a question, from its arrival to its answer",
    "opening the book": "opening the current generation of the index, or waiting for another request to open it",
    "waiting for an earlier question": "waiting for the answer to an earlier question of the same conversation",
    "understanding the question": "rewriting a follow-up as a stand-alone question, by a model if there is one",
    "embedding": "embedding the question",
    "searching": "searching the index for passages",
    "reranking": "reading the best passages with the reranker",
    "weighing": "checking whether the passages answer the question",
    "generating": "generating the answer with the language model",
    "proving": "verifying each sentence of the model with a quote",
    "remembering": "storing the turn in its conversation",
    "call": "a call to an upstream service, with its retries",
    "ingest": "ingesting the sources into the index",
    "reading": "reading the changed pages and splitting them into chunks",
    "embedding chunks": "embedding the chunks",
    "writing": "writing and publishing a new generation of the index",
}


@dataclass(frozen=True, slots=True)
class LogEvent:
    """A log event: its level, its meaning and its fields."""

    level: int
    help: str
    fields: tuple[str, ...]


LOG_EVENTS = {
    "request": LogEvent(logging.INFO, "a request was answered", ("method", "route", "status", "seconds", "bytes")),
    "question": LogEvent(
        logging.INFO,
        "a question was answered",
        (
            *("outcome", "model", "seconds", "first_token_seconds", "tokens", "passages", "cache_hit", "generation"),
            *("question", "selected_text", "answer"),
        ),
    ),
    "question_failed": LogEvent(
        logging.WARNING, "a question failed", ("error", "stage", "message", "seconds", "question")
    ),
    "entailment_model_missing": LogEvent(
        logging.WARNING, "sentences are proven by rules, because the model is missing", ("reason",)
    ),
    "state_changed": LogEvent(logging.DEBUG, "a question entered this state", ("state",)),
    "call": LogEvent(logging.DEBUG, "an upstream call entered this state", ("upstream", "stage", "state", "attempt")),
    "call_retrying": LogEvent(
        logging.WARNING, "an upstream call is retried", ("upstream", "stage", "state", "attempt", "wait", "error")
    ),
    "call_failed": LogEvent(
        logging.WARNING, "an upstream call failed for the last time", ("upstream", "stage", "state", "attempt", "error")
    ),
    "circuit_breaker_changed": LogEvent(logging.WARNING, "a circuit breaker changed its state", ("upstream", "state")),
    "background_task_failed": LogEvent(logging.WARNING, "a background task of the server failed", ("error",)),
    "cleanup_failed": LogEvent(logging.WARNING, "expired records could not be deleted", ("error",)),
    "answer_log_lost": LogEvent(logging.WARNING, "entries of the answer log could not be stored", ("count", "error")),
    "index_opened": LogEvent(logging.INFO, "a generation of the index was opened", ("generation", "pages", "chunks")),
    "ingest_completed": LogEvent(
        logging.INFO,
        "an ingest published a generation of the index",
        ("generation", "pages", "chunks", "added", "changed", "removed", "skipped", "embedded", "seconds"),
    ),
}


class MetricKind(StrEnum):
    """The type of a metric, and how the values of several workers become one."""

    COUNTER = "counter"
    """Values are added and never decrease."""
    HISTOGRAM = "histogram"
    """Values are durations, counted in the `BUCKETS`."""
    GAUGE_SUM = "sum of workers"
    """Values are added and subtracted: the current number over all workers."""
    GAUGE_LATEST = "newest value"
    """The latest value of any worker."""
    GAUGE_MAX = "highest of workers"
    """The highest of the latest values of the workers."""


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    kind: MetricKind
    help: str
    labels: tuple[str, ...] = ()

    @property
    def prometheus_name(self) -> str:
        return f"bythebook_{self.name}_total" if self.kind is MetricKind.COUNTER else f"bythebook_{self.name}"


BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)

METRICS = {
    metric.name: metric
    for metric in (
        Metric("requests", MetricKind.COUNTER, "Answered HTTP requests.", ("method", "route", "status")),
        Metric("request_seconds", MetricKind.HISTOGRAM, "Duration of requests, to the last byte.", ("route",)),
        Metric("active_requests", MetricKind.GAUGE_SUM, "Questions and searches in progress."),
        Metric(
            "rejected_requests",
            MetricKind.COUNTER,
            "Requests rejected: capacity, rate, shutdown.",
            ("reason",),
        ),
        Metric("questions", MetricKind.COUNTER, "Questions by outcome.", ("outcome",)),
        Metric("first_token_seconds", MetricKind.HISTOGRAM, "Time from the question to the first streamed text."),
        Metric("tokens", MetricKind.COUNTER, "Tokens of the prompts and completions of models.", ("kind",)),
        Metric("stage_seconds", MetricKind.HISTOGRAM, "Duration of each stage.", ("stage",)),
        Metric("calls", MetricKind.COUNTER, "State changes of upstream calls.", ("upstream", "state")),
        Metric("call_seconds", MetricKind.HISTOGRAM, "Duration of upstream calls, with retries.", ("upstream",)),
        Metric("circuit_breaker", MetricKind.GAUGE_MAX, "State: 0 closed, 1 half open, 2 open.", ("upstream",)),
        Metric("index_generation", MetricKind.GAUGE_LATEST, "Number of the generation in use."),
        Metric("pages", MetricKind.GAUGE_LATEST, "Pages of the generation in use."),
        Metric("chunks", MetricKind.GAUGE_LATEST, "Chunks of the generation in use."),
    )
}
