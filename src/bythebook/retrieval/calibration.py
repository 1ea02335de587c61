"""Calibration: chooses the cutoff of the evidence check for a book when it is ingested.

Positive examples are questions made from the book's own sentences. Negative examples are off-topic questions from a
fixed list, and near misses: questions about sections of the book that ask for something no book has. The best cutoff
differs slightly between books.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from bythebook.chunking.spans import SpanKind, split_spans
from bythebook.concurrency import gather
from bythebook.index import NO_FILTERS, Calibration
from bythebook.retrieval.evidence import RULES, score_evidence

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bythebook.embeddings import Embedder
    from bythebook.index.provider import IndexSnapshot
    from bythebook.retrieval.retriever import Retriever


MAX_QUESTIONS = 12
"""The most questions of each kind: own, off-topic, near misses."""
DEFAULT_CUTOFF, MIN_CUTOFF, MAX_CUTOFF = 0.5, 0.4, 0.7
_MIN_SENTENCE_WORDS = 6
_CHUNKS_PER_QUESTION = 4
"""Chunks that are read for one question: some have no sentence that is long enough."""
UNCALIBRATED = Calibration(cutoff=DEFAULT_CUTOFF, kept=0.0, refused=0.0, questions=0, chunks=0, foreign=0, rule=RULES)


def load_fixed_questions(kind: str) -> list[str]:
    """The fixed questions of this kind: `off_topic`, or the frames of `near_misses`, with a name that is in no book."""
    questions: list[str] = json.loads(Path(__file__).with_suffix(".json").read_bytes())[kind]
    return questions


def is_current(calibration: Calibration) -> bool:
    """True if the cutoff was chosen for the current parameters of the evidence check."""
    return calibration.rule == RULES


def is_valid_for(calibration: Calibration, chunks: int) -> bool:
    """True if the calibration is current and the number of chunks has changed by at most a fifth."""
    return is_current(calibration) and abs(chunks - calibration.chunks) <= 0.2 * calibration.chunks


async def calibrate(snapshot: IndexSnapshot, embedder: Embedder, retriever: Retriever) -> Calibration:
    """Score both kinds of questions and choose the cutoff between them. It is deterministic."""
    own = await _own_questions(snapshot)
    if not own:
        return UNCALIBRATED
    questions = [*own, *load_fixed_questions("off_topic")[:MAX_QUESTIONS], *_near_misses(snapshot)]
    scores = await gather(*(_score_question(snapshot, embedder, retriever, question) for question in questions))
    positive, negative = scores[: len(own)], scores[len(own) :]
    kept, refused = cross_validate(positive, negative)
    return Calibration(
        cutoff=choose_cutoff(positive, negative),
        kept=kept,
        refused=refused,
        questions=len(own),
        chunks=snapshot.chunk_count,
        foreign=len(negative),
        rule=RULES,
    )


def cross_validate(positive: Sequence[float], negative: Sequence[float]) -> tuple[float, float]:
    """The shares of positives kept and negatives refused, each with the cutoff that the other scores give."""
    kept = [score >= choose_cutoff(others or positive, negative) for score, others in _leave_one_out(positive)]
    refused = [score < choose_cutoff(positive, others or negative) for score, others in _leave_one_out(negative)]
    return sum(kept) / len(kept), sum(refused) / len(refused)


def _leave_one_out(scores: Sequence[float]) -> Iterator[tuple[float, list[float]]]:
    """Each score with all the others."""
    for index, score in enumerate(scores):
        yield score, [*scores[:index], *scores[index + 1 :]]


def choose_cutoff(positive: Sequence[float], negative: Sequence[float]) -> float:
    """A cutoff that refuses nine in ten negatives, unless that loses more than one in twenty positives."""
    required = sorted(negative)[int(0.9 * (len(negative) - 1))]
    allowed = sorted(positive)[int(0.05 * (len(positive) - 1))]
    return round(min(max(required, MIN_CUTOFF), max(allowed, DEFAULT_CUTOFF), MAX_CUTOFF), 3)


async def _own_questions(snapshot: IndexSnapshot) -> list[str]:
    """Questions made of half the words of sentences, spread over the book."""
    ids = snapshot.catalog.all_chunk_ids()
    step = max(len(ids) // (MAX_QUESTIONS * _CHUNKS_PER_QUESTION), 1)
    passages = await snapshot.store.fetch(ids[::step])
    questions = (_make_question(passages[chunk_id].chunk.text) for chunk_id in sorted(passages))
    return [question for question in questions if question][:MAX_QUESTIONS]


def _make_question(text: str) -> str:
    prose = [
        text[span.start : span.end] for span in split_spans(text) if span.kind in (SpanKind.SENTENCE, SpanKind.ITEM)
    ]
    words = max((sentence.split() for sentence in prose), key=len, default=[])
    if len(words) < _MIN_SENTENCE_WORDS:
        return ""
    # Imported here because questions only read calibrations, and the first answer waits for every import.
    import random

    kept = sorted(random.Random(text).sample(range(len(words)), len(words) // 2))  # noqa: S311 - seeded, to be deterministic
    return " ".join(words[index] for index in kept)


def _near_misses(snapshot: IndexSnapshot) -> list[str]:
    """Questions about sections spread over the book, each with a name that is in no book."""
    pages = snapshot.catalog.table_of_contents()
    sections = list(dict.fromkeys(heading.lower() for page in pages for heading in (page.title, *page.headings)))
    spread = sections[:: max(len(sections) // MAX_QUESTIONS, 1)]
    return [
        frame.format(section=section)
        for frame, section in zip(load_fixed_questions("near_misses"), spread, strict=False)
    ]


async def _score_question(snapshot: IndexSnapshot, embedder: Embedder, retriever: Retriever, question: str) -> float:
    """The confidence for a question, exact below `MAX_CUTOFF`, the highest cutoff."""
    retrieval = await retriever.retrieve(snapshot, question, top_k=5, filters=NO_FILTERS)
    return (await score_evidence(snapshot, embedder, retrieval, sure=MAX_CUTOFF)).confidence
