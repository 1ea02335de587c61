"""Entries: the names under which a reader looks a passage up, like the index at the back of a book.

They are collected at ingest: headings, terms with their definitions, and the front of the book with its name. A first
question ("What is this?", "install", "Where do I begin?") is answered from them: it has too few words to be searched
for, or words that stand everywhere in the book.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from bythebook.chunking.spans import SpanKind, split_spans
from bythebook.retrieval.evidence import definition_pattern
from bythebook.retrieval.retriever import to_result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from bythebook.chunking import Chunk
    from bythebook.index.catalog import Catalog, TocEntry
    from bythebook.index.provider import IndexSnapshot
    from bythebook.retrieval import RetrievalResult
    from bythebook.retrieval.retriever import Retrieval

    Terms = Callable[[str], frozenset[int]]

NAME_FACT, FRONT_FACT = "book_name", "front_page"
ENTRIES_VERSION = 2
"""Incremented when other entries are collected from the same chunk."""
_MOST_SECTIONS = 3
_MOST_FETCHED = 48
_DEFINITION = re.compile(
    r"(?:(?:an?|the)\s+)?(?P<term>[\w.+#-]+(?: [\w.+#-]+){0,3}?)(?:\s*\((?P<short>[A-Za-z]\w+)\))?,?\s+"
    r"(?:is|are|was|were|means|refers\s+to|stands\s+for|denotes)\s+(?:\w+ly\s+)?(?:an?|the|one|any|how|what|when|where)\b",
    re.IGNORECASE,
)
_KIND = re.compile(r"\s+(?:\w+ly\s+)?(?:an?|the|one|any|how|what|when|where)\b", re.IGNORECASE)
_GLOSSARY = re.compile(r"(?:\A|\n\n)(?P<term>[\w.+#-]+(?: [\w.+#-]+){0,3})\n\n(?=[A-Z`\"“])")
_GLOSSARY_ITEM = re.compile(r"^[-*+] (?P<term>[\w.+#-]+(?: [\w.+#-]+){0,3}): (?=\w+ \w+ \w+)", re.MULTILINE)
_TABLES = json.loads(Path(__file__).with_suffix(".json").read_bytes())
_JOINED = re.compile(r"\s+(?:and|or|&)\s+|\s*/\s*")
"""What joins two names in one heading: "Install and upgrade"."""
_FEWEST_WORDS = 15
"""A front with fewer words is a slogan, a badge or a row of links."""
_NOT_TERMS, _QUESTION_WORDS = (frozenset(_TABLES[name].split()) for name in ("not_terms", "question_words"))


@dataclass(frozen=True, slots=True)
class _FirstQuestion:
    """A question that readers ask of every book, and the headings that answer it, best first."""

    asks: re.Pattern[str]
    words: frozenset[str]
    """The question has no other words than these, the book's name and question words."""
    headings: tuple[str, ...]
    front: bool
    """The front of the book answers it if there is no such heading."""
    covered: bool
    """A heading of this name answers it. Otherwise it is only one more candidate."""


_FIRST_QUESTIONS = [
    _FirstQuestion(
        re.compile(row["asks"], re.IGNORECASE),
        frozenset(row["words"].split()),
        tuple(row["headings"].split(", ")),
        row["front"],
        row["covered"],
    )
    for row in _TABLES["first_questions"]
]
_NEEDED_WORDS = [
    (re.compile(row["asks"], re.IGNORECASE), re.compile(row["needs"], re.IGNORECASE)) for row in _TABLES["needed_words"]
]
_FRONT_STEMS = {"index": 0.0, "": 0.0, "intro": 1.0, "introduction": 1.0, "overview": 1.2, "readme": 1.5, "home": 0.5}
_GREETING = re.compile(
    r"^(?:welcome\s+to\s+(?:the\s+)?)|(?:[’']s)?\s+(?:documentation|docs|manual|user\s+guide)\b.*$", re.I
)


def entry_key(name: str, terms: Terms) -> str:
    """The key of a name: its terms, in any order. Empty if it has none."""
    return " ".join(map(str, sorted(terms(name.lower()))))


