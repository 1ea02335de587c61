"""A listener that records telemetry, and logs captured in memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

from bythebook import telemetry
from bythebook.telemetry import install_listeners
from bythebook.telemetry.logging import LoggingListener, configure_logging


@dataclass(eq=False, slots=True)
class RecordingListener:
    """Keeps all spans, metrics and log events."""

    spans: list[tuple[str, str]] = field(default_factory=list)
    """The name of each finished span and the type of its error."""
    metrics: list[tuple[str, float, dict[str, str]]] = field(default_factory=list)
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def on_span_start(self, name: str, _attributes: Mapping[str, Any], /) -> Callable[[BaseException | None], None]:
        return lambda error: self.spans.append((name, type(error).__name__ if error else ""))

    def on_metric(self, name: str, value: float, labels: Mapping[str, str], /) -> None:
        self.metrics.append((name, value, dict(labels)))

    def on_log_event(self, event: str, fields: Mapping[str, Any], /) -> None:
        self.events.append((event, dict(fields)))

    def find_events(self, event: str) -> list[dict[str, Any]]:
        return [fields for name, fields in self.events if name == event]


@contextmanager
def record_telemetry() -> Iterator[RecordingListener]:
    listener = RecordingListener()
    with install_listeners(listener):
        yield listener


@dataclass(frozen=True, slots=True)
class CapturedLog:
    """The log output."""

    stream: StringIO

    @property
    def text(self) -> str:
        return self.stream.getvalue()

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.splitlines()]

    def find_events(self, event: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["event"] == event]


@contextmanager
def no_listeners() -> Iterator[None]:
    """Suspend the listeners of books that are open for other tests too: an open book logs."""
    before = telemetry.active_listeners()
    telemetry._listeners = ()
    try:
        yield
    finally:
        telemetry._listeners = before


@contextmanager
def capture_log(*, level: str = "debug", form: str = "json", content: bool = False) -> Iterator[CapturedLog]:
    """Log to memory."""
    output = CapturedLog(StringIO())
    with (
        configure_logging(output.stream, level=level, form=form, content=content),
        install_listeners(LoggingListener(content=content)),
    ):
        yield output
