"""Suggestions for a reader: the name of the book, its sections and some questions, all taken from the book.

A question has the words of a heading or of a definition. Headings that make no natural question are not used.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from bythebook.chunking.spans import SpanKind, split_spans
from bythebook.concurrency import gather
from bythebook.embeddings import Embedder
from bythebook.index import NO_FILTERS
from bythebook.index.catalog import TocEntry
from bythebook.index.provider import IndexSnapshot
from bythebook.retrieval.entries import FRONT_FACT, NAME_FACT, strip_number
from bythebook.retrieval.evidence import score_evidence
from bythebook.retrieval.retriever import Retriever

MOST_QUESTIONS = 3
_MOST_CANDIDATES = 24
"""The limit of candidate questions that are checked for an answer."""
_MOST_OF_PAGE = 8
"""The same for the questions of one page, which a reader waits for."""
_BATCH = 4
"""How many candidates are checked concurrently: as many as the reranker reads without a reduced budget."""
_MOST_PAGES = 100
"""The limit of pages whose headings are considered."""
_MOST_CHARACTERS = 80
_INTRODUCTION = 3000
"""The characters at the beginning of a page that are searched for definitions."""
_WORDS = json.loads(Path(__file__).with_suffix(".json").read_bytes())
_IMPERATIVE_VERBS, _NOUN_VERBS, _OTHER_VERBS, _VAGUE_SUBJECTS, _POINTERS, _BOOK_WORDS = (
    frozenset(" ".join(_WORDS[name]).split())
    for name in ("imperative_verbs", "noun_verbs", "other_verbs", "vague_subjects", "pointers", "book_words")
)
_GERUNDS = {
    f"{stem}ing": verb
    for verb in sorted(_IMPERATIVE_VERBS | _OTHER_VERBS)
    for stem in (verb, verb.removesuffix("e"), verb + verb[-1])
}
_AND_GERUND, _HOW_TO, _NO_SUBJECT, _ASKS, _QUESTION_HEADING, _HOW_HEADING, _YOUR, _WHAT_HEADING = (
    re.compile(pattern, re.IGNORECASE) for pattern in _WORDS["patterns"].values()
)
_DEFINITION = re.compile(
    r"(?P<article>An?|The)?\s*(?P<what>[A-Za-z][\w’'-]*(?: [\w’'-]+){0,3}?) (?P<verb>is|are) "
    r"(?P<words>(?:an?|the|one) (?:[^.,;:()]|\.(?=\w))+)"
)
_FEWEST_WORDS, _MOST_WORDS = 3, 9
_CAPITALIZED = re.compile(r"(?<=\s)[A-Z][a-z]+\b")


@dataclass(frozen=True, slots=True)
class Introduction:
    """The name of the book or of one of its pages, its sections, and questions that the book answers."""

    name: str
    sections: tuple[str, ...]
    questions: tuple[str, ...]
    url: str = ""
    """The URL of the page, in the form that filters accept. Empty for the book."""


async def introduce(snapshot: IndexSnapshot, embedder: Embedder, retriever: Retriever, *, name: str) -> Introduction:
    """Introduce this snapshot of the book. Without a `name`, it has the one that was found at ingest."""
    pages = snapshot.catalog.table_of_contents()
    sections = dict.fromkeys(page.module for page in pages if page.module)
    name = name or snapshot.catalog.get_fact(NAME_FACT)
    candidates = [*_first_questions(name), *list_candidates(snapshot, pages)][:_MOST_CANDIDATES]
    return Introduction(
        name, tuple(sections), await _keep_answerable(snapshot, embedder, retriever, candidates, name=name)
    )


def _first_questions(name: str) -> list[str]:
    """What everybody asks first, if the book is named after its subject."""
    words = name.lower().split()
    if not 1 <= len(words) <= 3 or _BOOK_WORDS & set(words):
        return []
    return [f"What is {name}?", f"How do I install {name}?"]


async def introduce_page(
    snapshot: IndexSnapshot, embedder: Embedder, retriever: Retriever, *, url: str
) -> Introduction | None:
    """Introduce the page at this URL with its own questions, then those of its neighbours. None if it is not there."""
    forms = {url, f"{url}/", url.rstrip("/"), url.removesuffix("index.html")}
    pages = snapshot.catalog.table_of_contents()
    at = next((number for number, page in enumerate(pages) if page.url in forms), None)
    if at is None:
        return None
    neighbours = [*pages[at + 1 : at + 4], *pages[max(0, at - 3) : at]]
    candidates = [*list_candidates(snapshot, pages[at : at + 1]), *list_candidates(snapshot, neighbours)]
    name = snapshot.catalog.get_fact(NAME_FACT)
    questions = await _keep_answerable(snapshot, embedder, retriever, candidates[:_MOST_OF_PAGE], name=name)
    return Introduction(pages[at].title, (), questions, pages[at].url)


def list_candidates(snapshot: IndexSnapshot, pages: Sequence[TocEntry]) -> list[str]:
    """Questions from these pages, without a check that each is answered: one of each page before a second of any.

    Longer pages come before shorter ones, and the first page of the book, which mentions everything, comes last.
    """
    front = snapshot.catalog.get_fact(FRONT_FACT)
    pages = sorted(pages, key=lambda page: (page.url == front, -len(page.headings), page.url))[:_MOST_PAGES]
    turns = zip_longest(*(_questions(snapshot, page) for page in pages), fillvalue="")
    return list(dict.fromkeys(question for turn in turns for question in turn if question))


def _questions(snapshot: IndexSnapshot, page: TocEntry) -> list[str]:
    """The questions of the page's headings; without any, those of the terms that its beginning defines."""
    drafts = (question_from_heading(strip_number(heading)) for heading in (page.title, *page.headings))
    if questions := [draft for draft in drafts if 0 < len(draft) <= _MOST_CHARACTERS and _is_clear(draft)]:
        return questions
    record = snapshot.catalog.get_page(page.url)
    text = record.text[:_INTRODUCTION] if record else ""
    spans = [span for span in split_spans(text, fence="") if span.kind is SpanKind.SENTENCE]
    return [defined[0] for span in spans if (defined := question_from_definition(text[span.start : span.end]))]


