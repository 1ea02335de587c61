"""Grouping: questions that ask for the same thing, by meaning and by the words they share.

Average linkage, worked out along chains of nearest neighbours: the same questions give the same groups, whatever
their number, and nothing is drawn by lot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from bythebook.vectors import Vector

    Similarities = NDArray[np.float32]

ALIKE = 0.38
"""How alike two groups are, on average, to be one topic."""
_BY_WORDS = 0.3
"""What part of the likeness is by shared words; the rest is by meaning."""


def similarities(vectors: Sequence[Vector], weighed: Sequence[Mapping[int, float]]) -> Similarities:
    """How alike each two questions are, 0 to 1. `weighed` has each question's terms with how much each says."""
    meaning = np.stack(vectors)
    terms = {term: column for column, term in enumerate(sorted({term for each in weighed for term in each}))}
    words = np.zeros((len(weighed), max(len(terms), 1)), dtype=np.float32)
    for row, each in enumerate(weighed):
        for term, weight in each.items():
            words[row, terms[term]] = weight
    words /= np.maximum(np.linalg.norm(words, axis=1, keepdims=True), 1e-9)
    alike: Similarities = (1 - _BY_WORDS) * (meaning @ meaning.T) + _BY_WORDS * (words @ words.T)
    return alike.clip(0.0, 1.0).astype(np.float32)


def groups(alike: Similarities, *, least: float = ALIKE) -> list[list[int]]:
    """The numbers of the questions of each group, the largest group first, those of one size by their first number."""
    root = list(range(len(alike)))

    def find(number: int) -> int:
        while root[number] != number:
            number = root[number]
        return number

    for one, other, likeness in _merges(alike):
        if likeness >= least:
            first, second = sorted((find(one), find(other)))
            root[second] = first
    members: dict[int, list[int]] = {}
    for number in range(len(alike)):
        members.setdefault(find(number), []).append(number)
    return sorted(members.values(), key=lambda group: (-len(group), group[0]))


def _merges(alike: Similarities) -> list[tuple[int, int, float]]:
    """Every merge there is until all is one group, each with how alike its two sides were."""
    near = alike.copy()
    np.fill_diagonal(near, -1.0)
    sizes = np.ones(len(near), dtype=np.float32)
    standing = np.ones(len(near), dtype=bool)
    merges: list[tuple[int, int, float]] = []
    chain: list[int] = []
    while standing.sum() > 1:
        if not chain:
            chain = [int(np.argmax(standing))]
        last = chain[-1]
        nearest = int(np.argmax(near[last]))
        # Of two that are equally near the one we came from is taken, or the chain would go in a circle.
        if len(chain) > 1 and near[last, chain[-2]] >= near[last, nearest]:
            nearest = chain[-2]
            chain = chain[:-2]
            merges.append((nearest, last, float(near[last, nearest])))
            _join(near, sizes, nearest, last)
            standing[last] = False
        else:
            chain.append(nearest)
    return merges


def _join(near: Similarities, sizes: NDArray[np.float32], kept: int, gone: int) -> None:
    """Make one group of two: how alike it is to each other group is the average over its members."""
    total = sizes[kept] + sizes[gone]
    joined = (near[kept] * sizes[kept] + near[gone] * sizes[gone]) / total
    joined[near[kept] < 0] = -1.0
    joined[[kept, gone]] = -1.0
    near[kept], near[:, kept] = joined, joined
    near[gone], near[:, gone] = -1.0, -1.0
    sizes[kept] = total
