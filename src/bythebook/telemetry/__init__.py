"""Telemetry: spans, metrics and log events, passed to the installed listeners: logging, Prometheus, OpenTelemetry.

Any module may open a span, record a metric or log an event. All of these do nothing until an entry point installs a
`TelemetryListener`: a book used from Python or for a single question pays nothing for them.

Text written by readers or taken from the book is content. It is passed only in the fields of `CONTENT_FIELDS`, and
these are dropped unless `log_content` is set. Secrets are never recorded: `redact` removes them from any text.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Protocol, TypeAlias

OnSpanEnd: TypeAlias = Callable[[BaseException | None], None]
"""Called once at the end of a span, with its error or None."""

CONTENT_FIELDS = frozenset({"question", "selected_text", "answer", "text"})

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""The id of the current request; empty outside of a request."""


class TelemetryListener(Protocol):
    """Receives spans, metrics and log events. A listener must not raise and must not block.

    A subclass ignores what it does not define.
    """

    def on_span_start(self, _name: str, _attributes: Mapping[str, Any], /) -> OnSpanEnd:
        return lambda _error: None

    def on_metric(self, _name: str, _value: float, _labels: Mapping[str, str], /) -> None:
        return

    def on_log_event(self, _event: str, _fields: Mapping[str, Any], /) -> None:
        return


# Without it, Python prints warnings of a program that has not configured logging.
logging.getLogger("bythebook").addHandler(logging.NullHandler())

_listeners: tuple[TelemetryListener, ...] = ()
_redact: Callable[[str], str] = str
_NO_SPAN: AbstractContextManager[None] = nullcontext()


def span(name: str, **attributes: Any) -> AbstractContextManager[None]:
    """A stage or an upstream call, to the end of the block. `docs/observing.md` lists all names."""
    return _Span(name, attributes) if _listeners else _NO_SPAN


def metric(name: str, value: float = 1.0, **labels: str) -> None:
    """Record a value of a metric. Its name is a key of `registry.METRICS`."""
    for listener in _listeners:
        listener.on_metric(name, value, labels)


def log(event: str, **fields: Any) -> None:
    """Log an event, a key of `registry.LOG_LEVELS`. Content is passed only in the fields of `CONTENT_FIELDS`."""
    for listener in _listeners:
        listener.on_log_event(event, fields)


def redact(text: str) -> str:
    """The text without secrets."""
    return _redact(text)


def set_redaction(redact: Callable[[str], str]) -> None:
    """Remove secrets from all texts with this function from now on (see `bythebook.telemetry.redaction`)."""
    global _redact  # noqa: PLW0603 - one process has one set of secrets
    _redact = redact


def active_listeners() -> tuple[TelemetryListener, ...]:
    """The installed listeners."""
    return _listeners


@contextmanager
def install_listeners(*listeners: TelemetryListener) -> Iterator[None]:
    """Install these listeners, in addition to the active ones, until the block ends."""
    global _listeners  # noqa: PLW0603 - listeners receive the telemetry of the whole process
    _listeners = (*_listeners, *listeners)
    try:
        yield
    finally:
        _listeners = tuple(known for known in _listeners if known not in listeners)


class _Span:
    """Passes start and end of a span to every listener; the ends in reverse order."""

    __slots__ = ("_attributes", "_ends", "_name")

    def __init__(self, name: str, attributes: Mapping[str, Any]) -> None:
        self._name = name
        self._attributes = attributes
        self._ends: list[OnSpanEnd] = []

    def __enter__(self) -> None:
        self._ends = [listener.on_span_start(self._name, self._attributes) for listener in _listeners]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for end in reversed(self._ends):
            end(error)


Progress: TypeAlias = "Callable[[str, int, int], None]"
"""Called with the stage of the work, the number of items done and the total."""
