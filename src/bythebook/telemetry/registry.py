"""The metrics, and the levels of the log events.

`docs/observing.md` has what each metric, log event and span means, and the fields of the events. A test compares its
tables with the code.
"""

import logging
from dataclasses import dataclass
from enum import StrEnum

LOG_LEVELS = {
    "request": logging.INFO,
    "question": logging.INFO,
    "question_failed": logging.WARNING,
    "state_changed": logging.DEBUG,
    "call": logging.DEBUG,
    "call_retrying": logging.WARNING,
    "call_failed": logging.WARNING,
    "circuit_breaker_changed": logging.WARNING,
    "background_task_failed": logging.WARNING,
    "cleanup_failed": logging.WARNING,
    "answer_log_lost": logging.WARNING,
    "index_opened": logging.INFO,
    "ingest_completed": logging.INFO,
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
