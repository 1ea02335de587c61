"""Observe: what happens inside, told to whoever listens: logs, metrics, traces.

Any part may say that a stage begins (`span`), that something can be counted (`figure`) or that something happened
(`log`). None of it does anything until a door installs a `Listener`: a book used from Python, or for one question, pays
nothing for it.

What a reader wrote and what the book says is content. It is told only in fields of the names in `CONTENT`, and those
are left out unless `log_content` is set. A secret is never told: `masked` takes it out of any text.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import TracebackType

    Ended = Callable[[BaseException | None], None]
    """Told once how a span ended: with an error, or with none."""

CONTENT = frozenset({"question", "selected_text", "answer", "text"})

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""The request this code runs for; empty outside of any."""


class Listener(Protocol):
    """Somebody who wants to know. A listener never fails and never waits: nobody's answer depends on it."""

    def began(self, name: str, attributes: Mapping[str, Any], /) -> Ended: ...
    def counted(self, name: str, value: float, labels: Mapping[str, str], /) -> None: ...
    def happened(self, event: str, fields: Mapping[str, Any], /) -> None: ...


_listeners: tuple[Listener, ...] = ()
_mask: Callable[[str], str] = str
_NOTHING: AbstractContextManager[None] = nullcontext()


def span(name: str, **attributes: Any) -> AbstractContextManager[None]:
    """A stage or an outside call, from here to the end of the block. Its name is one of `observe.names.SPANS`."""
    return _Span(name, attributes) if _listeners else _NOTHING


def figure(name: str, value: float = 1.0, **labels: str) -> None:
    """Count, time or set one of `observe.figures.FIGURES`."""
    for listener in _listeners:
        listener.counted(name, value, labels)


def log(event: str, **fields: Any) -> None:
    """Something happened: one of `observe.names.EVENTS`. Content goes in the fields of `CONTENT` and nowhere else."""
    for listener in _listeners:
        listener.happened(event, fields)


def masked(text: str) -> str:
    """The text without any secret."""
    return _mask(text)


def hide(mask: Callable[[str], str]) -> None:
    """Take secrets out of every text with `mask` from now on (see `observe.masking`)."""
    global _mask  # noqa: PLW0603 - one process has one set of secrets
    _mask = mask


def listeners() -> tuple[Listener, ...]:
    """Everybody who is told."""
    return _listeners


@contextmanager
def listening(*listeners: Listener) -> Iterator[None]:
    """Tell these listeners, beside those there are, until the block ends."""
    global _listeners  # noqa: PLW0603 - what happens anywhere in the process is told to the same listeners
    _listeners = (*_listeners, *listeners)
    try:
        yield
    finally:
        _listeners = tuple(known for known in _listeners if known not in listeners)


class _Span:
    """Tells every listener how a span began and, the other way round, how it ended."""

    __slots__ = ("_attributes", "_ends", "_name")

    def __init__(self, name: str, attributes: Mapping[str, Any]) -> None:
        self._name = name
        self._attributes = attributes
        self._ends: list[Ended] = []

    def __enter__(self) -> None:
        self._ends = [listener.began(self._name, self._attributes) for listener in _listeners]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for end in reversed(self._ends):
            end(error)


Progress: TypeAlias = "Callable[[str, int, int], None]"
"""Called with the stage of the work, how much of it is done, and how much there is."""