def chunk_entries(chunk: Chunk, terms: Terms) -> set[str]:
    """The keys of the names under which this chunk is looked up: its heading, and the terms that it defines."""
    names = [part for heading in chunk.heading_hierarchy[-1:] for part in (heading, *_JOINED.split(heading))]
    if chunk.chunk_index == 0:
        names += [*chunk.heading_hierarchy[:1], _page_name(chunk.url)]
    keys = {entry_key(strip_number(name), terms) for name in names}
    return {key for key in keys | {entry_key(term, terms) for term in _defined_terms(chunk)} if key}


def _page_name(url: str) -> str:
    """The last part of the page's address, as words: `getting-started` of `/docs/getting-started.html`."""
    return re.sub(r"[\W_]+", " ", PurePosixPath(urlsplit(url).path.rstrip("/")).stem)


def strip_number(heading: str) -> str:
    return re.sub(r"^(?:chapter|part|module|section)?\s*[\d.]+[:.)]?\s+", "", heading, flags=re.IGNORECASE)


def _defined_terms(chunk: Chunk) -> Iterator[str]:
    for span in split_spans(chunk.text, fence=chunk.fence):
        begins = span.start == 0 or chunk.text[: span.start].endswith("\n\n")
        if begins and span.kind is SpanKind.SENTENCE:
            match = _DEFINITION.match(chunk.text, span.start, span.end)
            if match and not _NOT_TERMS & set(match["term"].lower().split()):
                yield match["term"]
                yield from filter(None, [match["short"]])
    for pattern in (_GLOSSARY, _GLOSSARY_ITEM):
        yield from (match["term"] for match in pattern.finditer(chunk.text))


def describe_front(catalog: Catalog, *, name: str) -> tuple[str, str]:
    """The name of the book and the URL of its first page. Without a `name`, the page's title is the name."""
    pages = catalog.table_of_contents()
    front = min(pages, key=_distance_to_front, default=None)
    if front is None:
        return name, ""
    heading = front.title if "introduction" not in front.title.lower() else (front.headings or (front.title,))[0]
    return name or _GREETING.sub("", heading).strip(), front.url


def _distance_to_front(page: TocEntry) -> tuple[float, str]:
    path = PurePosixPath(page.path.split("://")[-1].rstrip("/"))
    return path.as_posix().count("/") + _FRONT_STEMS.get(path.stem.lower(), 1.4), page.path


class Entries(NamedTuple):
    """The sections that are named by a whole question, best first."""

    results: tuple[RetrievalResult, ...] = ()
    covered: bool = False
    """Whether they answer it. Otherwise they are candidates like any others."""
    certain: bool = False
    """Whether it is a question that readers ask of every book, so that no other section answers it better."""


class _Subject(NamedTuple):
    """What a question names: the headings to look up, best first, and whether the front of the book answers."""

    headings: tuple[str, ...]
    front: bool = False
    covered: bool = True
    certain: bool = False


def _find_subject(question: str, *, name: str, terms: Terms) -> _Subject:
    words = re.findall(r"[^\s?!,;:\"“”()]+", question.replace("’", "'").rstrip(" .?!"))
    rest = [word for word in words if word.lower() not in _QUESTION_WORDS]
    own = terms(name.lower())
    foreign = [word for word in rest if not terms(word.lower()) <= own or not terms(word)]
    for known in _FIRST_QUESTIONS:
        if known.asks.search(question) and all(word.lower() in known.words for word in foreign):
            named = (f"{heading} {name}" for heading in known.headings)
            both = (each for pair in zip(named, known.headings, strict=True) for each in pair)
            return _Subject(tuple(both), known.front, known.covered, certain=known.covered)
    if not foreign:
        return _Subject((), front=bool(words), certain=True)
    return _Subject((" ".join(rest), " ".join(foreign), " ".join([*foreign, name])))


