"""What the book lacks: found from the questions it could not answer, and told to its author."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio
from typer.testing import CliRunner

from bythebook.book import Book
from bythebook.cli.app import app
from bythebook.cli.gaps import parse_moment
from bythebook.errors import InputError
from bythebook.feedback import GapReport, InsertionPoint, NearestSection, Topic
from bythebook.feedback.gaps import format_markdown, format_text
from bythebook.settings import Settings
from tests.conftest import copied

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

RADIO = [
    "How do I signal a ship by radio?",
    "Which radio channel do ships listen to?",
    "How is a ship called by radio?",
]
WAGES = "How much is a keeper of the lighthouse paid in a year?"
FOREIGN = ["Why do cats purr?", "Which planet has the most moons?"]
ANSWERED = "How often does the horn sound in fog?"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def asked(shelved: Path, model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Book]:
    """The small book after a day of questions."""
    folder = copied(shelved, tmp_path_factory.mktemp("asked") / "data")
    async with Book.open(Settings(data_dir=folder, model_folder=model_folder)) as book:
        for question in (*FOREIGN, WAGES, *RADIO, RADIO[0], "What is it?"):
            assert not (await book.ask(question)).grounded, question
        response = await book.ask(ANSWERED)
        await book.rate(response.id, "down", "I wanted the bell.")
        await book.ask("What does the horn do in fog?")
        yield book


@pytest.mark.asyncio(loop_scope="module")
async def test_questions_are_clustered_into_topics_largest_first(asked: Book) -> None:
    report = await asked.gaps()
    radio = report.topics[0]
    assert (radio.count, radio.refused, radio.rated_down, set(radio.examples)) == (4, 4, 0, set(RADIO))
    assert radio.label in RADIO
    assert "radio" in radio.terms
    assert [topic.count for topic in report.topics] == [4, 1, 1]
    assert (report.questions, report.unclear, report.covered_since) == (9, ("What is it?",), 0)


@pytest.mark.asyncio(loop_scope="module")
async def test_each_topic_has_an_insertion_point(asked: Book) -> None:
    async with asked.snapshot() as snapshot:
        for topic in (await asked.gaps()).topics:
            assert topic.place
            page = snapshot.catalog.get_page(topic.place.url)
            assert page
            assert page.title == topic.place.title
            assert topic.place.after in page.text
            assert topic.nearest[0].url == topic.place.url


@pytest.mark.asyncio(loop_scope="module")
async def test_an_answer_rated_down_is_a_topic_with_its_reason(asked: Book) -> None:
    (down,) = [topic for topic in (await asked.gaps()).topics if topic.rated_down]
    assert (down.label, down.refused, down.reasons) == (ANSWERED, 0, ("I wanted the bell.",))


@pytest.mark.asyncio(loop_scope="module")
async def test_off_topic_questions_are_listed_separately(asked: Book) -> None:
    report = await asked.gaps(limit=1)
    assert [topic.count for topic in report.topics] == [4]
    assert sorted(topic.label for topic in report.foreign) == sorted(FOREIGN)
    assert [topic.place for topic in report.foreign] == [None, None]
    assert report.topics_left_out == 2


@pytest.mark.asyncio(loop_scope="module")
async def test_the_report_covers_questions_since_a_date(asked: Book) -> None:
    report = await asked.gaps(since=datetime.now(UTC) + timedelta(hours=1))
    assert report == GapReport(0, (), (), (), 0, 0, report.generation)
    assert format_text(report) == "The book has answered every question so far."


@pytest.mark.asyncio(loop_scope="module")
async def test_over_the_limit_only_the_latest_questions_are_used(asked: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bythebook.book.MOST_UNANSWERED", 2)
    report = await asked.gaps()
    assert (report.questions, report.questions_left_out) == (9, 7)
    assert (report.unclear, [topic.label for topic in report.topics]) == (("What is it?",), [ANSWERED])


@pytest.mark.asyncio(loop_scope="module")
async def test_a_gap_answered_by_a_newer_generation_is_closed(
    shelved: Path, model_folder: Path, tmp_path: Path
) -> None:
    folder = copied(shelved, tmp_path / "data")
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "radio.md").write_text("# Radio\n\nTo signal a ship by radio, call it on channel sixteen.\n")
    async with Book.open(Settings(data_dir=folder, model_folder=model_folder)) as book:
        await book.ask(RADIO[0])
        await book.ask(WAGES)
        assert (await book.gaps()).covered_since == 0
        await book.ingest(pages)
        report = await book.gaps()
    assert (report.covered_since, [topic.label for topic in report.topics]) == (1, [WAGES])


TOPIC = Topic(
    label="How do I *tune* the radio?",
    terms=("radio", "tune"),
    count=3,
    refused=2,
    rated_down=1,
    examples=("How do I *tune* the radio?", "Radio\n\x1b[31m?"),
    reasons=("Not the <bell>.",),
    nearest=(NearestSection("https://book/fog", "Fog", ("Fog", "The horn"), "the-horn", 0.412),),
    place=InsertionPoint("https://book/fog", "Fog", "The horn"),
    last_asked_at=datetime(2026, 5, 1, tzinfo=UTC),
)
ELSEWHERE = replace(TOPIC, label="Why do cats purr?", count=1, place=None)
REPORT = GapReport(6, (TOPIC,), (ELSEWHERE,), ("What is it?",), 1, 2, "g000001", questions_left_out=2)


def test_the_report_as_text() -> None:
    assert format_text(REPORT) == (
        "6 questions without a good answer, 1 topic. Only the latest 4 were looked at. 2 smaller topics not shown. "
        "1 question answered since, by a newer generation of the book.\n"
        "\n"
        "1. How do I *tune* the radio?  (3 times)\n"
        "   words: radio, tune\n"
        "   also: Radio [31m?\n"
        "   answered, but rated down: once\n"
        "   reason given: Not the <bell>.\n"
        "   nearest: Fog > The horn (0.41)\n"
        "   belongs in: “Fog”, after “The horn”\n"
        "   page: https://book/fog\n"
        "\n"
        "Not about this book:\n"
        "   Why do cats purr?  (once)\n"
        "\n"
        "Asked back, because they could not be understood:\n"
        "   What is it?"
    )


def test_the_markdown_report_escapes_the_text_of_readers() -> None:
    lines = format_markdown(REPORT).splitlines()
    assert "## How do I \\*tune\\* the radio?" in lines
    assert "- reason given: Not the \\<bell\\>." in lines
    assert "- belongs in: “Fog”, after “The horn”" in lines
    assert lines[-3:] == ["## Asked back, because they could not be understood", "", "- What is it?"]


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("", datetime(1970, 1, 1, tzinfo=UTC)),
        ("12h", datetime(2026, 5, 30, 20, tzinfo=UTC)),
        ("7d", datetime(2026, 5, 24, 8, tzinfo=UTC)),
        ("2w", datetime(2026, 5, 17, 8, tzinfo=UTC)),
        ("2026-05-01", datetime(2026, 5, 1, tzinfo=UTC)),
        ("2026-05-01T10:00:00+02:00", datetime(2026, 5, 1, 8, tzinfo=UTC)),
    ],
)
def test_parses_the_start_of_the_period(text: str, moment: datetime) -> None:
    assert parse_moment(text, now=datetime(2026, 5, 31, 8, tzinfo=UTC)) == moment


@pytest.mark.parametrize("text", ["yesterday", "7", "d", "-7d", "99999w", "2026-13-01"])
def test_rejects_an_invalid_start(text: str) -> None:
    with pytest.raises(InputError, match="is not a time"):
        parse_moment(text, now=datetime(2026, 5, 31, tzinfo=UTC))


def test_the_command_prints_text_markdown_and_json(
    shelved: Path, model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copied(shelved, tmp_path / "data")
    monkeypatch.setenv("BYTHEBOOK_MODEL_FOLDER", str(model_folder))
    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke
    assert "I don't have information" in run(app, ["ask", WAGES, "--data-dir", str(folder)]).stdout
    text, markdown, as_json = (run(app, ["gaps", "--data-dir", str(folder), *how]).stdout for how in HOW)
    assert f"1. {WAGES}  (once)" in text
    assert f"## {WAGES}" in markdown
    assert json.loads(as_json)["topics"][0]["label"] == WAGES


HOW: tuple[list[str], ...] = ([], ["--markdown"], ["--json", "--limit", "1", "--since", "1d"])
