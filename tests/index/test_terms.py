"""BM25 terms and weights."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bythebook.index.terms import SATURATION, Bm25Terms, idf, quantize_length, weighted_overlap

WORDS = Bm25Terms(20.0)


def test_terms_are_stemmed_and_without_stop_words_or_case() -> None:
    assert WORDS.terms("The lamps are BURNING") == WORDS.terms("lamp burns")
    assert WORDS.terms("the of and is it") == frozenset()
    assert len(WORDS.terms("lamp lamp lamp oil")) == 2


@pytest.mark.parametrize(
    ("text", "length"),
    [
        pytest.param("", 0, id="nothing"),
        pytest.param("the of and", 0, id="stop words"),
        pytest.param("lamp", 1, id="one"),
        pytest.param("lamp oil wick", 3, id="three"),
        pytest.param("lamp lamps lamp oil", 4, id="each as often as it stands"),
        pytest.param("lamp " * 500, 500, id="a great many"),
    ],
)
def test_counts_terms(text: str, length: int) -> None:
    assert sum(WORDS.term_frequencies(text).values()) == length


@settings(deadline=None)
@given(st.lists(st.sampled_from("lamp oil wick fog horn".split()), max_size=60))
def test_the_term_count_does_not_depend_on_the_average_length(words: list[str]) -> None:
    text = " ".join(words)
    assert Bm25Terms(1.0).count_terms(text) == Bm25Terms(100.0).count_terms(text) == len(words)


def test_weights_grow_with_frequency_up_to_a_bound() -> None:
    (term,) = WORDS.terms("lamp")
    once, often = (WORDS.term_weights(text)[term] for text in ("lamp", "lamp " * 10))
    assert 0 < once < often < SATURATION + 1


def test_a_word_weighs_less_in_a_long_text_than_in_a_short_one() -> None:
    (term,) = WORDS.terms("lamp")
    assert WORDS.term_weights("lamp")[term] > WORDS.term_weights("lamp " + "oil " * 50)[term]


def test_a_rare_term_has_a_higher_idf() -> None:
    assert idf(0, total=100) > idf(1, total=100) > idf(99, total=100) > idf(100, total=100) > 0
    assert idf(1, total=3) == pytest.approx(math.log(1 + 2.5 / 1.5))


@pytest.mark.parametrize(
    ("wanted", "found", "expected"),
    [
        pytest.param({1: 3.0, 2: 1.0}, [1, 2], 1.0, id="all of it"),
        pytest.param({1: 3.0, 2: 1.0}, [1], 0.75, id="the part by weight"),
        pytest.param({1: 3.0, 2: 1.0}, [1, 1, 9], 0.75, id="each once, others not at all"),
        pytest.param({1: 3.0}, [], 0.0, id="nothing found"),
        pytest.param({}, [1], 0.0, id="nothing wanted"),
    ],
)
def test_weighted_overlap(wanted: dict[int, float], found: list[int], expected: float) -> None:
    assert weighted_overlap(wanted, found) == expected


def test_quantized_lengths_are_stable_under_small_edits() -> None:
    assert quantize_length(38.0) == quantize_length(40.0)
    assert quantize_length(40.0) != quantize_length(60.0)
    assert quantize_length(0.0) == quantize_length(8.0) == 8.0
    assert all(abs(quantize_length(length) / length - 1) < 0.1 for length in (9.0, 33.3, 120.0, 400.0))
