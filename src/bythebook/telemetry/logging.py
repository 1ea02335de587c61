"""Logging: one line on standard error for each event, as JSON or text, including the records of other libraries.

The message of a library or of an unexpected error may quote content: a page, a question, a whole request. Only the type
and the place of these are logged, unless content is logged. Messages of this package and of uvicorn are logged in full.
"""

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from bythebook.telemetry import CONTENT_FIELDS, TelemetryListener, redact, request_id
from bythebook.telemetry.redaction import redact_all
from bythebook.telemetry.registry import LOG_LEVELS

LOGGER_NAME = "bythebook"
_TRUSTED_LOGGERS = (LOGGER_NAME, "uvicorn")
_FIELDS = "bythebook_fields"
_MAX_FRAMES = 12


class LoggingListener(TelemetryListener):
    """Writes log events to Python's logging. Spans are not logged, their results are; nor are single metrics."""

    def __init__(self, *, content: bool = False) -> None:
        self._content = content
        self._logger = logging.getLogger(LOGGER_NAME)

    def on_log_event(self, event: str, fields: Mapping[str, Any], /) -> None:
        level = LOG_LEVELS[event]
        if self._logger.isEnabledFor(level):
            chosen = {name: value for name, value in fields.items() if self._content or name not in CONTENT_FIELDS}
            self._logger.log(level, event, extra={_FIELDS: chosen})


@contextmanager
def configure_logging(
    stream: TextIO, *, level: str, form: str, content: bool = False, trace_id: Callable[[], str] = str
) -> Iterator[None]:
    """Send all logs of this process to `stream`, as `json` or `text`, until the block ends.

    Other libraries are logged from level WARNING: below it, they log the data they send and receive.
    """
    handler = logging.StreamHandler(stream)
    handler.setFormatter(LineFormatter(form=form, content=content, trace_id=trace_id))
    root, ours, server = (logging.getLogger(name) for name in ("", LOGGER_NAME, "uvicorn"))
    previous = [(logger, logger.level, logger.handlers[:], logger.propagate) for logger in (root, ours, server)]
    root.handlers, ours.handlers, server.handlers = [handler], [], []
    root.setLevel(logging.WARNING)
    for logger in (ours, server):
        logger.setLevel(level.upper())
        logger.propagate = True
    # uvicorn's access log has full addresses; the event `request` has the route.
    access_log = logging.getLogger("uvicorn.access")
    was_disabled, access_log.disabled = access_log.disabled, True
    logging.captureWarnings(True)
    try:
        yield
    finally:
        logging.captureWarnings(False)
        access_log.disabled = was_disabled
        for logger, old_level, handlers, propagate in previous:
            logger.setLevel(old_level)
            logger.handlers, logger.propagate = handlers, propagate


class LineFormatter(logging.Formatter):
    """Formats a record as one line of JSON or text."""

    def __init__(self, *, form: str, content: bool, trace_id: Callable[[], str]) -> None:
        super().__init__()
        self._form = form
        self._content = content
        self._trace_id = trace_id

    def format(self, record: logging.LogRecord) -> str:
        fields = {name: value for name, value in self._fields(record).items() if value not in ("", None)}
        fields = {name: redact_all(value, redact) for name, value in fields.items()}
        if self._form == "json":
            line = json.dumps(fields, ensure_ascii=False)
            return line if line.isprintable() else json.dumps(fields)
        time, level, event = (fields.pop(name) for name in ("time", "level", "event"))
        pairs = (f"{name}={_format_value(value)}" for name, value in fields.items())
        return " ".join([time, f"{level:<7}", event, *pairs])

    def _fields(self, record: logging.LogRecord) -> dict[str, Any]:
        is_event = record.name == LOGGER_NAME
        fields: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage() if is_event else record.name,
            "request_id": request_id.get(),
            "trace_id": self._trace_id(),
        }
        fields |= getattr(record, _FIELDS, {})
        if not is_event:
            fields["place"] = f"{record.filename}:{record.lineno}"
            if self._content or record.name.partition(".")[0] in _TRUSTED_LOGGERS:
                fields["message"] = record.getMessage().strip()
        if record.exc_info and record.exc_info[1]:
            fields |= {"error": type(record.exc_info[1]).__name__, "frames": format_frames(record.exc_info[1])}
            if self._content:
                fields["text"] = str(record.exc_info[1])
        return fields


def format_frames(error: BaseException) -> list[str]:
    """The innermost frames of the traceback, innermost last, without any values."""
    places, step = [], error.__traceback__
    while step:
        code = step.tb_frame.f_code
        places.append(f"{Path(code.co_filename).name}:{step.tb_lineno} {code.co_name}")
        step = step.tb_next
    return places[-_MAX_FRAMES:]


def _format_value(value: Any) -> str:
    text = f"{value:.3f}" if isinstance(value, float) else str(value)
    if not text.isprintable():
        return json.dumps(text)
    return json.dumps(text, ensure_ascii=False) if not text or set(text) & set(" \"='") else text
