"""The gap report: unanswered questions are clustered into topics, each with the place where an answer belongs.

The similarity of two questions combines their vectors with the words they share. Clustering is average linkage. It is
deterministic: the same questions give the same clusters.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bythebook.answers import Outcome
from bythebook.concurrency import gather
from bythebook.embeddings import Embedder, Vector
from bythebook.feedback import AnswerLogEntry, GapReport, InsertionPoint, NearestSection, Rating, Topic
from bythebook.feedback.answer_log import nearest_sections
from bythebook.index import NO_FILTERS
from bythebook.index.provider import IndexSnapshot
from bythebook.retrieval.evidence import score_evidence
from bythebook.retrieval.retriever import Retriever

Similarities = NDArray[np.float32]

OFF_TOPIC_LOGIT, OFF_TOPIC_CONFIDENCE = -9.5, 0.02
"""Below this logit of the best passage a question is off-topic; without a reranker, below this confidence. Of the 24
off-topic questions used for calibration 23 are below the logit in the manual of this project, and 24 in a small
handbook; of 8 questions about their subjects none is."""
MAX_EXAMPLES = 5
_NEAREST, _TERMS = 3, 4
_BATCH_SIZE = 4
"""How many questions are searched concurrently: as many as the reranker reads without a reduced budget."""
_WORD = re.compile(r"\w[\w'’-]*")


@dataclass(frozen=True, slots=True)
class _LocatedQuestion:
    """A question with its search result in the current generation of the book."""

    entry: AnswerLogEntry
    vector: Vector
    terms: dict[int, float]
    nearest: tuple[NearestSection, ...]
    confidence: float
    is_dissimilar: bool
    """Whether every section of the book is about something else."""

    @property
    def is_off_topic(self) -> bool:
        """Whether the book is about something else. An answered question is never off-topic."""
        return self.entry.outcome == Outcome.REFUSED and self.is_dissimilar

    def is_covered_by(self, snapshot: IndexSnapshot) -> bool:
        """Whether the current generation answers a refused question. An answer that was rated down remains a gap."""
        newer = self.entry.outcome == Outcome.REFUSED and self.entry.generation != snapshot.name
        return newer and self.confidence >= snapshot.calibration.cutoff


async def find_gaps(
    unanswered: Sequence[AnswerLogEntry],
    *,
    snapshot: IndexSnapshot,
    embedder: Embedder,
    retriever: Retriever,
    limit: int,
) -> GapReport:
    """What the book lacks. Off-topic questions are listed separately and do not count toward `limit`."""
    unclear = dict.fromkeys(entry.question for entry in unanswered if entry.outcome == Outcome.CLARIFY)
    clear = [entry for entry in unanswered if entry.outcome != Outcome.CLARIFY]
    located: list[_LocatedQuestion] = []
    for first in range(0, len(clear), _BATCH_SIZE):
        batch = clear[first : first + _BATCH_SIZE]
        located += await gather(*(_locate(entry, snapshot, embedder, retriever) for entry in batch))
    questions = [question for question in located if not question.is_covered_by(snapshot)]
    topics = _topics(questions, snapshot)
    on_topic = [topic for topic in topics if topic.place]
    return GapReport(
        questions=len(unanswered),
        topics=tuple(on_topic[:limit]),
        foreign=tuple(topic for topic in topics if not topic.place),
        unclear=tuple(unclear),
        covered_since=len(located) - len(questions),
        topics_left_out=max(len(on_topic) - limit, 0),
        generation=snapshot.name,
    )


async def _locate(
    entry: AnswerLogEntry, snapshot: IndexSnapshot, embedder: Embedder, retriever: Retriever
) -> _LocatedQuestion:
    """Search for the question again: the book may have changed since."""
    found = await retriever.retrieve(snapshot, entry.question, top_k=5, filters=NO_FILTERS)
    confidence = entry.coverage
    if confidence is None or entry.generation != snapshot.name:
        confidence = (await score_evidence(snapshot, embedder, found)).confidence
    logit = max(found.reading.logits.values()) if found.reading else None
    dissimilar = confidence < OFF_TOPIC_CONFIDENCE if logit is None else logit < OFF_TOPIC_LOGIT
    terms = snapshot.idf_weights(snapshot.bm25.terms(entry.question))
    vector = await embedder.embed_query(entry.question)
    nearest = nearest_sections(found.context.results)
    return _LocatedQuestion(entry, vector, terms, nearest, confidence, dissimilar)


def _topics(questions: Sequence[_LocatedQuestion], snapshot: IndexSnapshot) -> list[Topic]:
    """The questions as topics, largest first."""
    if not questions:
        return []
    similarity = compute_similarities(
        [question.vector for question in questions], [question.terms for question in questions]
    )
    return [
        _topic([questions[number] for number in group], _order_by_centrality(similarity, group), snapshot)
        for group in cluster(similarity)
    ]


def _order_by_centrality(similarity: Similarities, group: Sequence[int]) -> list[int]:
    """The positions in the cluster, most central first."""
    inner = similarity[group][:, group].sum(axis=1)
    return sorted(range(len(group)), key=lambda position: (-float(inner[position]), position))


def _topic(group: Sequence[_LocatedQuestion], order: Sequence[int], snapshot: IndexSnapshot) -> Topic:
    central = [group[position] for position in order]
    distinct = list(dict.fromkeys(" ".join(question.entry.question.split()) for question in central))
    down = [question for question in group if question.entry.rating is Rating.DOWN]
    nearest = _rank_sections(group)
    # One on-topic question is enough: the others ask the same in other words.
    off_topic = not nearest or all(question.is_off_topic for question in group)
    return Topic(
        label=distinct[0],
        terms=_distinctive_words([question.entry.question for question in group], snapshot),
        count=len(group),
        refused=sum(question.entry.outcome == Outcome.REFUSED for question in group),
        rated_down=len(down),
        examples=tuple(distinct[:MAX_EXAMPLES]),
        reasons=tuple(question.entry.reason for question in down if question.entry.reason)[:MAX_EXAMPLES],
        nearest=nearest,
        place=None if off_topic else _insertion_point(nearest[0]),
        last_asked_at=max(question.entry.asked_at for question in group),
    )


def _rank_sections(group: Iterable[_LocatedQuestion]) -> tuple[NearestSection, ...]:
    """The sections most similar to a cluster, by the sum of squared scores over its questions."""
    votes: dict[tuple[str, tuple[str, ...]], float] = {}
    best: dict[tuple[str, tuple[str, ...]], NearestSection] = {}
    for question in group:
        for section in question.nearest:
            key = (section.url, section.headings)
            votes[key] = votes.get(key, 0.0) + section.score**2
            if key not in best or section.score > best[key].score:
                best[key] = section
    ranked = sorted(votes, key=lambda key: (-votes[key], key))
    return tuple(best[key] for key in ranked[:_NEAREST])


def _insertion_point(nearest: NearestSection) -> InsertionPoint:
    """After the most similar section: its readers are the ones who ask."""
    after = nearest.headings[-1] if len(nearest.headings) > 1 else ""
    return InsertionPoint(nearest.url, nearest.title, after)


def _distinctive_words(questions: Sequence[str], snapshot: IndexSnapshot) -> tuple[str, ...]:
    """The words that are frequent in these questions and rare in the book, as readers wrote them."""
    written: dict[int, Counter[str]] = {}
    frequency: Counter[int] = Counter()
    for question in questions:
        seen: set[int] = set()
        for word in _WORD.findall(question):
            for term in snapshot.bm25.terms(word):
                written.setdefault(term, Counter())[word.lower()] += 1
                seen.add(term)
        frequency.update(seen)
    idf_weights = snapshot.idf_weights(frequency)
    ranked = sorted(frequency, key=lambda term: (-frequency[term] * idf_weights[term], min(written[term])))
    return tuple(dict.fromkeys(_most_frequent(written[term]) for term in ranked))[:_TERMS]


def _most_frequent(spellings: Counter[str]) -> str:
    """The most frequent spelling."""
    return min(spellings, key=lambda word: (-spellings[word], word))


MIN_SIMILARITY = 0.52
"""The minimum average similarity of two clusters that are merged into one topic."""
_WORD_WEIGHT = 0.3
"""The weight of shared words in the similarity; the rest is the similarity of the vectors."""


def compute_similarities(vectors: Sequence[Vector], term_weights: Sequence[Mapping[int, float]]) -> Similarities:
    """The similarity of each pair of questions, 0 to 1. `term_weights` has the weighted terms of each question."""
    matrix = np.stack(vectors)
    columns = {term: column for column, term in enumerate(sorted({term for each in term_weights for term in each}))}
    words = np.zeros((len(term_weights), max(len(columns), 1)), dtype=np.float32)
    for row, weights in enumerate(term_weights):
        for term, weight in weights.items():
            words[row, columns[term]] = weight
    words /= np.maximum(np.linalg.norm(words, axis=1, keepdims=True), 1e-9)
    similarity: Similarities = (1 - _WORD_WEIGHT) * (matrix @ matrix.T) + _WORD_WEIGHT * (words @ words.T)
    return similarity.clip(0.0, 1.0).astype(np.float32)


def cluster(similarity: Similarities, *, threshold: float = MIN_SIMILARITY) -> list[list[int]]:
    """The clusters as lists of question numbers, largest first, those of equal size by their first number."""
    near = similarity.copy()
    np.fill_diagonal(near, -1.0)
    groups = [[number] for number in range(len(near))]
    best = near.max(axis=1, initial=-1.0)
    while len(near) and best.max() >= threshold:
        first = int(best.argmax())
        kept, removed = sorted((first, int(near[first].argmax())))
        stale = (near[[kept, removed]] >= best).any(axis=0) & (best >= 0)
        # The similarity to each other cluster is the average over the members.
        joined = np.average(near[[kept, removed]], axis=0, weights=(len(groups[kept]), len(groups[removed])))
        joined[near[[kept, removed]].min(axis=0) < 0] = -1.0
        near[kept], near[:, kept] = joined, joined
        near[removed], near[:, removed] = -1.0, -1.0
        # An average is at most the larger of both, so only those whose nearest was one of the two have another one.
        stale[[kept, removed]] = True
        best[stale] = near[stale].max(axis=1)
        groups[kept] += groups[removed]
        groups[removed] = []
    return sorted((sorted(group) for group in groups if group), key=lambda group: (-len(group), group[0]))


NOTHING = "The book has answered every question so far."


def format_text(report: GapReport) -> str:
    """The report as plain text."""
    return "\n".join(_text_lines(report)).rstrip()


def format_markdown(report: GapReport) -> str:
    """The report as Markdown. The text of readers is escaped."""
    return "\n".join(_markdown_lines(report)).rstrip()


def _text_lines(report: GapReport) -> Iterator[str]:
    yield _summary(report)
    for number, topic in enumerate(report.topics, start=1):
        yield ""
        yield f"{number}. {_one_line(topic.label)}  ({_times(topic.count)})"
        yield from (f"   {line}" for line in _details(topic))
    if report.foreign:
        yield from ("", "Not about this book:")
        yield from (f"   {_one_line(topic.label)}  ({_times(topic.count)})" for topic in report.foreign)
    if report.unclear:
        yield from ("", "Asked back, because they could not be understood:")
        yield from (f"   {_one_line(question)}" for question in report.unclear)


def _markdown_lines(report: GapReport) -> Iterator[str]:
    yield from ("# What the book does not answer", "", _summary(report), "")
    for topic in report.topics:
        yield from (f"## {_escape_markdown(topic.label)}", "", f"Asked {_times(topic.count)}.", "")
        yield from (f"- {_escape_markdown(line)}" for line in _details(topic))
        yield ""
    if report.foreign:
        yield from ("## Not about this book", "")
        yield from (f"- {_escape_markdown(topic.label)} ({_times(topic.count)})" for topic in report.foreign)
        yield ""
    if report.unclear:
        yield from ("## Asked back, because they could not be understood", "")
        yield from (f"- {_escape_markdown(question)}" for question in report.unclear)


def _summary(report: GapReport) -> str:
    if not report.questions:
        return NOTHING
    summary = (
        f"{_pluralize(report.questions, 'question')} without a good answer, {_pluralize(len(report.topics), 'topic')}."
    )
    if report.questions_left_out:
        summary += f" Only the latest {report.questions - report.questions_left_out} were looked at."
    if report.topics_left_out:
        summary += f" {_pluralize(report.topics_left_out, 'smaller topic')} not shown."
    if report.covered_since:
        summary += f" {_pluralize(report.covered_since, 'question')} answered since, by a newer generation of the book."
    return summary


def _details(topic: Topic) -> Iterator[str]:
    if topic.terms:
        yield f"words: {', '.join(topic.terms)}"
    yield from (f"also: {_one_line(example)}" for example in topic.examples[1:])
    if topic.rated_down:
        yield f"answered, but rated down: {_times(topic.rated_down)}"
    yield from (f"reason given: {_one_line(reason)}" for reason in topic.reasons)
    for section in topic.nearest:
        yield f"nearest: {section.name} ({section.score:.2f})"
    if topic.place:
        yield f"belongs in: {topic.place}"
        yield f"page: {topic.place.url}"


def _one_line(text: str) -> str:
    """The text on one line, without control characters."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def _escape_markdown(text: str) -> str:
    return "".join(f"\\{char}" if char in "\\`*_[]<>#|!~" else char for char in _one_line(text))


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _pluralize(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
