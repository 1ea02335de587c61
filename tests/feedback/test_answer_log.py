"""Writing down what was asked: behind the answers, in order, and never at their cost."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bythebook.answers import AgentRequest, AgentResponse, Outcome, ResponseMetadata
from bythebook.book import Book
from bythebook.errors import InputError, NotFound, Unavailable
from bythebook.feedback.answer_log import MAX_PENDING, AnswerLog
from bythebook.feedback.ratings import RatingStore
from bythebook.settings import Settings
from bythebook.telemetry import install_listeners
from tests.conftest import copied

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
    from datetime import datetime

    from bythebook.feedback import AnswerLogEntry
    from bythebook.telemetry import OnSpanEnd

    Lost = list[tuple[str, dict[str, Any]]]

ANSWERED, REFUSED, UNCLEAR = "What does the horn do in fog?", "How is cheese made in Sardinia?", "What is it?"


@pytest.fixture
def settings(shelved: Path, model_folder: Path, tmp_path: Path) -> Settings:
    """The small book in a folder of its own."""
    folder = copied(shelved, tmp_path / "data")
    return Settings(data_dir=folder, model_folder=model_folder)


@pytest.fixture
async def opened(settings: Settings) -> AsyncIterator[Book]:
    async with Book.open(settings) as book:
        yield book


class LossListener:
    """Records the event answer_log_lost."""

    def __init__(self) -> None:
        self.lost: list[tuple[str, dict[str, Any]]] = []

    def on_span_start(self, _name: str, _attributes: Mapping[str, Any], /) -> OnSpanEnd:
        return lambda _error: None

    def on_metric(self, _name: str, _value: float, _labels: Mapping[str, str], /) -> None:
        pass

    def on_log_event(self, event: str, fields: Mapping[str, Any], /) -> None:
        if event == "answer_log_lost":
            self.lost.append((event, dict(fields)))


@pytest.fixture
def lost() -> Iterator[Lost]:
    """The fields of the events answer_log_lost."""
    listener = LossListener()
    with install_listeners(listener):
        yield listener.lost


class Faulty(RatingStore):
    """A store that fails, or waits until the event `free` is set."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error, self.batches, self.free = error, list[int](), asyncio.Event()

    async def open(self) -> RatingStore:
        return self

    async def delete_unrated_answers(self, *, before: datetime) -> int:
        assert before.tzinfo
        return 0

    async def add(self, entries: Sequence[AnswerLogEntry]) -> None:
        await self.free.wait()
        self.batches.append(len(entries))
        if self.error:
            raise self.error


def refused() -> AgentResponse:
    return AgentResponse(
        "I don't have information about it.", Outcome.REFUSED, (), (), "extractive", ResponseMetadata(1.0, "g000001")
    )


async def test_unanswered_questions_are_recorded_with_and_without_a_session(opened: Book) -> None:
    responses = [await opened.ask(question) for question in (ANSWERED, REFUSED, UNCLEAR)]
    assert [response.outcome for response in responses] == ["answered", "refused", "clarify"]
    await opened.flush()
    unclear, no = await opened.unanswered_questions()
    assert (unclear.question, unclear.outcome, unclear.nearest) == (UNCLEAR, "clarify", ())
    assert (no.question, no.outcome, no.id) == (REFUSED, "refused", responses[1].id)
    assert no.conversation_id == responses[1].session_id
    assert no.generation == responses[1].metadata.index_generation
    assert no.coverage == responses[1].metadata.coverage
    assert {link.title for link in responses[1].suggestions} <= {section.name for section in no.nearest}


async def test_a_follow_up_is_recorded_as_a_stand_alone_question(opened: Book) -> None:
    session = await opened.conversation()
    await opened.ask(AgentRequest(ANSWERED, session_id=session.id))
    await opened.ask(AgentRequest("How much does it cost to buy in Sardinia?", session_id=session.id))
    await opened.flush()
    (gap,) = await opened.unanswered_questions()
    turns = await (await opened.conversations()).turns(session.id, user_id="")
    assert (gap.question, gap.conversation_id) == (turns[1].standalone_question, session.id)


