"""Calibration: how well this very book tells what it covers, tried out when it is ingested.

Questions it must answer are made from its own sentences; questions it must refuse are asked about everything under
the sun. Where the line between them lies differs a little from book to book, so it is drawn for each.

Questions about everything under the sun, few of which any one book answers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bythebook.chunking.spans import UnitKind, units
from bythebook.concurrency import together
from bythebook.index import EVERYWHERE, Calibration
from bythebook.retrieval.evidence import RULE, confidence, glance

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bythebook.embeddings import Embedder
    from bythebook.index.provider import Edition
    from bythebook.retrieval.retriever import Retriever


TRIED = 24
"""Questions of each kind, at most."""
USUAL, LOWEST, HIGHEST = 0.5, 0.4, 0.7
_FEWEST_WORDS = 6
_CHUNKS_FOR_ONE = 4
"""Many a chunk has no sentence long enough to be halved."""


UNTRIED = Calibration(cutoff=USUAL, kept=0.0, refused=0.0, questions=0, chunks=0, foreign=0, rule=RULE)


def is_current(calibration: Calibration) -> bool:
    """True if the cutoff was fitted to the rule in use now."""
    return calibration.rule == RULE


def still_holds(calibration: Calibration, chunks: int) -> bool:
    """True if a book of this many chunks is still much the same book, judged by the same rule."""
    return is_current(calibration) and abs(chunks - calibration.chunks) <= 0.2 * calibration.chunks


async def calibrate(edition: Edition, embedder: Embedder, retriever: Retriever) -> Calibration:
    """Ask the book both kinds of questions and draw the line between the answers. The same book, the same line."""
    own = await _own_questions(edition)
    if not own:
        return UNTRIED
    asked = [*own, *STRANGERS[:TRIED]]
    sure = await together(*(_confidence(edition, embedder, retriever, question) for question in asked))
    covered, foreign = sure[: len(own)], sure[len(own) :]
    kept, refused = judged(covered, foreign)
    return Calibration(
        cutoff=draw_line(covered, foreign),
        kept=kept,
        refused=refused,
        questions=len(own),
        chunks=edition.chunk_count,
        foreign=len(foreign),
        rule=RULE,
    )


def judged(covered: Sequence[float], foreign: Sequence[float]) -> tuple[float, float]:
    """The parts that are kept and refused, each question judged by the line that the others draw."""
    kept = [value >= draw_line(others or covered, foreign) for value, others in _each(covered)]
    refused = [value < draw_line(covered, others or foreign) for value, others in _each(foreign)]
    return sum(kept) / len(kept), sum(refused) / len(refused)


def _each(values: Sequence[float]) -> Iterator[tuple[float, list[float]]]:
    """Each value with all the others."""
    for place, value in enumerate(values):
        yield value, [*values[:place], *values[place + 1 :]]


def draw_line(covered: Sequence[float], foreign: Sequence[float]) -> float:
    """As high as nine in ten foreign questions ask for, never so high that one in twenty of the book's own is lost."""
    asked_for = sorted(foreign)[int(0.9 * (len(foreign) - 1))]
    allowed = sorted(covered)[int(0.05 * (len(covered) - 1))]
    return round(min(max(asked_for, LOWEST), max(allowed, USUAL), HIGHEST), 3)


async def _own_questions(edition: Edition) -> list[str]:
    """Half of the words of sentences spread over the book."""
    ids = edition.catalogue.all_chunk_ids()
    step = max(len(ids) // (TRIED * _CHUNKS_FOR_ONE), 1)
    passages = await edition.store.fetch(ids[::step])
    questions = (_question(passages[chunk_id].chunk.text) for chunk_id in sorted(passages))
    return [question for question in questions if question][:TRIED]


def _question(text: str) -> str:
    prose = [text[unit.start : unit.end] for unit in units(text) if unit.kind in (UnitKind.SENTENCE, UnitKind.ITEM)]
    words = max((sentence.split() for sentence in prose), key=len, default=[])
    if len(words) < _FEWEST_WORDS:
        return ""
    # Readers of a book need its calibration but never draw one, and a first answer waits for every import.
    import random

    kept = sorted(random.Random(text).sample(range(len(words)), len(words) // 2))  # noqa: S311 - the same every time
    return " ".join(words[index] for index in kept)


async def _confidence(edition: Edition, embedder: Embedder, retriever: Retriever, question: str) -> float:
    """How sure the book is, as closely as it matters: no line is drawn below `LOWEST` or above `HIGHEST`."""
    found = await retriever.retrieve(edition, question, top_k=5, filters=EVERYWHERE)
    seen = glance(edition, found)
    features = seen.features
    for entry in seen.units:
        if confidence(features) >= HIGHEST or confidence(replace(features, unit_cosine=1.0)) < LOWEST:
            break
        async for vector in embedder.documents([entry.text]):
            nearest = max(features.unit_cosine, float(vector @ found.question))
            features = replace(features, unit_cosine=min(nearest, 1.0))
    return confidence(features)


STRANGERS = (
    "How long should a soft-boiled egg be cooked?",
    "Which planet has the most moons?",
    "Who painted the ceiling of the Sistine Chapel?",
    "How do I change a bicycle tyre?",
    "What is the capital of Mongolia?",
    "Why do cats purr?",
    "How is a mortgage rate fixed?",
    "What are the rules for offside in football?",
    "When was the printing press invented?",
    "How do vaccines train the immune system?",
    "Which vitamins are in spinach?",
    "What causes the northern lights?",
    "How do I prune an apple tree in winter?",
    "Who wrote The Brothers Karamazov?",
    "What does a bass clef mean?",
    "How deep is the Mariana Trench?",
    "What is the weather like today?",
    "How do bees find their way home?",
    "Which documents do I need for a passport?",
    "How is olive oil pressed?",
    "What started the French Revolution?",
    "How do noise-cancelling headphones work?",
    "What is the best opening move in chess?",
    "How many bones does an adult have?",
)
