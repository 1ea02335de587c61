"""Telling costs nothing while nobody listens, and never changes what happens."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest

from bythebook import AgentRequest, Settings
from bythebook.book import Book
from bythebook.errors import NotFound, RetrievalError
from bythebook.qa.instrumentation import LEFT, instrument
from bythebook.qa.request import StageTimer
from bythebook.telemetry import install_listeners, log, metric, span
from bythebook.upstream.deadline import Deadline
from tests.support.telemetry import RecordingListener, record_telemetry

HORN = "How often does the fog horn sound?"


def test_without_listeners_a_span_is_a_shared_no_op() -> None:
    assert span("searching") is span("proving", upstream="x")
    metric("no such figure", 1, and_no_such="label")
    log("no such event")


def test_importing_telemetry_needs_only_the_standard_library() -> None:
    script = (
        "import sys, bythebook.telemetry\nprint('prometheus_client' in sys.modules, 'opentelemetry' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_several_listeners_receive_events_while_installed() -> None:
    with record_telemetry() as first, record_telemetry() as second:
        with span("searching"):
            log("state_changed", state="received")
    log("state_changed", state="failed")
    assert first.spans == second.spans == [("searching", "")]
    assert first.events == second.events == [("state_changed", {"state": "received"})]


def test_removing_a_listener_keeps_the_others() -> None:
    early, late = RecordingListener(), RecordingListener()
    first = install_listeners(early)
    first.__enter__()
    with install_listeners(late):
        first.__exit__(None, None, None)
        log("state_changed", state="received")
    assert (early.events, late.events) == ([], [("state_changed", {"state": "received"})])


def test_a_span_ends_with_its_error() -> None:
    with record_telemetry() as recorded, pytest.raises(NotFound):
        with span("searching"):
            raise NotFound("nothing")
    assert recorded.spans == [("searching", "NotFound")]


async def test_an_ingest_has_spans_and_a_log_event(book: Book, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Lamp\n\nThe keeper lights the lamp at dusk.", encoding="utf-8")
    with record_telemetry() as recorded:
        report = await book.ingest(page)
    assert [name for name, _ in recorded.spans] == ["reading", "embedding chunks", "writing", "ingest"]
    (told,) = recorded.find_events("ingest_completed")
    assert (told["generation"], told["pages"], told["chunks"], told["skipped"]) == ("g000001", 1, 1, 0)
    assert told["seconds"] == report.seconds


async def test_a_question_has_spans_log_events_and_metrics(index_provider: Book) -> None:
    with record_telemetry() as recorded:
        response = await index_provider.ask(HORN)
    names = [name for name, _ in recorded.spans]
    stages = ["opening the book", "embedding", "searching", "reranking", "weighing", "weighing", "remembering"]
    assert names == [*stages, "question"]
    (told,) = recorded.find_events("question")
    assert (told["outcome"], told["question"], told["answer"]) == ("answered", HORN, response.answer)
    assert [fields["state"] for fields in recorded.find_events("state_changed")] == [
        *("received", "validating", "retrieving", "generating", "completed"),
    ]
    counted = {(name, *labels.values()): value for name, value, labels in recorded.metrics}
    assert counted["questions", "answered"] == 1
    assert counted["first_token_seconds",] > 0


async def test_opening_a_generation_is_logged_and_measured(shelved: Path, model_folder: Path) -> None:
    settings = Settings.load({"data_dir": shelved, "model_folder": model_folder}, folder=shelved)
    with record_telemetry() as recorded:
        async with Book.open(settings):
            pass
    (told,) = recorded.find_events("index_opened")
    assert told["generation"] == "g000001"
    assert {name: value for name, value, _ in recorded.metrics} == {
        "index_generation": 1,
        "pages": told["pages"],
        "chunks": told["chunks"],
    }


@pytest.fixture
async def index_provider(shelved: Path, model_folder: Path) -> AsyncIterator[Book]:
    """The small book, open for reading."""
    # However slow the machine is, a question gets its answer.
    given = {"data_dir": shelved, "model_folder": model_folder, "first_token_seconds": 60, "answer_seconds": 120}
    async with Book.open(Settings.load(given, folder=shelved)) as opened:
        yield opened


async def test_a_search_has_spans(index_provider: Book) -> None:
    with record_telemetry() as recorded:
        await index_provider.search("fog horn")
        await index_provider.search("fog horn")  # the second time, nothing is done
    assert [name for name, _ in recorded.spans] == ["embedding", "searching", "reranking"]


async def test_a_failed_question_is_logged_with_its_error(book: Book) -> None:
    with record_telemetry() as recorded, pytest.raises(NotFound):
        await book.ask(HORN)
    (told,) = recorded.find_events("question_failed")
    # What is said to the reader is not said twice: this is the reader's to mend.
    assert (told["error"], told["stage"], told["message"]) == ("not_found", "opening the book", "")
    assert ("questions", 1.0, {"outcome": "not_found"}) in recorded.metrics
    assert recorded.find_events("state_changed")[-1] == {"state": "failed"}


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        pytest.param(RetrievalError("the disk is gone"), "retrieval_error", "the disk is gone", id="ours"),
        pytest.param(ValueError("a page's text"), "error", "", id="one that nobody expected"),
    ],
)
async def test_only_messages_of_book_errors_are_logged(error: Exception, code: str, message: str) -> None:
    timer = StageTimer(Deadline.after())
    with record_telemetry() as recorded, pytest.raises(type(error)), instrument(AgentRequest(HORN), timer):
        raise error
    assert [(told["error"], told["message"]) for told in recorded.find_events("question_failed")] == [(code, message)]


async def test_a_closed_stream_is_counted_as_left(index_provider: Book) -> None:
    with record_telemetry() as recorded:
        async with aclosing(index_provider.stream(HORN)) as events:
            await anext(events)
    assert [labels for name, _, labels in recorded.metrics if name == "questions"] == [{"outcome": LEFT}]


async def test_a_cancelled_question_is_counted_as_left() -> None:
    begun = asyncio.Event()

    async def read() -> None:
        with instrument(AgentRequest(HORN), StageTimer(Deadline.after())):
            begun.set()
            await asyncio.Event().wait()

    with record_telemetry() as recorded:
        reading = asyncio.create_task(read())
        await begun.wait()
        reading.cancel()
        await asyncio.wait([reading])
    assert recorded.metrics == [("questions", 1.0, {"outcome": LEFT})]
