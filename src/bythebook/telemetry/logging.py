"""Logs: one line on standard error for each event, as JSON or as text, also for what other libraries report.

What a library or an unexpected error says may quote anything: a page, a question, a whole request. So of those only
the kind and the place are told, unless content is to be logged. Our own words, and the server's, are told in full.
"""

from __future__ import annotations

import json
import logging
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bythebook.telemetry import CONTENT, masked, request_id
from bythebook.telemetry.redaction import masked_all
from bythebook.telemetry.registry import EVENTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import TextIO

    from bythebook.telemetry import Ended

OURS = "bythebook"
_SPEAK_FREELY = (OURS, "uvicorn")
_FIELDS = "bythebook_fields"
_FRAMES = 12


class Logs:
    """Writes events into Python's logging."""

    def __init__(self, *, content: bool = False) -> None:
        self._content = content
        self._logger = logging.getLogger(OURS)

    def began(self, _name: str, _attributes: Mapping[str, Any], /) -> Ended:
        return _nothing

    def counted(self, _name: str, _value: float, _labels: Mapping[str, str], /) -> None:
        """Figures are not written down one by one."""

    def happened(self, event: str, fields: Mapping[str, Any], /) -> None:
        level = EVENTS[event].level
        if self._logger.isEnabledFor(level):
            told = {name: value for name, value in fields.items() if self._content or name not in CONTENT}
            self._logger.log(level, event, extra={_FIELDS: told})


@contextmanager
def logging_to(
    stream: TextIO, *, level: str, form: str, content: bool = False, trace: Callable[[], str] = str
) -> Iterator[None]:
    """All of this process's logs go to `stream`, in this form, until the block ends.

    Other libraries are heard from warnings on, whatever the level: below, they write down what they send and receive.
    """
    handler = logging.StreamHandler(stream)
    handler.setFormatter(Lines(form=form, content=content, trace=trace))
    root, ours, server = (logging.getLogger(name) for name in ("", OURS, "uvicorn"))
    before = [(logger, logger.level, logger.handlers[:], logger.propagate) for logger in (root, ours, server)]
    root.handlers, ours.handlers, server.handlers = [handler], [], []
    root.setLevel(logging.WARNING)
    for logger in (ours, server):
        logger.setLevel(level.upper())
        logger.propagate = True
    # The server's own line for each request has the whole address in it; ours has the route.
    addresses = logging.getLogger("uvicorn.access")
    was, addresses.disabled = addresses.disabled, True
    logging.captureWarnings(True)
    try:
        yield
    finally:
        logging.captureWarnings(False)
        addresses.disabled = was
        for logger, old_level, handlers, propagate in before:
            logger.setLevel(old_level)
            logger.handlers, logger.propagate = handlers, propagate


class Lines(logging.Formatter):
    """Makes a line of a record: JSON, or text for a person."""

    def __init__(self, *, form: str, content: bool, trace: Callable[[], str]) -> None:
        super().__init__()
        self._form = form
        self._content = content
        self._trace = trace

    def format(self, record: logging.LogRecord) -> str:
        told = {name: value for name, value in self._told(record).items() if value not in ("", None)}
        told = {name: masked_all(value, masked) for name, value in told.items()}
        if self._form == "json":
            return json.dumps(told, ensure_ascii=False)
        time, level, event = (told.pop(name) for name in ("time", "level", "event"))
        return " ".join([time, f"{level:<7}", event, *(f"{name}={_short(value)}" for name, value in told.items())])

    def _told(self, record: logging.LogRecord) -> dict[str, Any]:
        ours = record.name == OURS
        told: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage() if ours else record.name,
            "request_id": request_id.get(),
            "trace_id": self._trace(),
        }
        told |= getattr(record, _FIELDS, {})
        if not ours:
            told["place"] = f"{record.filename}:{record.lineno}"
            if self._content or record.name.partition(".")[0] in _SPEAK_FREELY:
                told["message"] = record.getMessage().strip()
        if record.exc_info and record.exc_info[1]:
            told |= {"error": type(record.exc_info[1]).__name__, "frames": frames(record.exc_info[1])}
            if self._content:
                told["text"] = str(record.exc_info[1])
        return told


def frames(error: BaseException) -> list[str]:
    """Where an error came from, innermost last: places in the code, none of its values."""
    places, step = [], error.__traceback__
    while step:
        code = step.tb_frame.f_code
        places.append(f"{Path(code.co_filename).name}:{step.tb_lineno} {code.co_name}")
        step = step.tb_next
    return places[-_FRAMES:]


def _nothing(_error: BaseException | None) -> None:
    """Spans are not written down; what comes of them is."""


def _short(value: Any) -> str:
    text = f"{value:.3f}" if isinstance(value, float) else str(value)
    return json.dumps(text, ensure_ascii=False) if not text or set(text) & set(" \"='\n\r\t") else text
