"""Introduction: what greets a reader who has not asked yet. All of it is taken from the book itself."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bythebook.concurrency import together
from bythebook.index import EVERYWHERE
from bythebook.retrieval.evidence import weigh

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bythebook.embeddings import Embedder
    from bythebook.index.catalog import Listed
    from bythebook.index.provider import Edition
    from bythebook.retrieval.evidence import Evidence
    from bythebook.retrieval.retriever import Retriever

MOST_QUESTIONS = 4
_TRIED = 24
"""How many candidates are put to the book at most before enough of them have an answer."""
_AT_ONCE = 6
"""How many of them side by side: a hosted embedder gets them in one request."""
_HOW_TO = re.compile(r"how to\s+(?=\w)", re.IGNORECASE)
_NUMBER = re.compile(r"^(?:chapter|part|module|section)?\s*[\d.]+[:.)]?\s+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Introduction:
    """The book's name, the sections one can look in, and questions that it answers."""

    name: str
    sections: tuple[str, ...]
    questions: tuple[str, ...]


async def introduce(edition: Edition, embedder: Embedder, retriever: Retriever, *, name: str) -> Introduction:
    """Introduce this edition. Without a `name` its first page gives one."""
    listed = edition.catalogue.listed()
    sections = dict.fromkeys(page.module for page in listed if page.module)
    first = min(listed, key=lambda page: (page.path.count("/"), "index" not in page.path), default=None)
    candidates = _spread([page for page in listed if page != first])[:_TRIED]
    questions: list[str] = []
    while candidates and len(questions) < MOST_QUESTIONS:
        some, candidates = candidates[:_AT_ONCE], candidates[_AT_ONCE:]
        found = await together(*(_evidence(edition, embedder, retriever, question) for question in some))
        sure = edition.calibration.cutoff
        questions += [question for question, seen in zip(some, found, strict=True) if seen and seen.confidence >= sure]
    return Introduction(name or (first.title if first else ""), tuple(sections), tuple(questions[:MOST_QUESTIONS]))


async def _evidence(edition: Edition, embedder: Embedder, retriever: Retriever, question: str) -> Evidence | None:
    if not edition.words.terms(question):
        return None
    return await weigh(edition, embedder, await retriever.retrieve(edition, question, top_k=5, filters=EVERYWHERE))


def _spread(listed: Sequence[Listed]) -> list[str]:
    """Questions from all over the book: the best of each page first, the longest pages before the others."""
    pages = sorted(listed, key=lambda page: (-len(page.headings), page.url))
    by_page = [sorted(dict.fromkeys(_questions(page)), key=lambda asked: not asked[1]) for page in pages]
    rounds = max(map(len, by_page), default=0)
    turns = [page[turn] for turn in range(rounds) for page in by_page if turn < len(page)]
    return list(dict.fromkeys(text for text, _ in sorted(turns, key=lambda asked: not asked[1])))


def _questions(page: Listed) -> Iterator[tuple[str, bool]]:
    """What the page's headings answer, and whether the book itself puts it as a question."""
    for heading in (page.title, *page.headings):
        said = unnumbered(heading)
        if question := as_question(said):
            yield question, True
        elif 1 <= len(said.split()) <= 4 and said[:1].isalpha():
            yield f"What does the book say about {within(said)}?", False


def as_question(heading: str) -> str:
    """The question that a heading itself puts, empty when it puts none."""
    if heading.endswith("?"):
        return heading
    return _HOW_TO.sub("How do I ", heading, count=1) + "?" if _HOW_TO.match(heading) else ""


def unnumbered(heading: str) -> str:
    """The heading without the number of its chapter."""
    return _NUMBER.sub("", heading).strip()


def within(heading: str) -> str:
    """The heading inside a sentence: a plain first word begins small."""
    word = heading.split(maxsplit=1)[0]
    return heading[0].lower() + heading[1:] if word[1:].islower() or len(word) == 1 else heading
