"""Answers without a model: the book's best sentences, verbatim, with citations, and the text of refusals."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bythebook.chunking.spans import Span, SpanKind, find_open_fence, split_spans
from bythebook.retrieval import Citation, RetrievalResult, to_citation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bythebook.index.terms import Bm25Terms
    from bythebook.retrieval.evidence import ScoredSpan


MODEL = "extractive"
MOST = 3
_WORTH_SAYING = 0.7
"""Minimum score of a further sentence, relative to the best sentence."""
_REPEATS = 0.6
_LONGEST_LIST = 12
_MARK = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+")
_IN_RUNS = (SpanKind.ITEM, SpanKind.ROW)


@dataclass(frozen=True, slots=True)
class Quote:
    """A span of a passage that is quoted verbatim in the answer."""

    result: RetrievalResult
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.result.text[self.start : self.end]


def extract(weighed: Sequence[ScoredSpan], words: Bm25Terms) -> list[Quote]:
    """Choose the best quotes. Quotes of one passage stay together, in the passage's order."""
    chosen = _choose_distinct(weighed, words)
    quotes: list[Quote] = []
    for result in dict.fromkeys(entry.result for entry in chosen):
        picked = [entry.span for entry in chosen if entry.result == result]
        quotes.extend(_join_quotes(result, picked))
    return quotes


def _choose_distinct(weighed: Sequence[ScoredSpan], words: Bm25Terms) -> list[ScoredSpan]:
    chosen: list[ScoredSpan] = []
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


def _join_quotes(result: RetrievalResult, picked: Sequence[Span]) -> list[Quote]:
    """Extend each chosen span by what it introduces, and merge adjacent spans into one quote."""
    there = split_spans(result.text, fence=result.fence)
    wanted = {index for unit in picked for index in _with_what_it_introduces(result.text, there, there.index(unit))}
    quotes: list[Quote] = []
    for index in sorted(wanted):
        unit = there[index]
        if quotes and index - 1 in wanted:
            quotes[-1] = Quote(result, quotes[-1].start, unit.end)
        else:
            quotes.append(Quote(result, unit.start, unit.end))
    return quotes


def _with_what_it_introduces(text: str, there: Sequence[Span], index: int) -> range:
    """Keep a sentence that ends in a colon together with the list, table rows or code it introduces."""
    first = index + 1 if there[index].kind is SpanKind.SENTENCE else _first_of_run(there, index)
    if first == len(there) or first == 0 or not _introduces(text, there[first - 1]):
        return range(index, index + 1)
    last = first
    while last + 1 < len(there) and there[last + 1].kind is there[first].kind in _IN_RUNS:
        last += 1
    return range(first - 1, last + 1) if last - first < _LONGEST_LIST else range(index, index + 1)


def _first_of_run(there: Sequence[Span], index: int) -> int:
    """Index of the first item of the list or table the span belongs to. Code is always one span."""
    while index > 0 and there[index - 1].kind is there[index].kind in _IN_RUNS:
        index -= 1
    return index


def _introduces(text: str, unit: Span) -> bool:
    return unit.kind is SpanKind.SENTENCE and text[unit.start : unit.end].endswith(":")


def cite(quotes: Sequence[Quote]) -> tuple[str, tuple[Citation, ...]]:
    """Format the quotes as an answer with numbered citations."""
    citations = tuple(
        to_citation(quote.result, quote.start, quote.end, number=number) for number, quote in enumerate(quotes, start=1)
    )
    return "\n\n".join(_render_quote(quote, number) for number, quote in enumerate(quotes, start=1)), citations


def _render_quote(quote: Quote, number: int) -> str:
    """Render a quote so that it reads on its own: with its list marker, or inside its code fence."""
    before, text = quote.result.text[: quote.start], quote.text
    lead = before[before.rfind("\n") + 1 :]
    if _MARK.fullmatch(lead):
        text = lead.lstrip() + text
    if quote.start == 0 and quote.result.fence:
        text = f"{quote.result.fence}\n{text}"
    if fence := find_open_fence(text):
        text += f"\n{fence}"
    apart = text.endswith(("```", "~~~", "|"))
    return f"{text}\n[{number}]" if apart else f"{text} [{number}]"


_NEAREST = 3
_LONGEST = 120

CLARIFY = "What would you like to know about? Please name the topic."
REFUSAL = "I don't have information about"


def is_unanswered(answer: str) -> bool:
    """True for the text of a refusal or of a question back."""
    return answer == CLARIFY or REFUSAL in answer


def nearest_sections(results: Sequence[RetrievalResult]) -> tuple[str, ...]:
    """The sections of the best passages, without duplicates."""
    names = (" > ".join(result.heading_hierarchy) or result.title for result in results)
    return tuple(dict.fromkeys(name for name in names if name))[:_NEAREST]


def format_refusal(query: str, suggestions: Sequence[str]) -> str:
    """The text of a refusal, with the nearest sections."""
    topic = query if len(query) <= _LONGEST else query[: _LONGEST - 1].rstrip() + "…"
    text = f"{REFUSAL} “{topic}” in this book."
    if not suggestions:
        return text
    return "\n".join([text, "", "The nearest sections are:", *(f"- {section}" for section in suggestions)])
