"""The calibration of the evidence cutoff."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.index import Calibration
from bythebook.retrieval.calibration import (
    DEFAULT_CUTOFF,
    MAX_CUTOFF,
    MAX_QUESTIONS,
    MIN_CUTOFF,
    UNCALIBRATED,
    choose_cutoff,
    cross_validate,
    is_valid_for,
    load_fixed_questions,
)
from bythebook.retrieval.evidence import RULES
from tests.support.word_embedder import WordBook


@pytest.mark.parametrize(
    ("covered", "foreign", "line"),
    [
        pytest.param([0.9] * 20, [0.1] * 20, MIN_CUTOFF, id="far apart: as low as it goes"),
        pytest.param([0.9] * 20, [0.6] * 20, 0.6, id="as high as foreign questions ask for"),
        pytest.param([0.95] * 20, [0.9] * 20, MAX_CUTOFF, id="never higher than this"),
        pytest.param([0.55] * 20, [0.65] * 20, 0.55, id="the book's own questions come first"),
        pytest.param([0.2] * 20, [0.65] * 20, DEFAULT_CUTOFF, id="hopeless: the usual line"),
        pytest.param([0.2] * 20, [0.45] * 20, 0.45, id="low on both sides"),
        pytest.param([0.8] * 10, [0.1] * 9 + [0.99], MIN_CUTOFF, id="one foreign question in ten may pass"),
        pytest.param([0.9], [0.3], MIN_CUTOFF, id="a book with one question"),
        pytest.param([0.9] * 20, [0.61234] * 20, 0.612, id="rounded"),
    ],
)
def test_choose_cutoff(covered: list[float], foreign: list[float], line: float) -> None:
    assert choose_cutoff(covered, foreign) == line


@pytest.mark.parametrize(
    ("chunks", "holds"),
    [(100, True), (81, True), (120, True), (79, False), (121, False), (0, False)],
    ids=["same", "a little smaller", "a little larger", "smaller", "larger", "gone"],
)
def test_a_calibration_stays_valid_for_small_changes(chunks: int, holds: bool) -> None:
    tried = Calibration(cutoff=0.5, kept=1.0, refused=1.0, questions=24, chunks=100, rule=RULES)
    assert is_valid_for(tried, chunks) is holds
    assert not is_valid_for(replace(tried, rule="another"), chunks)


@pytest.mark.parametrize(
    ("kept", "refused", "precision", "recall"),
    [
        pytest.param(1.0, 1.0, 1.0, 1.0, id="all right"),
        pytest.param(0.75, 0.5, 0.6667, 0.5, id="six of twelve, and three of its own"),
        pytest.param(1.0, 0.0, None, 0.0, id="nothing refused"),
    ],
)
def test_precision_and_recall_are_those_of_refusals(
    kept: float, refused: float, precision: float | None, recall: float
) -> None:
    tried = Calibration(cutoff=0.5, kept=kept, refused=refused, questions=12, chunks=9, foreign=12, rule=RULES)
    assert (tried.precision, tried.recall) == (precision, recall)


def test_each_question_is_judged_by_the_cutoff_of_the_others() -> None:
    # The negative at .65 would move the cutoff above itself. The others give .4.
    assert cross_validate([0.9] * 8, [0.1, 0.65]) == (1.0, 0.5)
    assert cross_validate([0.9], [0.1]) == (1.0, 1.0)


async def test_calibration_is_deterministic(tmp_path: Path, lighthouse: Path) -> None:
    calibrations = []
    for name in ("one", "two"):
        book = WordBook(tmp_path / name)
        await book.ingest(lighthouse)
        with book.index_provider() as index_provider:
            async with index_provider.snapshot() as snapshot:
                calibrations.append(snapshot.calibration)

    assert calibrations[0] == calibrations[1]
    assert MIN_CUTOFF <= calibrations[0].cutoff <= MAX_CUTOFF
    assert 0 < calibrations[0].questions <= MAX_QUESTIONS
    assert calibrations[0].kept > 0


async def test_a_book_without_sentences_gets_the_default_cutoff(tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "a.md").write_text("# A\n\nOil.")
    book = WordBook(tmp_path / "index")
    await book.ingest(tmp_path / "pages")
    with book.index_provider() as index_provider:
        async with index_provider.snapshot() as snapshot:
            assert snapshot.calibration == UNCALIBRATED


def test_there_are_enough_off_topic_questions() -> None:
    assert len(set(load_fixed_questions("off_topic"))) >= MAX_QUESTIONS


VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=30)


@given(VALUES, VALUES, st.randoms(use_true_random=False))
def test_scores_beyond_the_range_of_cutoffs_have_the_same_effect(
    covered: list[float], foreign: list[float], chance: random.Random
) -> None:
    """This allows calibration to stop embedding spans once the score is outside the range."""

    def blurred(values: list[float]) -> list[float]:
        return [
            chance.uniform(MAX_CUTOFF, 1)
            if v >= MAX_CUTOFF
            else chance.uniform(0, MIN_CUTOFF - 0.001)
            if v < MIN_CUTOFF
            else v
            for v in values
        ]

    line = choose_cutoff(covered, foreign)
    for values in (covered, foreign):
        assert [value >= line for value in blurred(values)] == [value >= line for value in values]
    assert choose_cutoff(blurred(covered), blurred(foreign)) == line
