"""Where the line between covered and not covered is drawn."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.index import Calibration
from bythebook.retrieval.calibration import (
    HIGHEST,
    LOWEST,
    STRANGERS,
    TRIED,
    UNTRIED,
    USUAL,
    draw_line,
    judged,
    still_holds,
)
from bythebook.retrieval.evidence import RULE
from tests.support.word_embedder import WordBook


@pytest.mark.parametrize(
    ("covered", "foreign", "line"),
    [
        pytest.param([0.9] * 20, [0.1] * 20, LOWEST, id="far apart: as low as it goes"),
        pytest.param([0.9] * 20, [0.6] * 20, 0.6, id="as high as foreign questions ask for"),
        pytest.param([0.95] * 20, [0.9] * 20, HIGHEST, id="never higher than this"),
        pytest.param([0.55] * 20, [0.65] * 20, 0.55, id="the book's own questions come first"),
        pytest.param([0.2] * 20, [0.65] * 20, USUAL, id="hopeless: the usual line"),
        pytest.param([0.2] * 20, [0.45] * 20, 0.45, id="low on both sides"),
        pytest.param([0.8] * 10, [0.1] * 9 + [0.99], LOWEST, id="one foreign question in ten may pass"),
        pytest.param([0.9], [0.3], LOWEST, id="a book with one question"),
        pytest.param([0.9] * 20, [0.61234] * 20, 0.612, id="rounded"),
    ],
)
def test_draw_line(covered: list[float], foreign: list[float], line: float) -> None:
    assert draw_line(covered, foreign) == line


@pytest.mark.parametrize(
    ("chunks", "holds"),
    [(100, True), (81, True), (120, True), (79, False), (121, False), (0, False)],
    ids=["same", "a little smaller", "a little larger", "smaller", "larger", "gone"],
)
def test_a_calibration_holds_while_the_book_is_much_the_same(chunks: int, holds: bool) -> None:
    tried = Calibration(cutoff=0.5, kept=1.0, refused=1.0, questions=24, chunks=100, rule=RULE)
    assert still_holds(tried, chunks) is holds
    assert not still_holds(replace(tried, rule="another"), chunks)


@pytest.mark.parametrize(
    ("kept", "refused", "precision", "recall"),
    [
        pytest.param(1.0, 1.0, 1.0, 1.0, id="all right"),
        pytest.param(0.75, 0.5, 0.6667, 0.5, id="six of twelve, and three of its own"),
        pytest.param(1.0, 0.0, None, 0.0, id="nothing refused"),
    ],
)
def test_precision_and_recall_are_of_refusals(
    kept: float, refused: float, precision: float | None, recall: float
) -> None:
    tried = Calibration(cutoff=0.5, kept=kept, refused=refused, questions=12, chunks=9, foreign=12, rule=RULE)
    assert (tried.precision, tried.recall) == (precision, recall)


def test_a_question_is_judged_by_the_line_the_others_draw() -> None:
    # By itself the one foreign question at .65 would move the line above it. The others draw it at .4.
    assert judged([0.9] * 8, [0.1, 0.65]) == (1.0, 0.5)
    assert judged([0.9], [0.1]) == (1.0, 1.0)


async def test_a_book_is_calibrated_when_it_is_read_in_and_always_alike(tmp_path: Path, lighthouse: Path) -> None:
    calibrations = []
    for name in ("one", "two"):
        book = WordBook(tmp_path / name)
        await book.ingest(lighthouse)
        with book.shelf() as shelf:
            async with shelf.edition() as edition:
                calibrations.append(edition.calibration)

    assert calibrations[0] == calibrations[1]
    assert LOWEST <= calibrations[0].cutoff <= HIGHEST
    assert 0 < calibrations[0].questions <= TRIED
    assert calibrations[0].kept > 0


async def test_a_book_without_a_single_sentence_has_the_usual_line(tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "a.md").write_text("# A\n\nOil.")
    book = WordBook(tmp_path / "index")
    await book.ingest(tmp_path / "pages")
    with book.shelf() as shelf:
        async with shelf.edition() as edition:
            assert edition.calibration == UNTRIED


def test_there_are_enough_foreign_questions() -> None:
    assert len(set(STRANGERS)) >= TRIED


VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=30)


@given(VALUES, VALUES, st.randoms(use_true_random=False))
def test_the_line_does_not_depend_on_how_far_beyond_its_range_a_value_lies(
    covered: list[float], foreign: list[float], chance: random.Random
) -> None:
    """So that a question need not be read closely once that is sure."""

    def blurred(values: list[float]) -> list[float]:
        return [
            chance.uniform(HIGHEST, 1) if v >= HIGHEST else chance.uniform(0, LOWEST - 0.001) if v < LOWEST else v
            for v in values
        ]

    line = draw_line(covered, foreign)
    for values in (covered, foreign):
        assert [value >= line for value in blurred(values)] == [value >= line for value in values]
    assert draw_line(blurred(covered), blurred(foreign)) == line
