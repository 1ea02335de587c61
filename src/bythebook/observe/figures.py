"""Every figure that is kept, and what it counts. `docs/observing.md` has the same table; a test compares them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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
