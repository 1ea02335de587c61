"""Checking golden questions: the expected answer, the actual answer, and hints at the difference."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from urllib.parse import unquote, urlsplit

from bythebook.answers import AgentRequest, AgentResponse, Outcome
from bythebook.conversations.followups import Exchange
from bythebook.evals.golden import ActualAnswer, Expectation, GoldenConversation, GoldenQuestion, GoldenResult
from bythebook.index.catalog import TocEntry
from bythebook.index.provider import IndexSnapshot
from bythebook.qa.pipeline import AnswerPipeline
from bythebook.retrieval import RetrievalResult
from bythebook.telemetry import Progress

_MARK = re.compile(r"\s*\[\d+\]")
_ENDING = re.compile(r"\.(?:mdx?|markdown|x?html?|rst|adoc|asciidoc|txt|ipynb|pdf|epub)$", re.IGNORECASE)
_MAX_QUOTE = 160


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """The page, section and quote of a citation."""

    url: str
    path: str
    headings: tuple[str, ...]
    anchor: str
    quote: str

    @property
    def heading(self) -> str:
        return " > ".join(self.headings)

    def is_on(self, page: str) -> bool:
        """True if `page` is the path of the page, or the end of its path or URL."""
        return is_same_page(page, self.path) or is_same_page(page, self.url)

    def is_under(self, section: str) -> bool:
        """True if `section` is one of the headings above the quote, or its anchor."""
        return (
            normalize_text(section) in {normalize_text(heading) for heading in self.headings} or section == self.anchor
        )


class GoldenChecker:
    """Asks golden questions as a reader would."""

    def __init__(self, pipeline: AnswerPipeline, snapshot: IndexSnapshot) -> None:
        self._pipeline = pipeline
        self._snapshot = snapshot
        self._pages: list[TocEntry] = snapshot.catalog.table_of_contents()

    async def check(self, conversations: Sequence[GoldenConversation], *, progress: Progress) -> list[GoldenResult]:
        """The results of all questions with an expectation, in the order of the file."""
        results: list[GoldenResult] = []
        for done, conversation in enumerate(conversations, start=1):
            history: list[Exchange] = []
            for question in conversation:
                response = await self._pipeline.ask(AgentRequest(question.question), history=history)
                cited = response.citations
                titles, chunks = tuple(c.title for c in cited), tuple(c.chunk_id for c in cited)
                history.append(Exchange(question.question, response.answer, titles, chunks, response.grounded))
                if question.expected is not None:
                    results.append(self._judge(question, question.expected, response))
            progress("asking", done, len(conversations))
        return results

    def _judge(self, question: GoldenQuestion, expected: Expectation, response: AgentResponse) -> GoldenResult:
        locations = self.find_locations(response)
        missing = tuple(_find_missing(expected, response, locations))
        return GoldenResult(
            question=question.question,
            line=question.line,
            expected=expected,
            actual=_describe_answer(response, locations or self._source_locations(response)),
            missing=missing,
            note=" ".join(self._notes(expected, response, locations)) if missing else "",
        )

    def find_locations(self, response: AgentResponse) -> list[SourceLocation]:
        """The locations of the quotes of the answer."""
        found = {result.chunk_id: result for result in response.sources}
        cited = [citation for citation in response.citations if citation.chunk_id in found]
        return [self._locate(found[citation.chunk_id], citation.quote) for citation in cited]

    def _source_locations(self, response: AgentResponse) -> list[SourceLocation]:
        return [self._locate(result, "") for result in response.sources]

    def _locate(self, result: RetrievalResult, quote: str) -> SourceLocation:
        page = self._snapshot.catalog.get_page(result.url)
        path = page.path if page else result.url
        return SourceLocation(result.url, path, result.heading_hierarchy, result.anchor, quote)

    def _notes(
        self, expected: Expectation, response: AgentResponse, locations: Sequence[SourceLocation]
    ) -> Iterator[str]:
        """What the book contains of the expectation."""
        pages = [
            page
            for page in self._pages
            if not expected.page or is_same_page(expected.page, page.path) or is_same_page(expected.page, page.url)
        ]
        headings = {normalize_text(heading): heading for page in pages for heading in (page.title, *page.headings)}
        if not pages:
            yield f"The book has no page {expected.page!r}."
        elif expected.section and normalize_text(expected.section) not in headings:
            close = get_close_matches(normalize_text(expected.section), headings, n=1)
            near = f" The nearest is “{headings[close[0]]}”." if close else ""
            yield f"{'That page' if expected.page else 'The book'} has no section “{expected.section}”.{near}"
        elif expected.page or expected.section:
            yield from self._ranks(expected, response, locations)
        for words in expected.words:
            if not _contains_words(words, response, locations):
                yield self._locate_words(words)

    def _ranks(
        self, expected: Expectation, response: AgentResponse, locations: Sequence[SourceLocation]
    ) -> Iterator[str]:
        if any(_matches_source(expected, location) for location in locations):
            return
        matches = [_matches_source(expected, location) for location in self._source_locations(response)]
        if any(matches):
            yield f"It is number {matches.index(True) + 1} of the retrieved passages."
        elif response.sources:
            yield f"It is not among the {len(response.sources)} retrieved passages."

    def _locate_words(self, words: str) -> str:
        for page in self._pages:
            record = self._snapshot.catalog.get_page(page.url)
            if record and normalize_text(words) in normalize_text(record.text):
                return f"“{words}” is on {record.path}."
        return f"“{words}” is nowhere in the book."


def _find_missing(expected: Expectation, response: AgentResponse, locations: Sequence[SourceLocation]) -> Iterator[str]:
    """Find the expected parts that the answer lacks."""
    if response.outcome is not expected.outcome:
        yield {
            Outcome.ANSWERED: "an answer",
            Outcome.REFUSED: "a refusal",
            Outcome.CLARIFY: "a question back",
        }[expected.outcome]
        return
    if (expected.page or expected.section) and not any(_matches_source(expected, location) for location in locations):
        page = f"a quote from {expected.page}" if expected.page else "a quote"
        yield f"{page} under “{expected.section}”" if expected.section else page
    yield from (f"“{words}”" for words in expected.words if not _contains_words(words, response, locations))


def _matches_source(expected: Expectation, location: SourceLocation) -> bool:
    on_page = not expected.page or location.is_on(expected.page)
    return on_page and (not expected.section or location.is_under(expected.section))


def _contains_words(words: str, response: AgentResponse, locations: Sequence[SourceLocation]) -> bool:
    texts = [_MARK.sub("", response.answer), *(location.quote for location in locations)]
    return response.outcome is Outcome.ANSWERED and any(normalize_text(words) in normalize_text(text) for text in texts)


def _describe_answer(response: AgentResponse, locations: Sequence[SourceLocation]) -> ActualAnswer:
    first = locations[0] if locations else SourceLocation("", "", (), "", "")
    quote = first.quote if len(first.quote) <= _MAX_QUOTE else f"{first.quote[:_MAX_QUOTE].rstrip()}…"
    coverage = response.metadata.coverage
    return ActualAnswer(
        outcome=response.outcome,
        page=first.path,
        heading=first.heading,
        quote=" ".join(quote.split()),
        answer=response.answer,
        coverage=None if coverage is None else round(coverage, 3),
    )


def is_same_page(page: str, where: str) -> bool:
    """True if `page` is this path or URL, or its end."""
    wanted, there = _parts(page), _parts(where)
    return bool(wanted) and there[-len(wanted) :] == wanted


def _parts(where: str) -> list[str]:
    """The segments of a path, without the file suffix and the name of an index page, as in published URLs."""
    address = urlsplit(where)
    parts = [part for part in unquote(address.path).split("/") if part not in ("", ".")]
    if parts:
        parts[-1] = _ENDING.sub("", parts[-1])
        if parts[-1].lower() in ("index", "readme") and len(parts) > 1:
            parts.pop()
    return [*([address.netloc] if address.netloc else []), *parts]


def normalize_text(text: str) -> str:
    """Normalise case, whitespace and quotation marks for comparison."""
    return " ".join(text.casefold().translate(_QUOTES).split())


_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"'})
