"""The answer without a model: the book's own best sentences, word for word, each with its citation.

What is said when the book does not answer: which sections come nearest, or what the question is missing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bythebook.chunking.spans import Unit, UnitKind, left_open, units
from bythebook.retrieval import citation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bythebook.index.terms import Words
    from bythebook.retrieval import Citation, RetrievalResult
    from bythebook.retrieval.evidence import Weighed


MODEL = "extractive"
MOST = 3
_WORTH_SAYING = 0.7
"""A further sentence must score this part of the best one's score."""
_REPEATS = 0.6
_LONGEST_LIST = 12
_MARK = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+")
_IN_RUNS = (UnitKind.ITEM, UnitKind.ROW)


@dataclass(frozen=True, slots=True)
class Quote:
    """A stretch of a passage that goes into the answer as it stands."""

    result: RetrievalResult
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.result.text[self.start : self.end]


def extract(weighed: Sequence[Weighed], words: Words) -> list[Quote]:
    """The few quotes that answer best, those of one passage together and in its order."""
    chosen = _distinct(weighed, words)
    quotes: list[Quote] = []
    for result in dict.fromkeys(entry.result for entry in chosen):
        picked = [entry.unit for entry in chosen if entry.result == result]
        quotes.extend(_joined(result, picked))
    return quotes


def _distinct(weighed: Sequence[Weighed], words: Words) -> list[Weighed]:
    chosen: list[Weighed] = []
    said: set[int] = set()
    for entry in weighed:
        terms = words.terms(entry.text)
        new = len(terms - said) / len(terms) if terms else 0.0
        worth = not chosen or (entry.score >= _WORTH_SAYING * chosen[0].score and new >= 1 - _REPEATS)
        if terms and worth:
            chosen.append(entry)
            said |= terms
        if len(chosen) == MOST:
            break
    return chosen


def _joined(result: RetrievalResult, picked: Sequence[Unit]) -> list[Quote]:
    """The picked units with what they introduce, those that touch as one quote."""
    there = units(result.text, fence=result.fence)
    wanted = {index for unit in picked for index in _with_what_it_introduces(result.text, there, there.index(unit))}
    quotes: list[Quote] = []
    for index in sorted(wanted):
        unit = there[index]
        if quotes and index - 1 in wanted:
            quotes[-1] = Quote(result, quotes[-1].start, unit.end)
        else:
            quotes.append(Quote(result, unit.start, unit.end))
    return quotes


def _with_what_it_introduces(text: str, there: Sequence[Unit], index: int) -> range:
    """A sentence that ends in a colon, and the list, the rows or the code below it, go together."""
    first = index + 1 if there[index].kind is UnitKind.SENTENCE else _first_of_run(there, index)
    if first == len(there) or first == 0 or not _introduces(text, there[first - 1]):
        return range(index, index + 1)
    last = first
    while last + 1 < len(there) and there[last + 1].kind is there[first].kind in _IN_RUNS:
        last += 1
    return range(first - 1, last + 1) if last - first < _LONGEST_LIST else range(index, index + 1)


def _first_of_run(there: Sequence[Unit], index: int) -> int:
    """Where the list or table begins that the unit is part of. Code is always whole."""
    while index > 0 and there[index - 1].kind is there[index].kind in _IN_RUNS:
        index -= 1
    return index


def _introduces(text: str, unit: Unit) -> bool:
    return unit.kind is UnitKind.SENTENCE and text[unit.start : unit.end].endswith(":")


def cite(quotes: Sequence[Quote]) -> tuple[str, tuple[Citation, ...]]:
    """The quotes as an answer, each followed by its number, and the citations the numbers stand for."""
    citations = tuple(
        citation(quote.result, quote.start, quote.end, number=number) for number, quote in enumerate(quotes, start=1)
    )
    return "\n\n".join(_shown(quote, number) for number, quote in enumerate(quotes, start=1)), citations


def _shown(quote: Quote, number: int) -> str:
    """The quote so that it can be read on its own: with its list mark, or inside its code fence."""
    before, text = quote.result.text[: quote.start], quote.text
    lead = before[before.rfind("\n") + 1 :]
    if _MARK.fullmatch(lead):
        text = lead.lstrip() + text
    if quote.start == 0 and quote.result.fence:
        text = f"{quote.result.fence}\n{text}"
    if fence := left_open(text):
        text += f"\n{fence}"
    apart = text.endswith(("```", "~~~", "|"))
    return f"{text}\n[{number}]" if apart else f"{text} [{number}]"


_NEAREST = 3
_LONGEST = 120

CLARIFY = "What would you like to know about? Please name the topic."


def nearest_sections(results: Sequence[RetrievalResult]) -> tuple[str, ...]:
    """The sections of the book that come nearest to the question, each once."""
    names = (" > ".join(result.heading_hierarchy) or result.title for result in results)
    return tuple(dict.fromkeys(name for name in names if name))[:_NEAREST]


def refusal(query: str, suggestions: Sequence[str]) -> str:
    """An honest no, with where to look instead."""
    topic = query if len(query) <= _LONGEST else query[: _LONGEST - 1].rstrip() + "…"
    text = f"I don't have information about “{topic}” in this book."
    if not suggestions:
        return text
    return "\n".join([text, "", "The nearest sections are:", *(f"- {section}" for section in suggestions)])
