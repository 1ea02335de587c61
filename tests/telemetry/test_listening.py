"""Telling costs nothing while nobody listens, and never changes what happens."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest

from bythebook import AgentRequest, Settings
from bythebook.answers.events import Entered, Event, State
from bythebook.book import Book
from bythebook.errors import NotFound, RetrievalError
from bythebook.qa.instrumentation import LEFT, witnessed
from bythebook.telemetry import figure, listening, log, span
from tests.support.telemetry import Heard, hearing

HORN = "How often does the fog horn sound?"


def test_while_nobody_listens_a_span_is_the_same_nothing_for_all() -> None:
    assert span("searching") is span("proving", upstream="x")
    figure("no such figure", 1, and_no_such="label")
    log("no such event")


def test_the_first_file_needs_nothing_but_the_standard_library() -> None:
    script = (
        "import sys, bythebook.telemetry\nprint('prometheus_client' in sys.modules, 'opentelemetry' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_several_listen_and_only_as_long_as_they_want() -> None:
    with hearing() as first, hearing() as second:
        with span("searching"):
            log("state", state="received")
    log("state", state="failed")
    assert first.spans == second.spans == [("searching", "")]
    assert first.events == second.events == [("state", {"state": "received"})]


def test_a_listener_that_leaves_early_does_not_take_others_along() -> None:
    early, late = Heard(), Heard()
    first = listening(early)
    first.__enter__()
    with listening(late):
        first.__exit__(None, None, None)
        log("state", state="received")
    assert (early.events, late.events) == ([], [("state", {"state": "received"})])


def test_a_span_ends_with_its_error() -> None:
    with hearing() as heard, pytest.raises(NotFound):
        with span("searching"):
            raise NotFound("nothing")
    assert heard.spans == [("searching", "NotFound")]


async def test_an_ingest_is_told_with_its_stages(book: Book, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Lamp\n\nThe keeper lights the lamp at dusk.", encoding="utf-8")
    with hearing() as heard:
        report = await book.ingest(page)
    assert [name for name, _ in heard.spans] == ["reading", "embedding chunks", "writing", "ingest"]
    (told,) = heard.told("ingested")
    assert (told["generation"], told["pages"], told["chunks"], told["skipped"]) == ("g000001", 1, 1, 0)
    assert told["seconds"] == report.seconds


async def test_a_question_is_told_with_its_stages_and_its_outcome(shelf: Book) -> None:
    with hearing() as heard:
        response = await shelf.ask(HORN)
    names = [name for name, _ in heard.spans]
    assert names == ["opening the book", "embedding", "searching", "weighing", "question"]
    (told,) = heard.told("question")
    assert (told["outcome"], told["question"], told["answer"]) == ("answered", HORN, response.answer)
    assert [fields["state"] for fields in heard.told("state")] == [
        *("received", "validating", "retrieving", "generating", "completed"),
    ]
    counted = {(name, *labels.values()): value for name, value, labels in heard.figures}
    assert counted["questions", "answered"] == 1
    assert counted["first_token_seconds",] > 0


async def test_the_generation_that_is_opened_is_told(shelved: Path, model_folder: Path) -> None:
    settings = Settings.load({"data_dir": shelved, "model_folder": model_folder}, folder=shelved)
    with hearing() as heard:
        async with Book.open(settings):
            pass
    (told,) = heard.told("opened")
    assert told["generation"] == "g000001"
    assert {name: value for name, value, _ in heard.figures} == {
        "index_generation": 1,
        "pages": told["pages"],
        "chunks": told["chunks"],
    }


@pytest.fixture
async def shelf(shelved: Path, model_folder: Path) -> AsyncIterator[Book]:
    """The small book, open for reading."""
    # However slow the machine is, a question gets its answer.
    given = {"data_dir": shelved, "model_folder": model_folder, "first_token_seconds": 60, "answer_seconds": 120}
    async with Book.open(Settings.load(given, folder=shelved)) as opened:
        yield opened


async def test_a_search_is_told_too(shelf: Book) -> None:
    with hearing() as heard:
        await shelf.search("fog horn")
        await shelf.search("fog horn")  # the second time, nothing is done
    assert [name for name, _ in heard.spans] == ["embedding", "searching"]


async def test_a_question_that_fails_is_told_with_its_error(book: Book) -> None:
    with hearing() as heard, pytest.raises(NotFound):
        await book.ask(HORN)
    (told,) = heard.told("question_failed")
    # What is said to the reader is not said twice: this is the reader's to mend.
    assert (told["error"], told["stage"], told["message"]) == ("not_found", "opening the book", "")
    assert ("questions", 1.0, {"outcome": "not_found"}) in heard.figures
    assert heard.told("state")[-1] == {"state": "failed"}


async def _failing(error: Exception) -> AsyncGenerator[Event]:
    raise error
    yield Entered(State.RECEIVED)


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        pytest.param(RetrievalError("the disk is gone"), "retrieval_error", "the disk is gone", id="ours"),
        pytest.param(ValueError("a page's text"), "error", "", id="one that nobody expected"),
    ],
)
async def test_what_failed_is_said_in_our_words_only(error: Exception, code: str, message: str) -> None:
    with hearing() as heard, pytest.raises(type(error)):
        await anext(witnessed(AgentRequest(HORN), _failing(error)))
    assert [(told["error"], told["message"]) for told in heard.told("question_failed")] == [(code, message)]


async def test_a_reader_who_leaves_is_counted_as_such(shelf: Book) -> None:
    with hearing() as heard:
        async with aclosing(shelf.stream(HORN)) as events:
            await anext(events)
    assert [labels for name, _, labels in heard.figures if name == "questions"] == [{"outcome": LEFT}]


async def test_a_reader_who_is_cut_off_is_counted_as_such() -> None:
    begun = asyncio.Event()

    async def endless() -> AsyncGenerator[Event]:
        begun.set()
        await asyncio.Event().wait()
        yield Entered(State.RECEIVED)

    async def read() -> None:
        async with aclosing(witnessed(AgentRequest(HORN), endless())) as events:
            await anext(events)

    with hearing() as heard:
        reading = asyncio.create_task(read())
        await begun.wait()
        reading.cancel()
        await asyncio.wait([reading])
    assert heard.figures == [("questions", 1.0, {"outcome": LEFT})]
