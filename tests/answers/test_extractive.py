"""Answers without a model: which block is shown, what comes with it, and the text of refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bythebook.answers import SectionLink
from bythebook.answers.blocks import Section, split_blocks
from bythebook.answers.extractive import classify_question, link_sections
from bythebook.answers.refusal import format_refusal
from tests.support.passages import result
from tests.support.word_embedder import WordBook

if TYPE_CHECKING:
    from pathlib import Path

LAMP = "# Lamps\n\n## Oil\n\n"


async def answer(folder: Path, page: str, question: str) -> str:
    """The answer of a book with this page and one about another subject."""
    (folder / "pages").mkdir()
    (folder / "pages" / "lamps.md").write_text(page)
    (folder / "pages" / "zoo.md").write_text("# Zoo\n\nA zebra has stripes.")
    book = WordBook(folder / "index")
    await book.ingest(folder / "pages")
    (response,) = await book.ask(question)
    return response.answer


@pytest.mark.parametrize(
    ("body", "question", "expected"),
    [
        pytest.param("It burns colza.", "Which colza?", "It burns colza. [1]", id="a sentence"),
        pytest.param(
            "The keeper lights lamps. Colza burns brightly. Nobody sleeps.",
            "Which colza burns?",
            "The keeper lights lamps. **Colza burns brightly.** Nobody sleeps. [1]",
            id="the sentence that answers is marked in its paragraph",
        ),
        pytest.param(
            "You need:\n\n- colza oil\n- a dry wick\n\nShips pass by.",
            "Which wick?",
            "You need:\n\n- colza oil\n- **a dry wick** [1]",
            id="a list comes whole, below its lead sentence",
        ),
        pytest.param(
            "Many things:\n\n" + "\n".join(f"- thing{number} here" for number in range(20)) + "\n- colza there",
            "Which colza?",
            "Many things:\n\n- thing0 here\n- thing1 here\n- thing2 here\n- thing3 here\n- **colza there** [1] [2]",
            id="a long list is cut to the items that matter",
        ),
        pytest.param(
            "Ships pass by.\n\nRun the lamp:\n\n```sh\nlamp --on\n```\n\nDone.",
            "How do I run the lamp?",
            "Run the lamp:\n\n```sh\nlamp --on\n```\n\nDone. [1]",
            id="code comes with the sentence before it",
        ),
        pytest.param(
            "| Flag | Means |\n| --- | --- |\n| Red | Danger |\n| Blue | Calm |",
            "Which flag means calm?",
            "| Flag | Means |\n| --- | --- |\n| Red | Danger |\n| Blue | Calm |\n[1]",
            id="a table comes with its header",
        ),
        pytest.param(
            "WICK_LENGTH\n\nThe length of the wick in inches.\n\nDefault: 3\n\n"
            "OIL_KIND\n\nThe oil that is burnt.\n\nDefault: colza",
            "default oil kind",
            "OIL_KIND\n\nThe oil that is burnt.\n\n**Default: colza** [1]",
            id="an option comes with its description and its default",
        ),
        pytest.param(
            "A slogan of colza lamps.\n\nColza is an oil of rape. It is pale.",
            "What is colza?",
            "**Colza is an oil of rape.** It is pale. [1]",
            id="a definition comes without what is before it",
        ),
        pytest.param(
            "Use the latest lamp version. Lamps support oil 3.7 and newer.",
            "Which lamp versions are supported?",
            "Use the latest lamp version. **Lamps support oil 3.7 and newer.** [1]",
            id="the sentence with the number of a version is marked",
        ),
        pytest.param(
            "A colza lamp:\n\n```py\nlamp()\nlamp()\n```\n\nOr a colza lamp:\n\n```py\nlamp()\nlamp()\n```\n",
            "colza lamp code",
            "A colza lamp:\n\n```py\nlamp()\nlamp()\n```\n[1]",
            id="of several examples the first",
        ),
        pytest.param(
            "Ships pass by.\n\nThe wick is long. This makes it burn brightly.\n\nThis is why colza is used.",
            "Why colza?",
            "The wick is long. This makes it burn brightly.\n\n**This is why colza is used.** [1]",
            id="a block that leans on the one before it brings that one",
        ),
    ],
)
async def test_the_block_that_answers_is_shown_below_its_headings(
    tmp_path: Path, body: str, question: str, expected: str
) -> None:
    assert await answer(tmp_path, LAMP + body, question) == f"**Lamps > Oil**\n\n{expected}"


@pytest.mark.parametrize(
    "question",
    [
        pytest.param("What does the lamp cost?", id="a price"),
        pytest.param("What licence is the lamp under?", id="a licence"),
        pytest.param("What is the default port of the lamp?", id="a port"),
        pytest.param("Which version of the lamp do I need?", id="a version"),
    ],
)
async def test_a_question_for_what_its_best_block_lacks_is_refused(tmp_path: Path, question: str) -> None:
    assert (await answer(tmp_path, f"{LAMP}The lamp burns oil.", question)).startswith("I don't have information")


async def test_code_longer_than_a_chunk_is_shown_whole(tmp_path: Path) -> None:
    code = "\n".join(f"step_{number} = lamp({number})" for number in range(60))
    shown = await answer(tmp_path, f"{LAMP}Light all lamps:\n\n```py\n{code}\n```\n", "show me code for all lamps")
    assert f"```py\n{code}\n```" in shown


@pytest.mark.parametrize(
    ("question", "code", "words"),
    [
        pytest.param("colza lamp code", 3.0, 0, id="an example is code"),
        pytest.param("how do I light it?", 1.0, 30, id="steps have code"),
        pytest.param("LampError: no oil", 0.5, 70, id="a remedy follows an error message"),
        pytest.param("what is a lamp?", 0.0, 40, id="a definition is a paragraph"),
        pytest.param("how many lamps are there?", 0.0, 0, id="a value is short"),
    ],
)
def test_the_kind_of_a_question_decides_what_is_added(question: str, code: float, words: int) -> None:
    shape = classify_question(question)
    assert (shape.code, shape.words, shape.front) == (code, words, False)


def test_a_bare_name_asks_for_the_beginning_of_its_section() -> None:
    assert classify_question("fog horn").front


def test_blocks_are_separated_by_blank_lines_and_by_their_kind() -> None:
    text = "One. Two.\nThree.\n- a\n  more of a\n- b\n\n```\nx\n\ny\n```\n| A |\n| - |\n| 1 |\n\nEnd."
    found = [(block.kind.value, text[block.start : block.end]) for block in split_blocks(text)]
    assert found == [
        ("paragraph", "One. Two.\nThree."),
        ("list", "- a\n  more of a\n- b"),
        ("code", "```\nx\n\ny\n```"),
        ("table", "| A |\n| - |\n| 1 |"),
        ("paragraph", "End."),
    ]


def test_the_quotes_of_a_section_are_in_the_passages_that_contain_them() -> None:
    first = result("The lamp burns oil.\n\nShips", chunk_id="a", start=10)
    second = result("Ships pass by.", chunk_id="b", start=31)
    section = Section((first, second), "The lamp burns oil.\n\nShips pass by.")
    quotes = section.quotes(0, len(section.text))
    assert [(quote.result.chunk_id, quote.text) for quote in quotes] == [
        ("a", "The lamp burns oil.\n\nShips"),
        ("b", "pass by."),
    ]


def test_a_refusal_names_the_question_and_links_the_nearest_sections() -> None:
    near = [SectionLink("A > B", "https://b.example/#b"), SectionLink("List[T]", "https://b.example/t")]
    assert format_refusal("Who?", near) == (
        "I don't have information about “Who?” in this book.\n\nThe nearest sections are:\n"
        "- [A > B](https://b.example/#b)\n- [List\\[T\\]](https://b.example/t)"
    )
    assert format_refusal("Who?", []) == "I don't have information about “Who?” in this book."
    assert len(format_refusal("x" * 1000, [])) < 200


@pytest.mark.parametrize(
    ("question", "near"),
    [
        pytest.param("Which colza?", ["Lamps > Oil"], id="a section that comes near"),
        pytest.param("Which airline?", [], id="nothing near"),
    ],
)
async def test_a_refusal_links_only_sections_that_come_near(tmp_path: Path, question: str, near: list[str]) -> None:
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "lamps.md").write_text(f"{LAMP}It burns colza.")
    book = WordBook(tmp_path / "index")
    await book.ingest(tmp_path / "pages")
    (response,) = await book.ask(question, threshold=1.0)
    assert response.outcome == "refused"
    assert [link.title for link in response.suggestions] == near


def test_linked_sections_are_unique_and_limited() -> None:
    found = [
        result("a", heading_hierarchy=("A", "B"), url="https://b.example/a", anchor="b"),
        result("b", heading_hierarchy=("A", "B"), url="https://b.example/a"),
        result("c", title="C", url="https://b.example/c_(lamp)"),
        result("d", heading_hierarchy=("D",), url="https://b.example/d"),
        result("e", heading_hierarchy=("E",), url="https://b.example/e"),
    ]
    assert link_sections(found) == (
        SectionLink("A > B", "https://b.example/a#b"),
        SectionLink("C", "https://b.example/c_%28lamp%29"),
        SectionLink("D", "https://b.example/d"),
    )