async def look_up(snapshot: IndexSnapshot, question: str) -> Entries:
    """The sections that are named by the whole question. None for any other question."""
    catalog, terms = snapshot.catalog, snapshot.bm25.terms
    name = catalog.get_fact(NAME_FACT) or ""
    subject = _find_subject(question, name=name, terms=terms)
    own = entry_key(name, terms)
    keys = dict.fromkeys(key for heading in subject.headings if (key := entry_key(heading, terms)) not in ("", own))
    ids = {chunk_id: None for key in keys for chunk_id in catalog.chunks_with_entry(key, limit=_MOST_FETCHED)}
    if ids:
        found = await _first_chunks(snapshot, list(ids)[:_MOST_FETCHED], keys=list(keys))
        return Entries(found, subject.covered, subject.certain)
    if subject.front and (url := catalog.get_fact(FRONT_FACT)):
        front = [record.chunk_id for record in catalog.chunks_of_pages([url])][:_MOST_FETCHED]
        definition = definition_pattern(question)
        # The front may only lead to the pages, and another one define the name.
        places = (own, entry_key("readme", terms)) if definition else ()
        named = [chunk for key in places if key for chunk in catalog.chunks_with_entry(key, limit=_MOST_FETCHED)]
        sections = await _first_chunks(snapshot, list(dict.fromkeys([*front, *named])), keys=[], definition=definition)
        is_defined = definition is None or any(defines(section.text, definition) for section in sections)
        return Entries(sections[:1], covered=True, certain=is_defined)
    return Entries()


def defines(text: str, definition: re.Pattern[str] | None) -> bool:
    """Whether a sentence of this text says what kind of thing the question asks for: "is a", not "is split"."""
    if definition is None:
        return False
    found = (definition.match(text, span.start, span.end) for span in split_spans(text))
    return any(match and (match[0][-2:] not in ("is", "re", "as") or _KIND.match(text, match.end())) for match in found)


def find_needed_words(question: str) -> re.Pattern[str] | None:
    """What an answer to this question must contain, such as a number for a version. None for most questions."""
    return next((needed for asks, needed in _NEEDED_WORDS if asks.search(question)), None)


async def _first_chunks(
    snapshot: IndexSnapshot, ids: Sequence[str], *, keys: Sequence[str], definition: re.Pattern[str] | None = None
) -> tuple[RetrievalResult, ...]:
    """The first chunk of each section of these chunks, in the order of the keys.

    The beginning of a page comes before a section, a section near the front before a deep one, and a sentence that
    defines a term after the headings.
    """
    chunks = [passage.chunk for passage in (await snapshot.store.fetch(ids)).values()]
    terms = snapshot.bm25.terms
    start = {entry_key(heading, terms) for heading in _FIRST_QUESTIONS[0].headings}
    front = snapshot.catalog.get_fact(FRONT_FACT)

    def place(chunk: Chunk) -> tuple[int | bool | str, ...]:
        headings = chunk.heading_hierarchy
        names = [entry_key(strip_number(name), terms) for name in (*headings[-1:], *headings[:1])]
        found = [keys.index(name) for name in names[: 2 if chunk.chunk_index == 0 else 1] if name in keys]
        near = chunk.url == front or bool(start & set(names[1:]))
        is_thin = not keys and len(re.findall(r"\b[a-z]{2,}\b", chunk.text)) < _FEWEST_WORDS
        return (
            not defines(chunk.text, definition),
            is_thin,
            min(found, default=len(keys)),
            not near,
            chunk.chunk_index > 0,
            len(headings),
            chunk.url,
            chunk.chunk_index,
        )

    sections: dict[tuple[str, tuple[str, ...]], Chunk] = {}
    for chunk in sorted(chunks, key=place):
        sections.setdefault((chunk.url, chunk.heading_hierarchy), chunk)
    found = list(sections.values())[:_MOST_SECTIONS]
    return tuple(
        to_result(chunk, position=position, score=1.0, rerank_score=1.0)
        for position, chunk in enumerate(found, start=1)
    )


def put_first(entries: Sequence[RetrievalResult], retrieval: Retrieval) -> Retrieval:
    """The retrieval with these passages before the others."""
    known = {result.chunk_id: result for result in retrieval.context.results}
    named = [known.get(entry.chunk_id) or entry for entry in entries]
    best = max((result.rerank_score for result in known.values()), default=1.0)
    ids = {entry.chunk_id for entry in entries}
    others = [result for result in retrieval.context.results if result.chunk_id not in ids]
    ordered = [replace(entry, rerank_score=best) for entry in named] + others
    results = tuple(replace(result, position=place) for place, result in enumerate(ordered, start=1))
    return replace(retrieval, context=replace(retrieval.context, results=results))
