"""What stands in the log, and what does not."""

from __future__ import annotations

import logging
import warnings
from io import StringIO

import pytest

from bythebook import telemetry
from bythebook.telemetry import log, request_id
from bythebook.telemetry.logging import configure_logging
from bythebook.telemetry.redaction import register_secrets
from tests.support.telemetry import capture_log

PAGE = "the keeper lights the lamp"


def test_an_event_is_one_line_of_json_with_the_id_of_its_request() -> None:
    before = request_id.set("request-1")
    with capture_log() as log_output:
        log("index_opened", generation="g000001", pages=3, chunks=7)
    request_id.reset(before)
    (line,) = log_output.lines
    assert line.pop("time").endswith("+00:00")
    expected = {"level": "info", "event": "index_opened", "request_id": "request-1", "generation": "g000001"}
    assert line == expected | {"pages": 3, "chunks": 7}


def test_the_text_format_is_readable() -> None:
    with capture_log(form="text") as log_output:
        log("request", method="POST", route="/v1/ask", status=200, seconds=0.1234, bytes=9)
        log("circuit_breaker_changed", upstream="a model", state="open")
    first, second = log_output.text.splitlines()
    assert first.partition(" ")[2] == "info    request method=POST route=/v1/ask status=200 seconds=0.123 bytes=9"
    assert second.partition(" ")[2] == 'warning circuit_breaker_changed upstream="a model" state=open'


@pytest.mark.parametrize(("level", "told"), [("debug", 3), ("info", 2), ("warning", 1), ("error", 0)])
def test_the_level_filters_events(level: str, told: int) -> None:
    with capture_log(level=level) as log_output:
        log("state_changed", state="received")
        log("index_opened", generation="g000001")
        log("circuit_breaker_changed", upstream="x", state="open")
    assert len(log_output.lines) == told


@pytest.mark.parametrize("content", [False, True])
def test_content_is_logged_only_if_configured(content: bool) -> None:
    with capture_log(content=content) as log_output:
        log("question", outcome="answered", question=PAGE, answer=PAGE, selected_text=PAGE)
    assert log_output.lines[0].get("question") == (PAGE if content else None)
    assert log_output.text.count(PAGE) == (3 if content else 0)


@pytest.mark.parametrize("content", [False, True])
def test_records_of_other_libraries_have_only_type_and_place(content: bool) -> None:
    with capture_log(content=content) as log_output:
        logging.getLogger("some.library").warning("read %s", PAGE)
        try:
            raise ValueError(PAGE)
        except ValueError:
            logging.getLogger("asyncio").exception("failed with %s", PAGE)
    first, second = log_output.lines
    assert (first["event"], first["level"], first["place"].partition(":")[0]) == (
        *("some.library", "warning"),
        "test_logging.py",
    )
    assert second["error"] == "ValueError"
    assert second["frames"][-1].startswith("test_logging.py:")
    assert (PAGE in log_output.text) is content


def test_messages_of_the_server_are_logged_without_the_text_of_errors() -> None:
    with capture_log() as log_output:
        try:
            raise ValueError(PAGE)
        except ValueError as error:
            logging.getLogger("uvicorn.error").error("Exception in ASGI application\n", exc_info=error)
            logging.getLogger("bythebook.server").error("a request failed", exc_info=error)
    assert [line["message"] for line in log_output.lines] == ["Exception in ASGI application", "a request failed"]
    assert PAGE not in log_output.text


def test_other_libraries_are_logged_from_level_warning() -> None:
    """At these levels HTTP clients write down what they send."""
    with capture_log(level="debug") as log_output:
        logging.getLogger("httpx").info("POST")
        logging.getLogger("openai").debug("a whole request")
    assert log_output.text == ""


def test_a_warning_is_logged() -> None:
    with capture_log() as log_output, warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(True)
        warnings.warn(PAGE, stacklevel=1)
    assert [line["event"] for line in log_output.lines] == ["py.warnings"]
    assert PAGE not in log_output.text


def test_secrets_in_records_are_redacted() -> None:
    register_secrets(["canary-key-1"])
    try:
        with capture_log() as log_output:
            log("circuit_breaker_changed", upstream="host canary-key-1", state="open")
            logging.getLogger("uvicorn.error").warning("started with %s", "canary-key-1")
    finally:
        telemetry.set_redaction(str)
    assert "canary-key-1" not in log_output.text
    assert log_output.text.count("********") == 2


def test_logging_is_restored_afterwards() -> None:
    loggers = [logging.getLogger(name) for name in ("", "bythebook", "uvicorn")]
    before = [(logger.level, logger.handlers, logger.propagate) for logger in loggers]
    with configure_logging(StringIO(), level="debug", form="json"):
        assert len(logging.getLogger().handlers) == 1
    assert [(logger.level, logger.handlers, logger.propagate) for logger in loggers] == before
