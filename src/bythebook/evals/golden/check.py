"""Golden questions held against the book: what was expected, what came, and why it may differ."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from bythebook.answers import AgentRequest, Outcome
from bythebook.conversations.followups import Exchange
from bythebook.evals.golden import Came, Checked

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bythebook.answers import AgentResponse
    from bythebook.evals.golden import Expectation, Golden, Talk
    from bythebook.index.catalog import Listed
    from bythebook.index.provider import Edition
    from bythebook.qa.pipeline import Asker
    from bythebook.telemetry import Progress

_MARK = re.compile(r"\s*\[\d+\]")
_ENDING = re.compile(r"\.(?:mdx?|markdown|x?html?|rst|adoc|asciidoc|txt|ipynb|pdf|epub)$", re.IGNORECASE)
_LONGEST = 160


@dataclass(frozen=True, slots=True)
class Place:
    """Where words of the book stand."""

    url: str
    path: str
    headings: tuple[str, ...]
    anchor: str
    quote: str

    @property
    def heading(self) -> str:
        return " > ".join(self.headings)

    def is_on(self, page: str) -> bool:
        """Whether `page` names its page: by its path, or by the end of its path or address."""
        return same_page(page, self.path) or same_page(page, self.url)

    def is_under(self, section: str) -> bool:
        """Whether `section` is one of the headings above it, or its anchor."""
        return plain(section) in {plain(heading) for heading in self.headings} or section == self.anchor


class Examination:
    """Asks the golden questions of an open book, as a reader would."""

    def __init__(self, asker: Asker, edition: Edition) -> None:
        self._asker = asker
        self._edition = edition
        self._pages: list[Listed] = edition.catalogue.listed()

    async def check(self, talks: Sequence[Talk], *, progress: Progress) -> list[Checked]:
        """Every question that something is expected of, in the order of the file."""
        checked: list[Checked] = []
        for done, talk in enumerate(talks, start=1):
            history: list[Exchange] = []
            for golden in talk:
                response = await self._asker.ask(AgentRequest(golden.question), history=history)
                cited = response.citations
                titles, chunks = tuple(c.title for c in cited), tuple(c.chunk_id for c in cited)
                history.append(Exchange(golden.question, response.answer, titles, chunks))
                if golden.expected is not None:
                    checked.append(self._held(golden, golden.expected, response))
            progress("asking", done, len(talks))
        return checked

    def _held(self, golden: Golden, expected: Expectation, response: AgentResponse) -> Checked:
        places = self.places(response)
        missing = tuple(_missing(expected, response, places))
        return Checked(
            question=golden.question,
            line=golden.line,
            expected=expected,
            came=_came(response, places or self._found(response)),
            missing=missing,
            note=" ".join(self._notes(expected, response, places)) if missing else "",
        )

    def places(self, response: AgentResponse) -> list[Place]:
        """Where the quotes of the answer stand."""
        found = {result.chunk_id: result for result in response.sources}
        return [
            self._place(found[citation.chunk_id].url, found[citation.chunk_id].heading_hierarchy,
                        found[citation.chunk_id].anchor, citation.quote)
            for citation in response.citations
            if citation.chunk_id in found
        ]  # fmt: skip

    def _found(self, response: AgentResponse) -> list[Place]:
        return [self._place(r.url, r.heading_hierarchy, r.anchor, "") for r in response.sources]

    def _place(self, url: str, headings: tuple[str, ...], anchor: str, quote: str) -> Place:
        page = self._edition.catalogue.page(url)
        return Place(url, page.path if page else url, headings, anchor, quote)

    def _notes(self, expected: Expectation, response: AgentResponse, places: Sequence[Place]) -> Iterator[str]:
        """What the book has now of what was expected."""
        pages = [page for page in self._pages if not expected.page or _names(expected.page, page)]
        headings = {plain(heading): heading for page in pages for heading in (page.title, *page.headings)}
        if not pages:
            yield f"The book has no page {expected.page!r}."
        elif expected.section and plain(expected.section) not in headings:
            close = get_close_matches(plain(expected.section), headings, n=1)
            near = f" The nearest is “{headings[close[0]]}”." if close else ""
            yield f"{'That page' if expected.page else 'The book'} has no section “{expected.section}”.{near}"
        elif expected.page or expected.section:
            yield from self._ranks(expected, response, places)
        for words in expected.words:
            if not _says(words, response, places):
                yield self._whereabouts(words)

    def _ranks(self, expected: Expectation, response: AgentResponse, places: Sequence[Place]) -> Iterator[str]:
        if any(_fits(expected, place) for place in places):
            return
        ranks = [rank for rank, place in enumerate(self._found(response), start=1) if _fits(expected, place)]
        if ranks:
            yield f"It is number {ranks[0]} of the passages that were found."
        elif response.sources:
            yield f"It is not among the {len(response.sources)} passages that were found."

    def _whereabouts(self, words: str) -> str:
        for page in self._pages:
            record = self._edition.catalogue.page(page.url)
            if record and plain(words) in plain(record.text):
                return f"“{words}” stands on {record.path}."
        return f"“{words}” stands nowhere in the book."


def _missing(expected: Expectation, response: AgentResponse, places: Sequence[Place]) -> Iterator[str]:
    """What was expected and did not come."""
    if response.outcome is not expected.outcome:
        yield {
            Outcome.ANSWERED: "an answer",
            Outcome.REFUSED: "a refusal",
            Outcome.CLARIFY: "a question back",
        }[expected.outcome]
        return
    if (expected.page or expected.section) and not any(_fits(expected, place) for place in places):
        page = f"a quote from {expected.page}" if expected.page else "a quote"
        yield f"{page} under “{expected.section}”" if expected.section else page
    yield from (f"“{words}”" for words in expected.words if not _says(words, response, places))


def _fits(expected: Expectation, place: Place) -> bool:
    on_page = not expected.page or place.is_on(expected.page)
    return on_page and (not expected.section or place.is_under(expected.section))


def _says(words: str, response: AgentResponse, places: Sequence[Place]) -> bool:
    texts = [_MARK.sub("", response.answer), *(place.quote for place in places)]
    return response.outcome is Outcome.ANSWERED and any(plain(words) in plain(text) for text in texts)


def _came(response: AgentResponse, places: Sequence[Place]) -> Came:
    first = places[0] if places else Place("", "", (), "", "")
    quote = first.quote if len(first.quote) <= _LONGEST else f"{first.quote[:_LONGEST].rstrip()}…"
    confidence = response.metadata.confidence
    return Came(
        outcome=response.outcome,
        page=first.path,
        heading=first.heading,
        quote=" ".join(quote.split()),
        answer=response.answer,
        confidence=None if confidence is None else round(confidence, 3),
    )


def _names(page: str, listed: Listed) -> bool:
    return same_page(page, listed.path) or same_page(page, listed.url)


def same_page(page: str, where: str) -> bool:
    """Whether a page that is called `page` is the one at this path or address: all of it, or its end."""
    wanted, there = _parts(page), _parts(where)
    return bool(wanted) and there[-len(wanted) :] == wanted


def _parts(where: str) -> list[str]:
    """The path, without what a site leaves away: the ending of a file, and the name of a folder's first page."""
    address = urlsplit(where)
    parts = [part for part in unquote(address.path).split("/") if part not in ("", ".")]
    if parts:
        parts[-1] = _ENDING.sub("", parts[-1])
        if parts[-1].lower() in ("index", "readme") and len(parts) > 1:
            parts.pop()
    return [*([address.netloc] if address.netloc else []), *parts]


def plain(text: str) -> str:
    """The text as it is compared: case, spacing and the kind of quotation marks do not matter."""
    return " ".join(text.casefold().translate(_QUOTES).split())


_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"'})
