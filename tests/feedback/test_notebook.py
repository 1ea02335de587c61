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
from bythebook.feedback.answer_log import MOST_WAITING, Notebook
from bythebook.feedback.ratings import Ledger
from bythebook.settings import Settings
from bythebook.telemetry import listening
from tests.conftest import copied

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
    from datetime import datetime

    from bythebook.feedback.ratings import Asked
    from bythebook.telemetry import Ended

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


class Listening:
    """Hears what is told."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, dict[str, Any]]] = []

    def began(self, _name: str, _attributes: Mapping[str, Any], /) -> Ended:
        return lambda _error: None

    def counted(self, _name: str, _value: float, _labels: Mapping[str, str], /) -> None:
        pass

    def happened(self, event: str, fields: Mapping[str, Any], /) -> None:
        if event == "notes_lost":
            self.heard.append((event, dict(fields)))


@pytest.fixture
def lost() -> Iterator[Lost]:
    """What is told of notes that were lost."""
    listener = Listening()
    with listening(listener):
        yield listener.heard


class Faulty(Ledger):
    """A ledger that fails, or waits until it is let go on."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error, self.batches, self.free = error, list[int](), asyncio.Event()

    async def open(self) -> Ledger:
        return self

    async def forget(self, before: datetime) -> int:
        assert before.tzinfo
        return 0

    async def keep(self, entries: Sequence[Asked]) -> None:
        await self.free.wait()
        self.batches.append(len(entries))
        if self.error:
            raise self.error


def refused() -> AgentResponse:
    return AgentResponse("No.", Outcome.REFUSED, (), (), "extractive", ResponseMetadata(1.0, "g000001"))


async def test_what_the_book_could_not_answer_is_written_down_also_without_a_session(opened: Book) -> None:
    responses = [await opened.ask(question) for question in (ANSWERED, REFUSED, UNCLEAR)]
    assert [response.outcome for response in responses] == ["answered", "refused", "clarify"]
    await opened.settle()
    unclear, no = await opened.unanswered()
    assert (unclear.question, unclear.outcome, unclear.nearest) == (UNCLEAR, "clarify", ())
    assert (no.question, no.outcome, no.id, no.conversation_id) == (REFUSED, "refused", responses[1].id, None)
    assert no.generation == responses[1].metadata.index_generation
    assert no.confidence == responses[1].metadata.confidence
    assert tuple(section.name for section in no.nearest) == responses[1].suggestions


async def test_a_follow_up_is_written_down_as_it_was_understood(opened: Book) -> None:
    session = await opened.conversation()
    await opened.ask(AgentRequest(ANSWERED, session_id=session.id))
    await opened.ask(AgentRequest("How much does it cost to buy in Sardinia?", session_id=session.id))
    await opened.settle()
    (gap,) = await opened.unanswered()
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
    assert {gap.id for gap in await opened.unanswered()} == {alone.id, inside.id}
    with pytest.raises(InputError):
        await opened.rate(alone.id, "sideways", user_id="ann")


async def test_with_gaps_off_no_question_is_written_down_and_answers_can_still_be_rated(settings: Settings) -> None:
    off = replace(settings, keep_gaps="off")
    async with Book.open(off) as book:
        response = await book.ask(REFUSED)
        await book.rate(response.id, "down")
        assert await book.unanswered() == []
        book.part()
    kept = list(off.data_dir.glob("*.db*"))
    assert kept
    assert b"Sardinia" not in b"".join(path.read_bytes() for path in kept)


async def test_an_answer_is_given_though_it_cannot_be_written_down(settings: Settings, lost: Lost) -> None:
    away = replace(settings, database_url="postgresql://127.0.0.1:1/none")
    async with Book.open(away) as book:
        assert (await book.ask(REFUSED)).outcome == "refused"
        assert (await book.ask(ANSWERED)).outcome == "answered"
    assert sum(fields["count"] for _, fields in lost) == 2
    assert "Sardinia" not in str(lost)


async def test_closing_the_book_writes_down_what_is_waiting(settings: Settings) -> None:
    async with Book.open(settings) as book:
        await book.ask(REFUSED)
    async with Book.open(settings) as book:
        assert [gap.question for gap in await book.unanswered()] == [REFUSED]


async def test_notes_wait_together_while_the_database_is_slow_and_never_too_many() -> None:
    slow = Faulty()
    notebook = Notebook(slow.open, questions=True)
    for _ in range(MOST_WAITING + 10):
        notebook.note(refused(), "Why?", (), user_id="")
    await asyncio.sleep(0)
    notebook.note(refused(), "Why?", (), user_id="")
    slow.free.set()
    await notebook.settle()
    assert slow.batches == [MOST_WAITING, 1]


@pytest.mark.parametrize("error", [Unavailable("away"), RuntimeError("a mistake of ours")])
async def test_what_goes_wrong_is_told_and_the_next_note_tried_again(error: Exception, lost: Lost) -> None:
    ledger = Faulty(error)
    ledger.free.set()
    notebook = Notebook(ledger.open, questions=True)
    for _ in range(2):
        notebook.note(refused(), "Why?", (), user_id="")
        await notebook.settle()
    assert (ledger.batches, lost) == ([1, 1], [("notes_lost", {"count": 1, "error": str(error)})] * 2)


async def test_closing_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bythebook.feedback.answer_log.CLOSING_SECONDS", 0.01)
    stuck = Faulty()
    notebook = Notebook(stuck.open, questions=True)
    notebook.note(refused(), str(uuid.uuid4()), (), user_id="")
    await notebook.close()
    assert stuck.batches == []


async def test_a_command_that_ends_leaves_its_gaps_for_the_next_who_looks(settings: Settings) -> None:
    folder = settings.data_dir / "asked"
    async with Book.open(settings) as book:
        book.part()
        response = await book.ask(REFUSED)
    async with Book.open(settings) as book:
        book.part()
        await book.ask(ANSWERED)
    assert [path.name for path in settings.data_dir.glob("*.db")] == []
    assert [path.stem for path in folder.iterdir()] == [response.id]
    (folder / "foreign.json").write_text("[1]")
    async with Book.open(settings) as one, Book.open(settings) as other:
        await asyncio.gather(one.unanswered(), other.unanswered())
        (gap,) = await one.unanswered()
    assert (gap.question, gap.id, list(folder.iterdir())) == (REFUSED, response.id, [])


async def test_without_a_place_for_notes_the_answer_is_given(tmp_path: Path, lost: Lost) -> None:
    (tmp_path / "asked").write_text("a file where a folder should be")
    notebook = Notebook(Faulty().open, questions=True)
    notebook.put_aside(tmp_path / "asked")
    notebook.note(refused(), "Why?", (), user_id="")
    await notebook.close()
    assert [fields["count"] for _, fields in lost] == [1]
