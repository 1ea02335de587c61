"""The ranking of candidates."""

from __future__ import annotations

import random
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.index import Candidate, sort_candidates
from bythebook.retrieval.retriever import page_key, rank, sum_rankings


def name(page: int, chunk: int) -> int:
    """The key of a chunk of a page, in the format of real ids."""
    return UUID(f"{page:08x}-0000-5000-8000-{chunk:012x}").int


def order(*candidates: Candidate) -> list[int]:
    return [key for key, _ in rank(sort_candidates(candidates))]


A, B, C = (name(page, 0) for page in range(3))


@pytest.mark.parametrize(
    ("candidates", "expected"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([Candidate(A, 0.1)], [A], id="one"),
        pytest.param([Candidate(A, 0.1), Candidate(B, 0.9)], [B, A], id="by score"),
        pytest.param([Candidate(B, 0.5), Candidate(A, 0.5)], [A, B], id="ties by id"),
    ],
)
def test_rank(candidates: list[Candidate], expected: list[int]) -> None:
    assert order(*candidates) == expected


def test_sums_several_rankings() -> None:
    rankings = [[Candidate(A, 1.0), Candidate(B, 0.6)], [Candidate(C, 0.7), Candidate(B, 0.5)]]
    assert sum_rankings(rankings) == [Candidate(B, 1.1), Candidate(A, 1.0), Candidate(C, 0.7)]


def test_a_page_with_many_candidates_ranks_higher() -> None:
    alone = [Candidate(name(9, 0), 0.60)]
    noise = [Candidate(name(20 + number, 0), 0.3) for number in range(6)]
    together = [Candidate(name(1, number), 0.59) for number in range(5)]

    assert order(*alone, *noise, *together)[0] == name(1, 0)
    # Two chunks of a page are often found by chance: they get no bonus.
    assert order(*alone, *noise, *together[:2])[0] == name(9, 0)


def test_chunks_after_the_fifth_add_nothing_to_their_page() -> None:
    five = [Candidate(name(1, number), 0.6) for number in range(5)]
    more = [Candidate(name(1, number), 0.3) for number in range(5, 9)]

    assert rank(five)[0].key == name(1, 0)
    assert rank(five)[0].score == pytest.approx(0.6 + 0.1 * 3 * 0.6)
    assert rank([*five, *more])[0] == rank(five)[0]


SCORES = st.floats(-1, 3, allow_nan=False)
CANDIDATES = st.lists(
    st.builds(Candidate, st.builds(name, st.integers(0, 3), st.integers(0, 9)), SCORES),
    unique_by=lambda candidate: candidate.key,
    max_size=20,
)


@given(CANDIDATES, st.randoms(use_true_random=False))
def test_the_ranking_does_not_depend_on_the_input_order(candidates: list[Candidate], shuffle: random.Random) -> None:
    ranked = rank(sort_candidates(candidates))

    assert {key for key, _ in ranked} == {candidate.key for candidate in candidates}
    assert [score for _, score in ranked] == sorted((score for _, score in ranked), reverse=True)
    shuffle.shuffle(candidates)
    assert [key for key, _ in rank(sort_candidates(candidates))] == [key for key, _ in ranked]


def test_the_chunks_of_a_page_share_a_page_key() -> None:
    one, same, other = (page_key(Candidate(name(page, chunk), 0.0)) for page, chunk in ((1, 2), (1, 3), (2, 2)))
    assert one == same != other
    assert page_key(Candidate(1, 0.0)) != page_key(Candidate(2, 0.0))


def test_converts_keys_back_to_ids() -> None:
    assert Candidate(name(1, 2), 0.0).chunk_id == "00000001-0000-5000-8000-000000000002"
    assert Candidate(7, 0.0).chunk_id == "7"
    assert Candidate((1 << 64) - 1, 0.0).chunk_id == "18446744073709551615"