def _is_clear(question: str) -> bool:
    """Whether the question can be understood without its page: it has no code and does not point at anything."""
    return (
        not set("`()/_…") & set(question)
        and not _NO_SUBJECT.fullmatch(question)
        and not _POINTERS & set(re.findall(r"\w+", question.lower()))
    )


async def _keep_answerable(
    snapshot: IndexSnapshot, embedder: Embedder, retriever: Retriever, candidates: Sequence[str], *, name: str
) -> tuple[str, ...]:
    """The first candidates that the book answers, with the capitals of its text."""

    async def check(question: str) -> str:
        if not snapshot.bm25.terms(question):
            return ""
        found = await retriever.retrieve(snapshot, question, top_k=5, filters=NO_FILTERS)
        evidence = await score_evidence(snapshot, embedder, found)
        text = "\n".join(result.text for result in found.context.results)
        return (
            use_sentence_case(question, text, keep=name) if evidence.confidence >= snapshot.calibration.cutoff else ""
        )

    answered: list[str] = []
    for first in range(0, len(candidates), _BATCH):
        answered += filter(None, await gather(*(check(question) for question in candidates[first : first + _BATCH])))
        if len(answered) >= MOST_QUESTIONS:
            break
    return tuple(dict.fromkeys(answered))[:MOST_QUESTIONS]


def use_sentence_case(question: str, text: str, *, keep: str = "") -> str:
    """The question of a heading in title case, with small initials where the text has the word mostly so.

    The words of the name `keep` stay as they are.
    """

    def lower(found: re.Match[str]) -> str:
        big, small = (len(re.findall(rf"\b{word}\b", text)) for word in (found[0], found[0].lower()))
        return found[0].lower() if small and small >= big and found[0] not in keep else found[0]

    return _CAPITALIZED.sub(lower, question)


def lower_initial(heading: str) -> str:
    """The heading as part of a sentence: a plain first word gets a small initial."""
    word = heading.split(maxsplit=1)[0]
    return heading[0].lower() + heading[1:] if word[1:].islower() or len(word) == 1 else heading


def question_from_heading(heading: str) -> str:
    """The question that a heading answers, or an empty string."""
    if heading.endswith("?"):
        return heading if _ASKS.fullmatch(heading) else ""
    if told := _HOW_TO.match(heading):
        return f"How do I {lower_initial(heading[told.end() :])}?"
    if deed := _find_deed(heading):
        return f"How do I {_YOUR.sub('my', deed)}?"
    if found := _HOW_HEADING.fullmatch(heading):
        return _invert_verb(found["word"], lower_initial(found["what"]), found["verb"])
    if found := _WHAT_HEADING.fullmatch(heading):
        verb = {"means": "mean", "looks like": "look like", "needs": "need", "is for": "serve for"}[
            found["verb"].lower()
        ]
        return f"What does {found['what']} {verb}?"
    return f"{heading}?" if _QUESTION_HEADING.fullmatch(heading) and "," not in heading else ""


def _find_deed(heading: str) -> str:
    """What a heading says can be done: “pass parameters” for “Passing parameters”. Empty if it says nothing such."""
    first, _, rest = heading.partition(" ")
    imperative = first.lower() in _IMPERATIVE_VERBS
    verb = first.lower() if imperative else _GERUNDS.get(first.lower(), "")
    rest = _AND_GERUND.sub(lambda found: f"{found[1]} {_GERUNDS.get(found[2].lower(), found[2])}", rest)
    is_noun = imperative and verb in _NOUN_VERBS and " " not in rest  # "Use cases"
    has_object = " " in rest or rest[:1].isupper() or rest.endswith("s")
    if not verb or is_noun or not has_object or ":" in rest or _AND_GERUND.search(rest) or rest.startswith("of "):
        return ""
    return f"{verb} {rest}"


def _invert_verb(word: str, what: str, verb: str) -> str:
    """Turn “How keys are stored” into a question."""
    if verb.lower() in ("work", "works"):
        return f"{word} {'does' if verb.lower() == 'works' else 'do'} {what} work?"
    be, _, done = verb.partition(" ")
    return f"{word} {be} {what} {done}".rstrip() + "?"


def question_from_definition(sentence: str) -> tuple[str, str] | None:
    """The question and the answer of a definition such as “A chunk is a piece of one section.”"""
    found = _DEFINITION.match(sentence)
    if found is None or _VAGUE_SUBJECTS & set(found["what"].lower().split()):
        return None
    if found["article"] == "The" and " " not in found["what"]:
        return None
    words = re.split(r"\s(?:that|which|who|where|when|so|but|because|if|—|–|-)\s", found["words"])[0].strip()
    if not _FEWEST_WORDS <= len(words.split()) <= _MOST_WORDS:
        return None
    what = found["what"] if found["article"] else lower_initial(found["what"])
    article = f"{found['article'].lower()} " if found["article"] else ""
    return f"What {found['verb']} {article}{what}?", words
