"""Drafting golden questions from the headings and definitions of a book. Only questions that pass are suggested."""

import random
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest

from bythebook.answers import AgentRequest, Outcome
from bythebook.chunking import Chunk
from bythebook.chunking.spans import SpanKind, split_spans
from bythebook.evals.golden import Expectation, GoldenQuestion
from bythebook.evals.golden.check import GoldenChecker
from bythebook.index.provider import IndexSnapshot
from bythebook.qa.pipeline import AnswerPipeline
from bythebook.qa.suggestions import question_from_definition, question_from_heading
from bythebook.retrieval.calibration import load_fixed_questions
from bythebook.retrieval.entries import strip_number
from bythebook.telemetry import Progress

MAX_REFUSED = 3
_CANDIDATES_PER_QUESTION = 6
"""The maximum number of candidates tried for each suggested question."""
_FETCH_BATCH = 256


async def suggest_questions(
    pipeline: AnswerPipeline, snapshot: IndexSnapshot, *, limit: int, seed: int, progress: Progress
) -> list[GoldenQuestion]:
    """Suggest up to `limit` questions that the book answers from their origin, and a few that it refuses."""
    checker = GoldenChecker(pipeline, snapshot)
    accepted: list[GoldenQuestion] = []
    for golden in (await _collect_candidates(snapshot, seed=seed))[: limit * _CANDIDATES_PER_QUESTION]:
        if len(accepted) == limit:
            break
        (result,) = await checker.check([(golden,)], progress=lambda *_: None)
        if result.passed:
            accepted.append(golden)
            progress("drafting", len(accepted), limit)
    return [*accepted, *[golden async for golden in _find_refusals(pipeline, seed=seed)]] if accepted else []


async def _find_refusals(pipeline: AnswerPipeline, *, seed: int) -> AsyncIterator[GoldenQuestion]:
    """Off-topic questions that the book refuses."""
    foreign = random.Random(seed).sample(load_fixed_questions("off_topic"), 4 * MAX_REFUSED)  # noqa: S311 - the same every time
    found = 0
    for question in foreign:
        response = await pipeline.ask(AgentRequest(question))
        if response.outcome is Outcome.REFUSED and found < MAX_REFUSED:
            found += 1
            yield GoldenQuestion(question, Expectation(Outcome.REFUSED))


async def _collect_candidates(snapshot: IndexSnapshot, *, seed: int) -> list[GoldenQuestion]:
    """Candidates from the whole book: one of each page before a second one of any page."""
    by_page: dict[str, list[GoldenQuestion]] = {}
    seen: set[str] = set()
    ids = snapshot.catalog.all_chunk_ids()
    for first in range(0, len(ids), _FETCH_BATCH):
        passages = await snapshot.store.fetch(ids[first : first + _FETCH_BATCH])
        for passage in passages.values():
            path = _path(snapshot, passage.chunk.url)
            for golden in _draft_questions(passage.chunk, path):
                if golden.question not in seen:
                    seen.add(golden.question)
                    by_page.setdefault(path, []).append(golden)
    chance = random.Random(seed)  # noqa: S311 - the same every time
    pages = [by_page[path] for path in sorted(by_page)]
    for page in pages:
        page.sort(key=lambda golden: golden.question)
        chance.shuffle(page)
    chance.shuffle(pages)
    return [golden for turn in zip_longest(*pages) for golden in turn if golden]


def _path(snapshot: IndexSnapshot, url: str) -> str:
    page = snapshot.catalog.get_page(url)
    return page.path if page else url


def _draft_questions(chunk: Chunk, path: str) -> Iterator[GoldenQuestion]:
    """Draft questions from the heading and the definitions of a chunk."""
    title, heading = chunk.heading_hierarchy[:1], strip_number((chunk.heading_hierarchy or ("",))[-1])
    section = (chunk.heading_hierarchy or ("",))[-1]
    place = Expectation(page=path, section="" if (section,) == title else section)
    if question := question_from_heading(heading):
        yield GoldenQuestion(question, place)
    for unit in split_spans(chunk.text, fence=chunk.fence):
        if unit.kind is SpanKind.SENTENCE and (defined := question_from_definition(chunk.text[unit.start : unit.end])):
            question, words = defined
            yield GoldenQuestion(question, replace(place, words=(words,)))


def to_yaml(questions: Sequence[GoldenQuestion]) -> str:
    """Format the questions as YAML with a comment on the next steps."""
    import yaml

    lines = [
        "# Questions that this book answers now from where they were taken. Change them into your readers' words, add",
        "# your own, and run 'bythebook eval golden' with this file after every edit. What may be expected: a page, a",
        "# section, words (a text, or a list of texts that must all stand in the answer), or 'expect: refuse'.",
    ]
    for golden in questions:
        item = yaml.safe_dump([to_fields(golden)], allow_unicode=True, sort_keys=False, width=10_000)
        lines += ["", item.rstrip()]
    return "\n".join(lines) + "\n"


def to_fields(golden: GoldenQuestion) -> dict[str, str | list[str]]:
    """The fields of the question in the file."""
    expected = golden.expected or Expectation()
    if expected.outcome is Outcome.REFUSED:
        return {"question": golden.question, "expect": "refuse"}
    fields: dict[str, str | list[str]] = {"question": golden.question}
    fields |= {name: value for name in ("page", "section") if (value := getattr(expected, name))}
    return fields | ({"words": list(expected.words)} if expected.words else {})