async def test_an_answer_is_rated_by_its_id_with_or_without_a_session(opened: Book) -> None:
    session = await opened.conversation(user_id="ann")
    alone = await opened.ask(ANSWERED, user_id="ann")
    inside = await opened.ask(AgentRequest(ANSWERED, session_id=session.id), user_id="ann")
    for response in (alone, inside):
        given = await opened.rate(response.id, "down", "Too short.", user_id="ann")
        assert (given.response_id, given.rating, given.reason) == (response.id, "down", "Too short.")
        assert await opened.rate(response.id, "down", "Too short.", user_id="ann") == given
        with pytest.raises(NotFound):
            await opened.rate(response.id, "up", user_id="bob")
    assert {gap.id for gap in await opened.unanswered_questions()} == {alone.id, inside.id}
    with pytest.raises(InputError):
        await opened.rate(alone.id, "sideways", user_id="ann")


async def test_without_question_logging_answers_can_still_be_rated(settings: Settings) -> None:
    off = replace(settings, log_unanswered=False, store_sessions=False)
    async with Book.open(off) as book:
        response = await book.ask(REFUSED)
        await book.rate(response.id, "down")
        assert await book.unanswered_questions() == []
        book.defer_log_writes()
    kept = list(off.data_dir.glob("*.db*"))
    assert kept
    assert b"Sardinia" not in b"".join(path.read_bytes() for path in kept)


async def test_a_failing_database_does_not_fail_the_answer(settings: Settings, lost: Lost) -> None:
    away = replace(settings, database_url="postgresql://127.0.0.1:1/none")
    async with Book.open(away) as book:
        assert (await book.ask(REFUSED)).outcome == "refused"
        assert (await book.ask(ANSWERED)).outcome == "answered"
    assert sum(fields["count"] for _, fields in lost) == 2
    assert "Sardinia" not in str(lost)


async def test_closing_the_book_writes_pending_entries(settings: Settings) -> None:
    async with Book.open(settings) as book:
        await book.ask(REFUSED)
    async with Book.open(settings) as book:
        assert [gap.question for gap in await book.unanswered_questions()] == [REFUSED]


async def test_pending_entries_are_batched_and_limited() -> None:
    slow = Faulty()
    answer_log = AnswerLog(slow.open, questions=True)
    for _ in range(MAX_PENDING + 10):
        answer_log.record(refused(), "Why?", (), user_id="")
    await asyncio.sleep(0)
    answer_log.record(refused(), "Why?", (), user_id="")
    slow.free.set()
    await answer_log.flush()
    assert slow.batches == [MAX_PENDING, 1]


@pytest.mark.parametrize("error", [Unavailable("away"), RuntimeError("a mistake of ours")])
async def test_a_failure_is_logged_and_the_next_entry_is_tried(error: Exception, lost: Lost) -> None:
    ledger = Faulty(error)
    ledger.free.set()
    answer_log = AnswerLog(ledger.open, questions=True)
    for _ in range(2):
        answer_log.record(refused(), "Why?", (), user_id="")
        await answer_log.flush()
    assert (ledger.batches, lost) == ([1, 1], [("answer_log_lost", {"count": 1, "error": str(error)})] * 2)


async def test_closing_has_a_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bythebook.feedback.answer_log.CLOSE_SECONDS", 0.01)
    stuck = Faulty()
    answer_log = AnswerLog(stuck.open, questions=True)
    answer_log.record(refused(), str(uuid.uuid4()), (), user_id="")
    await answer_log.close()
    assert stuck.batches == []


async def test_a_command_spools_its_gaps_for_the_next_report(settings: Settings) -> None:
    folder = settings.data_dir / "asked"
    async with Book.open(settings) as book:
        book.defer_log_writes()
        response = await book.ask(AgentRequest(REFUSED, store=False))
    async with Book.open(settings) as book:
        book.defer_log_writes()
        await book.ask(AgentRequest(ANSWERED, store=False))
    assert [path.name for path in settings.data_dir.glob("*.db")] == []
    assert [path.stem for path in folder.iterdir()] == [response.id]
    (folder / "foreign.json").write_text("[1]")
    async with Book.open(settings) as one, Book.open(settings) as other:
        await asyncio.gather(one.unanswered_questions(), other.unanswered_questions())
        (gap,) = await one.unanswered_questions()
    assert (gap.question, gap.id, list(folder.iterdir())) == (REFUSED, response.id, [])


async def test_an_unwritable_spool_does_not_fail_the_answer(tmp_path: Path, lost: Lost) -> None:
    (tmp_path / "asked").write_text("a file where a folder should be")
    answer_log = AnswerLog(Faulty().open, questions=True)
    answer_log.spool_to(tmp_path / "asked")
    answer_log.record(refused(), "Why?", (), user_id="")
    await answer_log.close()
    assert [fields["count"] for _, fields in lost] == [1]
