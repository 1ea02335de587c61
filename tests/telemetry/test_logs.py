"""What stands in the log, and what does not."""

from __future__ import annotations

import logging
import warnings
from io import StringIO

import pytest

from bythebook import telemetry
from bythebook.telemetry import log, request_id
from bythebook.telemetry.logging import logging_to
from bythebook.telemetry.redaction import hide
from tests.support.telemetry import writing

PAGE = "the keeper lights the lamp"


def test_an_event_is_one_line_of_json_with_the_id_of_its_request() -> None:
    before = request_id.set("request-1")
    with writing() as written:
        log("opened", generation="g000001", pages=3, chunks=7)
    request_id.reset(before)
    (line,) = written.lines
    assert line.pop("time").endswith("+00:00")
    expected = {"level": "info", "event": "opened", "request_id": "request-1", "generation": "g000001"}
    assert line == expected | {"pages": 3, "chunks": 7}


def test_text_is_for_a_person() -> None:
    with writing(form="text") as written:
        log("request", method="POST", route="/v1/ask", status=200, seconds=0.1234, bytes=9)
        log("breaker", upstream="a model", state="open")
    first, second = written.text.splitlines()
    assert first.partition(" ")[2] == "info    request method=POST route=/v1/ask status=200 seconds=0.123 bytes=9"
    assert second.partition(" ")[2] == 'warning breaker upstream="a model" state=open'


@pytest.mark.parametrize(("level", "told"), [("debug", 3), ("info", 2), ("warning", 1), ("error", 0)])
def test_the_level_decides_what_is_told(level: str, told: int) -> None:
    with writing(level=level) as written:
        log("state", state="received")
        log("opened", generation="g000001")
        log("breaker", upstream="x", state="open")
    assert len(written.lines) == told


@pytest.mark.parametrize("content", [False, True])
def test_content_is_told_only_where_it_was_asked_for(content: bool) -> None:
    with writing(content=content) as written:
        log("question", outcome="answered", question=PAGE, answer=PAGE, selected_text=PAGE)
    assert written.lines[0].get("question") == (PAGE if content else None)
    assert written.text.count(PAGE) == (3 if content else 0)


@pytest.mark.parametrize("content", [False, True])
def test_of_other_libraries_only_the_kind_and_the_place_are_told(content: bool) -> None:
    with writing(content=content) as written:
        logging.getLogger("some.library").warning("read %s", PAGE)
        try:
            raise ValueError(PAGE)
        except ValueError:
            logging.getLogger("asyncio").exception("failed with %s", PAGE)
    first, second = written.lines
    assert (first["event"], first["level"], first["place"].partition(":")[0]) == (
        *("some.library", "warning"),
        "test_logs.py",
    )
    assert second["error"] == "ValueError"
    assert second["frames"][-1].startswith("test_logs.py:")
    assert (PAGE in written.text) is content


def test_the_server_speaks_for_itself_but_not_for_an_error() -> None:
    with writing() as written:
        try:
            raise ValueError(PAGE)
        except ValueError as error:
            logging.getLogger("uvicorn.error").error("Exception in ASGI application\n", exc_info=error)
            logging.getLogger("bythebook.server").error("a request failed", exc_info=error)
    assert [line["message"] for line in written.lines] == ["Exception in ASGI application", "a request failed"]
    assert PAGE not in written.text


def test_other_libraries_are_not_heard_below_warnings() -> None:
    """At these levels HTTP clients write down what they send."""
    with writing(level="debug") as written:
        logging.getLogger("httpx").info("POST")
        logging.getLogger("openai").debug("a whole request")
    assert written.text == ""


def test_a_warning_is_logged() -> None:
    with writing() as written, warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(True)
        warnings.warn(PAGE, stacklevel=1)
    assert [line["event"] for line in written.lines] == ["py.warnings"]
    assert PAGE not in written.text


def test_secrets_are_masked_wherever_they_stand() -> None:
    hide(["canary-key-1"])
    try:
        with writing() as written:
            log("breaker", upstream="host canary-key-1", state="open")
            logging.getLogger("uvicorn.error").warning("started with %s", "canary-key-1")
    finally:
        telemetry.hide(str)
    assert "canary-key-1" not in written.text
    assert written.text.count("********") == 2


def test_logging_is_afterwards_as_it_was_before() -> None:
    loggers = [logging.getLogger(name) for name in ("", "bythebook", "uvicorn")]
    before = [(logger.level, logger.handlers, logger.propagate) for logger in loggers]
    with logging_to(StringIO(), level="debug", form="json"):
        assert len(logging.getLogger().handlers) == 1
    assert [(logger.level, logger.handlers, logger.propagate) for logger in loggers] == before
