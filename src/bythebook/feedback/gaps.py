"""Finding the gaps: questions the book could not answer become topics, each with where its answer would belong.

Grouping: questions that ask for the same thing, by meaning and by the words they share.

Average linkage, worked out along chains of nearest neighbours: the same questions give the same groups, whatever
their number, and nothing is drawn by lot.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bythebook.answers import Outcome
from bythebook.concurrency import together
from bythebook.feedback import GapReport, Place, Topic
from bythebook.feedback.answer_log import sections
from bythebook.feedback.ratings import Rating
from bythebook.index import EVERYWHERE
from bythebook.retrieval.evidence import weigh

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from bythebook.embeddings import Embedder, Vector
    from bythebook.feedback.ratings import Asked, Section
    from bythebook.index.provider import Edition
    from bythebook.retrieval.retriever import Retriever

    Similarities = NDArray[np.float32]


FOREIGN = 0.02
"""Below this confidence a question is about something else. Of the 24 foreign questions a book is calibrated with, 24
fell below it in our manual and 23 in a small handbook; so did 5 of 19 questions those two might well have answered."""
EXAMPLES = 5
_NEAREST, _TERMS = 3, 4
_AT_ONCE = 96
"""How many questions are looked up side by side: a hosted embedder gets them in one request."""
_WORD = re.compile(r"\w[\w'’-]*")


@dataclass(frozen=True, slots=True)
class _Question:
    """A question as the current generation of the book sees it."""

    asked: Asked
    vector: Vector
    terms: dict[int, float]
    nearest: tuple[Section, ...]
    confidence: float

    @property
    def is_foreign(self) -> bool:
        """Whether no section of the book comes anywhere near. What was answered from it is about it in any case."""
        return self.asked.outcome == Outcome.REFUSED and self.confidence < FOREIGN

    def is_covered_by(self, edition: Edition) -> bool:
        """Whether the book answers it by now. One that was answered, and rated down, is a gap all the same."""
        newer = self.asked.outcome == Outcome.REFUSED and self.asked.generation != edition.name
        return newer and self.confidence >= edition.calibration.cutoff


async def find_gaps(
    unanswered: Sequence[Asked], *, edition: Edition, embedder: Embedder, retriever: Retriever, limit: int
) -> GapReport:
    """What the book lacks. Questions foreign to it stand apart and do not count toward `limit`."""
    unclear = dict.fromkeys(asked.question for asked in unanswered if asked.outcome == Outcome.CLARIFY)
    clear = [asked for asked in unanswered if asked.outcome != Outcome.CLARIFY]
    seen = await _all_seen(clear, edition, embedder, retriever)
    questions = [question for question in seen if not question.is_covered_by(edition)]
    topics = _topics(questions, edition)
    about = [topic for topic in topics if topic.place]
    return GapReport(
        questions=len(unanswered),
        topics=tuple(about[:limit]),
        foreign=tuple(topic for topic in topics if not topic.place),
        unclear=tuple(unclear),
        covered_since=len(seen) - len(questions),
        topics_left_out=max(len(about) - limit, 0),
        generation=edition.name,
    )


async def _all_seen(
    asked: Sequence[Asked], edition: Edition, embedder: Embedder, retriever: Retriever
) -> list[_Question]:
    seen: list[_Question] = []
    for first in range(0, len(asked), _AT_ONCE):
        some = asked[first : first + _AT_ONCE]
        seen += await together(*(_seen(each, edition, embedder, retriever) for each in some))
    return seen


async def _seen(asked: Asked, edition: Edition, embedder: Embedder, retriever: Retriever) -> _Question:
    """Look the question up again: the book may have changed since it was asked."""
    found = await retriever.retrieve(edition, asked.question, top_k=5, filters=EVERYWHERE)
    confidence = asked.confidence
    if confidence is None or asked.generation != edition.name:
        confidence = (await weigh(edition, embedder, found)).confidence
    terms = edition.rarities(edition.words.terms(asked.question))
    return _Question(asked, found.question, terms, sections(found.context.results), confidence)


def _topics(questions: Sequence[_Question], edition: Edition) -> list[Topic]:
    """The questions by topic, what was asked most first."""
    if not questions:
        return []
    alike = similarities([question.vector for question in questions], [question.terms for question in questions])
    return [_topic([questions[number] for number in group], _central(alike, group), edition) for group in groups(alike)]


def _central(alike: Similarities, group: Sequence[int]) -> list[int]:
    """The places in the group, from the middle of it outward."""
    inner = alike[group][:, group].sum(axis=1)
    return sorted(range(len(group)), key=lambda place: (-float(inner[place]), place))


def _topic(group: Sequence[_Question], order: Sequence[int], edition: Edition) -> Topic:
    central = [group[place] for place in order]
    distinct = list(dict.fromkeys(" ".join(question.asked.question.split()) for question in central))
    down = [question for question in group if question.asked.rating is Rating.DOWN]
    nearest = _nearest(group)
    return Topic(
        label=distinct[0],
        terms=_telling([question.asked.question for question in group], edition),
        count=len(group),
        refused=sum(question.asked.outcome == Outcome.REFUSED for question in group),
        rated_down=len(down),
        examples=tuple(distinct[:EXAMPLES]),
        reasons=tuple(question.asked.reason for question in down if question.asked.reason)[:EXAMPLES],
        nearest=nearest,
        # One question that comes near speaks for those that say the same in other words.
        place=_place(nearest[0]) if nearest and not all(question.is_foreign for question in group) else None,
        last_asked_at=max(question.asked.asked_at for question in group),
    )


def _nearest(group: Iterable[_Question]) -> tuple[Section, ...]:
    """The sections that come nearest to the group: each question speaks for its own, the nearer the louder."""
    votes: dict[tuple[str, tuple[str, ...]], float] = {}
    best: dict[tuple[str, tuple[str, ...]], Section] = {}
    for question in group:
        for section in question.nearest:
            key = (section.url, section.headings)
            votes[key] = votes.get(key, 0.0) + section.score**2
            if key not in best or section.score > best[key].score:
                best[key] = section
    ranked = sorted(votes, key=lambda key: (-votes[key], key))
    return tuple(best[key] for key in ranked[:_NEAREST])


def _place(nearest: Section) -> Place:
    """After the section that comes nearest: whoever reads it is the reader who asked."""
    after = nearest.headings[-1] if len(nearest.headings) > 1 else ""
    return Place(nearest.url, nearest.title, after)


def _telling(questions: Sequence[str], edition: Edition) -> tuple[str, ...]:
    """The words most of these questions share and few chunks of the book have, as readers wrote them."""
    written: dict[int, Counter[str]] = {}
    asked: Counter[int] = Counter()
    for question in questions:
        seen: set[int] = set()
        for word in _WORD.findall(question):
            for term in edition.words.terms(word):
                written.setdefault(term, Counter())[word.lower()] += 1
                seen.add(term)
        asked.update(seen)
    rarities = edition.rarities(asked)
    ranked = sorted(asked, key=lambda term: (-asked[term] * rarities[term], min(written[term])))
    return tuple(dict.fromkeys(_usual(written[term]) for term in ranked))[:_TERMS]


def _usual(spellings: Counter[str]) -> str:
    """The spelling that was used most."""
    return min(spellings, key=lambda word: (-spellings[word], word))


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
