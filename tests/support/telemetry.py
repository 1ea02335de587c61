"""Somebody who listens and remembers, for tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

from bythebook.telemetry import listening
from bythebook.telemetry.logging import Logs, logging_to


@dataclass(eq=False, slots=True)
class Heard:
    """A listener that keeps all it is told."""

    spans: list[tuple[str, str]] = field(default_factory=list)
    """Each span when it ended, and the error it ended with."""
    figures: list[tuple[str, float, dict[str, str]]] = field(default_factory=list)
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def began(self, name: str, _attributes: Mapping[str, Any], /) -> Callable[[BaseException | None], None]:
        return lambda error: self.spans.append((name, type(error).__name__ if error else ""))

    def counted(self, name: str, value: float, labels: Mapping[str, str], /) -> None:
        self.figures.append((name, value, dict(labels)))

    def happened(self, event: str, fields: Mapping[str, Any], /) -> None:
        self.events.append((event, dict(fields)))

    def told(self, event: str) -> list[dict[str, Any]]:
        return [fields for name, fields in self.events if name == event]


@contextmanager
def hearing() -> Iterator[Heard]:
    heard = Heard()
    with listening(heard):
        yield heard


@dataclass(frozen=True, slots=True)
class Written:
    """What was logged."""

    stream: StringIO

    @property
    def text(self) -> str:
        return self.stream.getvalue()

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.splitlines()]

    def told(self, event: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["event"] == event]


@contextmanager
def writing(*, level: str = "debug", form: str = "json", content: bool = False) -> Iterator[Written]:
    """Logs in memory."""
    written = Written(StringIO())
    with logging_to(written.stream, level=level, form=form, content=content), listening(Logs(content=content)):
        yield written
