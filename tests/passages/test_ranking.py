"""One order out of two rankings."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.passages import Candidate
from bythebook.passages.ranking import page_of, rank


def name(page: int, chunk: int) -> str:
    """The id of a chunk of a page, in the shape ids have."""
    return f"{page:08x}-0000-5000-8000-{chunk:012x}"


def order(*candidates: Candidate) -> list[str]:
    return [chunk_id for chunk_id, _ in rank(candidates)]


A, B, C, D = (name(page, 0) for page in range(4))


@pytest.mark.parametrize(
    ("candidates", "expected"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([Candidate(A, 0.1, None)], [A], id="one"),
        pytest.param([Candidate(A, 0.1, None), Candidate(B, 0.9, None)], [B, A], id="by meaning alone"),
        pytest.param([Candidate(A, None, 1.0), Candidate(B, None, 9.0)], [B, A], id="by words alone"),
        pytest.param(
            [Candidate(A, 0.9, 1.0), Candidate(B, 0.5, 5.0), Candidate(C, 0.1, 4.0), Candidate(D, 0.5, 0.5)],
            [B, A, C, D],
            id="both together",
        ),
        pytest.param([Candidate(B, 0.5, 2.0), Candidate(A, 0.5, 2.0)], [A, B], id="ties by id"),
        pytest.param(
            [Candidate(A, 0.5, None), Candidate(B, 0.5, 3.0), Candidate(C, 0.5, 3.0)],
            [B, C, A],
            id="being found by both beats being found by one",
        ),
    ],
)
def test_rank(candidates: list[Candidate], expected: list[str]) -> None:
    assert order(*candidates) == expected


def test_a_page_of_which_much_was_found_lifts_its_chunks() -> None:
    alone = [Candidate(name(9, 0), 0.60, None)]
    noise = [Candidate(name(20 + number, 0), 0.3, None) for number in range(6)]
    together = [Candidate(name(1, number), 0.59, None) for number in range(5)]

    assert order(*alone, *noise, *together)[0] == name(1, 0)
    # Two chunks of a page are often found by chance: they gain nothing.
    assert order(*alone, *noise, *together[:2])[0] == name(9, 0)


def test_a_page_gains_no_more_from_its_sixth_chunk_on() -> None:
    noise = [Candidate(name(20 + number, 0), 0.3, None) for number in range(30)]
    five = [Candidate(name(1, number), 0.6, None) for number in range(5)]
    zero = [Candidate(name(1, number), 0.3, None) for number in range(5, 9)]
    (best, with_five), (_, with_nine) = (rank([*noise, *five, *rest])[0] for rest in ([], zero))

    assert best == name(1, 0)
    # The spread of the scores shifts a little with the number of candidates; the support does not add up further.
    assert with_nine == pytest.approx(with_five, rel=0.1)


SCORES = st.none() | st.floats(-1, 30, allow_nan=False)
CANDIDATES = st.lists(
    st.builds(Candidate, st.builds(name, st.integers(0, 3), st.integers(0, 9)), SCORES, SCORES),
    unique_by=lambda candidate: candidate.chunk_id,
    max_size=20,
).map(lambda found: [candidate for candidate in found if (candidate.cosine, candidate.bm25) != (None, None)])


@given(CANDIDATES, st.randoms(use_true_random=False))
def test_every_candidate_has_one_place_whatever_order_they_came_in(
    candidates: list[Candidate], shuffle: random.Random
) -> None:
    ranked = rank(candidates)

    assert sorted(chunk_id for chunk_id, _ in ranked) == sorted(candidate.chunk_id for candidate in candidates)
    assert [score for _, score in ranked] == sorted((score for _, score in ranked), reverse=True)
    shuffle.shuffle(candidates)
    assert [chunk_id for chunk_id, _ in rank(candidates)] == [chunk_id for chunk_id, _ in ranked]


def test_the_chunks_of_a_page_share_half_an_id() -> None:
    assert page_of(name(1, 2)) == page_of(name(1, 3)) != page_of(name(2, 2))
