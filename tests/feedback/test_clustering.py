"""Grouping questions: what is alike comes together, always in the same way."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from bythebook.feedback.gaps import cluster, compute_similarities

Matrix = NDArray[np.float32]


def matrix(*rows: list[float]) -> Matrix:
    return np.array(rows, dtype=np.float32)


@pytest.mark.parametrize(
    ("alike", "expected"),
    [
        pytest.param(np.zeros((0, 0), np.float32), [], id="no questions"),
        pytest.param(matrix([1.0]), [[0]], id="one question"),
        pytest.param(matrix([1.0, 0.2], [0.2, 1.0]), [[0], [1]], id="two that differ"),
        pytest.param(matrix([1.0, 0.8], [0.8, 1.0]), [[0, 1]], id="two that are alike"),
        pytest.param(
            matrix([1.0, 0.1, 0.9], [0.1, 1.0, 0.1], [0.9, 0.1, 1.0]), [[0, 2], [1]], id="the larger group first"
        ),
        pytest.param(
            # 0 is like 1, and 1 like 2, but 0 is not like 2: on average the third is not like the two.
            matrix([1.0, 0.9, 0.0], [0.9, 1.0, 0.7], [0.0, 0.7, 1.0]),
            [[0, 1], [2]],
            id="a friend of a friend",
        ),
        pytest.param(np.ones((5, 5), np.float32), [[0, 1, 2, 3, 4]], id="the same question five times"),
    ],
)
def test_clusters_of_given_similarities(alike: Matrix, expected: list[list[int]]) -> None:
    assert cluster(alike, threshold=0.5) == expected


def by_definition(alike: Matrix, least: float) -> set[frozenset[int]]:
    """Average linkage as textbooks have it: join the two that are most alike until none are alike enough."""
    parts = [frozenset({number}) for number in range(len(alike))]
    while len(parts) > 1:
        likeness, one, other = max(
            (float(alike[np.ix_(list(a), list(b))].mean()), i, j)
            for i, a in enumerate(parts)
            for j, b in enumerate(parts)
            if i < j
        )
        if likeness < least:
            break
        joined = parts[one] | parts[other]
        parts = [part for number, part in enumerate(parts) if number not in (one, other)] + [joined]
    return set(parts)


def drawn(seed: int, size: int) -> Matrix:
    """Questions that are alike by lot: no two pairs equally."""
    alike = np.random.default_rng(seed).random((size, size), dtype=np.float32)
    alike = np.maximum(alike, alike.T)
    np.fill_diagonal(alike, 1.0)
    return alike


@pytest.mark.parametrize("seed", range(20))
def test_clusters_match_the_definition(seed: int) -> None:
    alike = drawn(seed, 12)
    for least in (0.6, 0.7, 0.8):
        assert {frozenset(group) for group in cluster(alike, threshold=least)} == by_definition(alike, least)


@pytest.mark.parametrize("seed", range(5))
def test_clusters_do_not_depend_on_the_order_of_questions(seed: int) -> None:
    alike = drawn(seed, 40)
    order = np.random.default_rng(seed).permutation(40).tolist()
    shuffled = cluster(alike[np.ix_(order, order)], threshold=0.7)
    expected = {frozenset(group) for group in cluster(alike, threshold=0.7)}
    assert {frozenset(order[place] for place in group) for group in shuffled} == expected
    assert 1 < len(expected) < 40


def test_similarity_combines_vectors_and_words() -> None:
    vectors = [matrix([1.0, 0.0])[0], matrix([1.0, 0.0])[0], matrix([0.0, 1.0])[0]]
    alike = compute_similarities(vectors, [{1: 2.0}, {2: 1.0}, {1: 2.0}])
    assert np.allclose(alike, matrix([1.0, 0.7, 0.3], [0.7, 1.0, 0.0], [0.3, 0.0, 1.0]))


def test_questions_without_terms_are_compared_by_vectors() -> None:
    vectors = [matrix([1.0, 0.0])[0], matrix([-1.0, 0.0])[0]]
    assert np.allclose(compute_similarities(vectors, [{}, {}]), matrix([0.7, 0.0], [0.0, 0.7]))
