"""The answer without a model: the book's own best sentences, word for word, each with its citation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bythebook.answers import Citation
from bythebook.answers.links import link
from bythebook.chunks.units import Unit, UnitKind, units

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bythebook.passages import RetrievalResult
    from bythebook.passages.evidence import Weighed
    from bythebook.passages.words import Words

MODEL = "extractive"
MOST = 3
_WORTH_SAYING = 0.8
"""A further sentence must score this part of the best one's score."""
_REPEATS = 0.6
_LONGEST_LIST = 12


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


def _with_what_it_introduces(text: str, there: Sequence[Unit], index: int) -> list[int]:
    """A sentence that ends in a colon goes with the list, the rows or the code below it, and they go with it."""
    first = index
    if there[index].kind is not UnitKind.SENTENCE:
        while first > 0 and there[first - 1].kind is there[index].kind is not UnitKind.CODE:
            first -= 1
        introduced = first > 0 and _introduces(text, there[first - 1])
        return list(range(first - 1, index + 1)) if introduced and index - first < _LONGEST_LIST else [index]
    if not _introduces(text, there[index]) or index + 1 == len(there):
        return [index]
    kind = there[index + 1].kind
    last = index + 1
    while last + 1 < len(there) and there[last + 1].kind is kind is not UnitKind.CODE and last - index < _LONGEST_LIST:
        last += 1
    return list(range(index, last + 1))


def _introduces(text: str, unit: Unit) -> bool:
    return unit.kind is UnitKind.SENTENCE and text[unit.start : unit.end].endswith(":")


def cite(quotes: Sequence[Quote]) -> tuple[str, tuple[Citation, ...]]:
    """The quotes as an answer, each followed by its number, and the citations the numbers stand for."""
    citations = tuple(_citation(quote, number) for number, quote in enumerate(quotes, start=1))
    return "\n\n".join(_shown(quote, number) for number, quote in enumerate(quotes, start=1)), citations


def _shown(quote: Quote, number: int) -> str:
    """The quote as it stands in its passage: from the start of its line, so that a list item keeps its mark."""
    text = quote.text
    line = quote.result.text.rfind("\n", 0, quote.start) + 1
    lead = quote.result.text[line : quote.start]
    if lead.strip() in {"-", "*", "+"} or lead.strip().rstrip(".)").isdigit():
        text = lead.lstrip() + text
    on_its_own_line = text.rstrip().endswith(("```", "~~~", "|"))
    return f"{text}{chr(10) if on_its_own_line else ' '}[{number}]"


def _citation(quote: Quote, number: int) -> Citation:
    result = quote.result
    return Citation(
        number=number,
        title=result.title,
        url=link(result.url, anchor=result.anchor, words=quote.text),
        score=result.score,
        chunk_id=result.chunk_id,
        quote=quote.text,
        start=quote.start,
        end=quote.end,
        verified=True,
    )
