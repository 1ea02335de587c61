"""Finding the gaps: questions the book could not answer become topics, each with where its answer would belong."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bythebook.answers import Outcome
from bythebook.conversations.asked import Rating
from bythebook.gaps import GapReport, Place, Topic
from bythebook.gaps.grouping import groups, similarities
from bythebook.gaps.notebook import sections
from bythebook.passages import EVERYWHERE
from bythebook.passages.evidence import weigh
from bythebook.together import together

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bythebook.conversations.asked import Asked, Section
    from bythebook.gaps.grouping import Similarities
    from bythebook.passages.retriever import Retriever
    from bythebook.passages.shelf import Edition
    from bythebook.vectors import Embedder, Vector

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
