"""Suggestions for a new reader: the name of the book, its sections and some questions, all taken from the book."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bythebook.concurrency import gather
from bythebook.embeddings import Embedder
from bythebook.index import NO_FILTERS
from bythebook.index.catalog import TocEntry
from bythebook.index.provider import IndexSnapshot
from bythebook.retrieval.entries import FRONT_FACT, NAME_FACT, strip_number
from bythebook.retrieval.evidence import Evidence, score_evidence
from bythebook.retrieval.retriever import Retriever

MOST_QUESTIONS = 4
_MOST_CANDIDATES = 24
"""The limit of candidate questions that are checked for an answer."""
_BATCH = 4
"""How many candidates are checked concurrently: as many as the reranker reads without a reduced budget."""
_POINTER = re.compile(r"\b(?:it|that|this|these|those)\b", re.IGNORECASE)
"""Words of a heading that refer to the text before it."""
_HOW_TO = re.compile(r"how to\s+(?=\w)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Introduction:
    """The book's name, its sections, and questions that it answers."""

    name: str
    sections: tuple[str, ...]
    questions: tuple[str, ...]


async def introduce(snapshot: IndexSnapshot, embedder: Embedder, retriever: Retriever, *, name: str) -> Introduction:
    """Introduce this snapshot of the book. Without a `name`, it has the one that was found at ingest."""
    pages = snapshot.catalog.table_of_contents()
    sections = dict.fromkeys(page.module for page in pages if page.module)
    front = snapshot.catalog.get_fact(FRONT_FACT)
    candidates = _spread([page for page in pages if page.url != front])[:_MOST_CANDIDATES]
    questions: list[str] = []
    while candidates and len(questions) < MOST_QUESTIONS:
        batch, candidates = candidates[:_BATCH], candidates[_BATCH:]
        found = await gather(*(_evidence(snapshot, embedder, retriever, question) for question in batch))
        sure = snapshot.calibration.cutoff
        questions += [question for question, seen in zip(batch, found, strict=True) if seen and seen.confidence >= sure]
    name = name or snapshot.catalog.get_fact(NAME_FACT)
    return Introduction(name, tuple(sections), tuple(questions[:MOST_QUESTIONS]))


def propose_questions(snapshot: IndexSnapshot) -> tuple[str, ...]:
    """Questions from the headings of the book, without a check that each is answered."""
    return tuple(_spread(snapshot.catalog.table_of_contents())[:MOST_QUESTIONS])


async def _evidence(
    snapshot: IndexSnapshot, embedder: Embedder, retriever: Retriever, question: str
) -> Evidence | None:
    if not snapshot.bm25.terms(question):
        return None
    return await score_evidence(
        snapshot, embedder, await retriever.retrieve(snapshot, question, top_k=5, filters=NO_FILTERS)
    )


def _spread(listed: Sequence[TocEntry]) -> list[str]:
    """Questions from the whole book: the best of each page first, longer pages before shorter ones."""
    pages = sorted(listed, key=lambda page: (-len(page.headings), page.url))
    by_page = [sorted(dict.fromkeys(_questions(page)), key=lambda asked: not asked[1]) for page in pages]
    rounds = max(map(len, by_page), default=0)
    turns = [page[turn] for turn in range(rounds) for page in by_page if turn < len(page)]
    return list(dict.fromkeys(text for text, _ in sorted(turns, key=lambda asked: not asked[1])))


def _questions(page: TocEntry) -> Iterator[tuple[str, bool]]:
    """The questions that the page's headings answer, and whether the heading itself is a question."""
    for heading in (page.title, *page.headings):
        text = strip_number(heading)
        if question := as_question(text):
            yield question, True
        elif 1 <= len(text.split()) <= 4 and text[:1].isalpha() and not text.endswith("?"):
            yield f"What does the book say about {lower_initial(text)}?", False


def as_question(heading: str) -> str:
    """The question that a heading asks, empty if it asks none."""
    if heading.endswith("?"):
        return heading if heading[:1].isalpha() and not _POINTER.search(heading) else ""
    return _HOW_TO.sub("How do I ", heading, count=1) + "?" if _HOW_TO.match(heading) else ""


def lower_initial(heading: str) -> str:
    """The heading as part of a sentence: a plain first word gets a small initial, unless all words have capitals."""
    word, *others = heading.split()
    is_title = any(other.istitle() for other in others)
    return heading if is_title or not (word[1:].islower() or len(word) == 1) else heading[0].lower() + heading[1:]
