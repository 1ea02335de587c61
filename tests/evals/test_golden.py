"""Golden questions: loading, checking and suggesting."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest

from bythebook import Book, Settings
from bythebook.answers import Outcome
from bythebook.errors import InputError
from bythebook.evals.golden import Expectation, GoldenQuestion, GoldenResult
from bythebook.evals.golden.check import GoldenChecker, is_same_page
from bythebook.evals.golden.load import load_questions
from bythebook.evals.golden.suggest import suggest_questions, to_yaml
from bythebook.evals.runner import without_deadlines
from bythebook.qa.suggestions import question_from_definition, question_from_heading
from tests.conftest import Run


def _file(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "questions.yaml"
    file.write_text(textwrap.dedent(text), encoding="utf-8")
    return file


async def _checked(shelved: Path, model_folder: Path, file: Path) -> list[GoldenResult]:
    settings = without_deadlines(Settings(data_dir=shelved, model_folder=model_folder))
    async with Book.open(settings) as book, book.snapshot() as snapshot:
        return await GoldenChecker(book.extractive_pipeline(), snapshot).check(
            load_questions(file), progress=lambda *_: None
        )


def test_questions_are_loaded_with_their_lines(tmp_path: Path) -> None:
    file = _file(
        tmp_path,
        """
        - question: How long does a mantle last?
          page: keeping/lamp.md
          section: "## Mantles"
          words: [forty, 40]
        - question: What is the price of tea?
          expect: refuse
        - conversation:
            - question: What is the fog horn?
            - question: How often does it sound?
              words: ninety  seconds
        """,
    )
    assert load_questions(file) == [
        (
            GoldenQuestion(
                "How long does a mantle last?",
                Expectation(page="keeping/lamp.md", section="Mantles", words=("forty", "40")),
                2,
            ),
        ),
        (GoldenQuestion("What is the price of tea?", Expectation(Outcome.REFUSED), 6),),
        (
            GoldenQuestion("What is the fog horn?", None, 9),
            GoldenQuestion("How often does it sound?", Expectation(words=("ninety seconds",)), 10),
        ),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("", "line 1: there is no question in it", id="empty"),
        pytest.param("question: What?", "line 1: the file must be a list of questions", id="no list"),
        pytest.param("- Where?", "line 1: a question is written as 'question: ...'", id="a bare text"),
        pytest.param("- page: a.md", "line 1: there is no 'question'", id="no question"),
        pytest.param("- question:", "line 1: 'question' needs a text", id="an empty question"),
        pytest.param("- question: [a]", "line 1: 'question' needs a text", id="a list for a question"),
        pytest.param("- question: A?\n  pgae: a", r"line 2: 'pgae' is not known. Is 'page' meant\?$", id="a typo"),
        pytest.param("- question: A?\n  refuse: true", "line 2: 'refuse' is not known. Write 'expect: re", id="refuse"),
        pytest.param("- question: A?\n  expect: fail", "line 2: expect must be answer, refuse or cl", id="expect what"),
        pytest.param("- question: A?\n  expect: refuse\n  page: a", "line 3: 'page' is expected of an", id="both"),
        pytest.param("- question: A?\n  page: a\n  page: b", "line 3: 'page' is given twice", id="twice"),
        pytest.param("- question: A?\n- question: A?", "line 2: the question of line 1 is asked again", id="again"),
        pytest.param("- question: A?\n  words: []", "line 2: this list is empty", id="no words"),
        pytest.param("- conversation: []", "line 1: a conversation is a list of questions", id="no conversation"),
        pytest.param(
            "- conversation:\n  - question: A?\n  page: a", "line 1: 'page' belongs to a question", id="where"
        ),
        pytest.param('- question: "A', "line 1: this is not YAML: .* that begins on line 1", id="not closed"),
        pytest.param("- question: A?\n   page: b", "line 2: this is not YAML", id="not aligned"),
        pytest.param(f"- question: {'A' * 1001}", "line 1: the question has 1001 characters", id="too long"),
    ],
)
def test_an_error_in_the_file_has_its_line(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        load_questions(_file(tmp_path, text))


@pytest.mark.parametrize(
    ("page", "where", "same"),
    [
        ("keeping/lamp.md", "keeping/lamp.md", True),
        ("lamp.md", "keeping/lamp.md", True),
        ("lamp", "https://example.org/book/keeping/lamp/", True),
        ("/keeping/lamp.html", "https://example.org/book/keeping/lamp", True),
        ("https://example.org/keeping/", "https://example.org/keeping/index.html", True),
        ("release-1.2", "notes/release-1.2.md", True),
        ("amp.md", "keeping/lamp.md", False),
        ("release-1.3.md", "notes/release-1.2.md", False),
        ("other/lamp.md", "keeping/lamp.md", False),
        ("#lamp", "keeping/lamp.md", False),
    ],
)
def test_a_page_is_named_by_the_end_of_its_path(page: str, where: str, same: bool) -> None:
    assert is_same_page(page, where) is same


async def test_expected_answers_pass(shelved: Path, model_folder: Path, tmp_path: Path) -> None:
    file = _file(
        tmp_path,
        """
        - question: How long does a mantle last?
        - question: What is the price of tea in Mongolia?
          expect: refuse
        - question: What is it?
          expect: clarify
        - conversation:
            - question: How often does the fog horn sound?
              page: signals/fog
            - question: What if it fails?
              words: bell
        """,
    )
    checked = await _checked(shelved, model_folder, file)
    assert [(one.question, one.missing) for one in checked if not one.passed] == []
    assert [one.line for one in checked] == [2, 3, 5, 8, 10]


async def test_a_failed_question_reports_expectation_answer_and_reason(
    shelved: Path, model_folder: Path, tmp_path: Path
) -> None:
    file = _file(
        tmp_path,
        """
        - question: How long does a mantle last?
          page: signals
          section: Mantels
          words: forty elephants
        - question: How often does the fog horn sound?
          expect: refuse
        - question: What is the capital of Mongolia?
          page: nowhere.md
        """,
    )
    mantle, horn, capital = await _checked(shelved, model_folder, file)
    assert mantle.missing == ("a quote from signals under “Mantels”", "“forty elephants”")
    assert "has no section “Mantels”" in mantle.note or "no page 'signals'" in mantle.note
    assert "“forty elephants” is nowhere in the book." in mantle.note
    assert mantle.actual.outcome is Outcome.ANSWERED
    assert "mantle" in mantle.actual.quote.lower()
    assert (horn.missing, horn.actual.page.endswith(".md"), bool(horn.actual.heading)) == (("a refusal",), True, True)
    assert (capital.missing, capital.actual.outcome) == (("an answer",), Outcome.REFUSED)
    assert capital.note == "The book has no page 'nowhere.md'."


async def test_headings_become_questions() -> None:
    headings = {
        "How to trim the wick": "How do I trim the wick?",
        "Install the lamp": "How do I install the lamp?",
        "Put the horn on your roof": "How do I put the horn on my roof?",
        "What happens when oil runs out": "What happens when oil runs out?",
        "How mantles work": "How do mantles work?",
        "How oil is stored": "How is oil stored?",
        "Where the oil is": "Where is the oil?",
        "Who keeps the light": "Who keeps the light?",
        "What a lens needs": "What does a lens need?",
        "How well it burns": "",
        "Import time": "",
        "Oil": "",
    }
    assert {heading: question_from_heading(heading) for heading in headings} == headings


def test_definitions_become_questions() -> None:
    assert question_from_definition("A mantle is a sleeve of woven silk that glows.") == (
        "What is a mantle?",
        "a sleeve of woven silk",
    )
    assert question_from_definition("Mantles are the heart of the lamp.") == (
        "What are mantles?",
        "the heart of the lamp",
    )
    for vague in ("It is a sleeve of silk.", "The name is the title of it.", "The lamp glows.", "A wick is wet."):
        assert question_from_definition(vague) is None


async def test_suggestions_pass_and_are_reproducible(shelved: Path, model_folder: Path, tmp_path: Path) -> None:
    settings = without_deadlines(Settings(data_dir=shelved, model_folder=model_folder))
    async with Book.open(settings) as book, book.snapshot() as snapshot:
        drafts = [
            await suggest_questions(book.extractive_pipeline(), snapshot, limit=3, seed=1, progress=lambda *_: None)
            for _ in range(2)
        ]
        assert drafts[0] == drafts[1]
    assert any(one.expected and one.expected.page for one in drafts[0])
    assert sum(one.expected == Expectation(Outcome.REFUSED) for one in drafts[0]) == 3
    checked = await _checked(shelved, model_folder, _file(tmp_path, to_yaml(drafts[0])))
    assert [one.passed for one in checked] == [True] * len(drafts[0])


def test_an_edit_that_breaks_an_answer_fails_and_leaves_no_trace(
    bythebook: Run, lighthouse: Path, tmp_path: Path
) -> None:
    """The workflow of an author: ingest, suggest, edit a page, check."""
    file = tmp_path / "questions.yaml"
    bythebook("ingest", lighthouse)
    drafted = bythebook("eval", "suggest", "--out", file, "--limit", "4")
    assert (drafted.returncode, drafted.stdout) == (0, "")
    assert "already" in bythebook("eval", "suggest", "--out", file).stderr
    passing = bythebook("eval", "golden", file)
    assert (passing.returncode, passing.stdout.endswith("questions pass.\n")) == (0, True)

    _file(tmp_path, "- question: How long does a mantle last?\n  words: burns for forty nights\n")
    for page in lighthouse.rglob("*.md"):
        page.write_text(page.read_text(encoding="utf-8").replace("mantle", "wick"), encoding="utf-8")
    bythebook("ingest", lighthouse)
    failing = bythebook("eval", "golden", file)
    assert failing.returncode == 1
    assert "line 1: How long does a mantle last?" in failing.stdout
    assert "expected: an answer with “burns for forty nights”" in failing.stdout
    told = json.loads(bythebook("eval", "golden", file, "--json").stdout)
    assert (told["passed"], told["failed"], told["questions"][0]["passed"]) == (0, 1, False)
    assert json.loads(bythebook("gaps", "--json").stdout)["questions"] == 0

    _file(tmp_path, "- questoin: Who?")
    wrong = bythebook("eval", "golden", file)
    assert (wrong.returncode, "line 1" in wrong.stderr) == (2, True)
