"""Drafts of golden questions: what the book's own headings and definitions answer, tried out before it is suggested."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from bythebook.answers import AgentRequest, Outcome
from bythebook.chunking.spans import UnitKind, units
from bythebook.evals.golden import Expectation, Golden
from bythebook.evals.golden.check import Examination
from bythebook.qa.suggestions import as_question, unnumbered, within
from bythebook.retrieval.calibration import STRANGERS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from bythebook.chunking import Chunk
    from bythebook.index.provider import Edition
    from bythebook.qa.pipeline import Asker
    from bythebook.telemetry import Progress

MOST_REFUSED = 3
_TRIED_FOR_ONE = 6
"""How many candidates are asked, at most, for each question that is wanted."""
_AT_ONCE = 256
_DOING = frozenset(
    "add adjust allow apply ask begin build call change check choose clean clone combine configure connect control "
    "convert copy create customise customize debug declare define delete deploy disable download enable export find "
    "fix get give handle ignore import improve install keep let limit list load log make manage measure merge migrate "
    "move open override pass prepare publish put read remove rename replace restart restrict return run save scale "
    "search see send serve set share show split start stop store switch test translate turn uninstall update upgrade "
    "upload use validate verify watch write".split()
)
_ASKS = re.compile(
    r"(?:what|which|who) \w+s\b.*|(?:what|why|when|where|which|who) (?:is|are|was|were|does|do|can|should|must)\b.*",
    re.IGNORECASE,
)
_WORKS = re.compile(
    r"(?P<word>how|when|where|why) (?!(?:well|often|many|much|long|far|fast|small|big|good|to)\b)(?P<what>.+?) "
    r"(?P<verb>works?|(?:are|is|was|were)(?: \w+)?)",
    re.IGNORECASE,
)
_SUBJECT = "What does the book say about "
"""How a heading is asked about that puts no question itself. Such questions come last."""
_YOUR = re.compile(r"\byour\b")
_MEANS = re.compile(r"what (?P<what>an? .+|the .+) (?P<verb>means|looks like|needs|is for)", re.IGNORECASE)
_DEFINES = re.compile(
    r"(?P<article>An?|The)?\s*(?P<what>[A-Za-z][\w’'-]*(?: [\w’'-]+){0,3}?) (?P<verb>is|are) "
    r"(?P<words>(?:an?|the|one) (?:[^.,;:()]|\.(?=\w))+)"
)
_VAGUE = frozenset(
    "this that it there these those they he she what which who here one default example result same first second next "
    "last following answer question reason value way goal point problem difference idea purpose order only with in on "
    "at for by from to of as each every no all some most when if after before while not both neither and or".split()
)
_FEWEST_WORDS, _MOST_WORDS = 3, 9


async def suggest(asker: Asker, edition: Edition, *, limit: int, seed: int, progress: Progress) -> list[Golden]:
    """Up to `limit` questions that the book answers now from where they were taken, and a few it refuses."""
    examination = Examination(asker, edition)
    drafted: list[Golden] = []
    for golden in (await _candidates(edition, seed=seed))[: limit * _TRIED_FOR_ONE]:
        if len(drafted) == limit:
            break
        (checked,) = await examination.check([(golden,)], progress=_unseen)
        if checked.passed:
            drafted.append(golden)
            progress("drafting", len(drafted), limit)
    return [*drafted, *[golden async for golden in _refused(asker, seed=seed)]] if drafted else []


def _unseen(_stage: str, _done: int, _total: int) -> None:
    """Nobody watches a single question."""


async def _refused(asker: Asker, *, seed: int) -> AsyncIterator[Golden]:
    """Questions about something else altogether that the book refuses now."""
    foreign = random.Random(seed).sample(STRANGERS, 4 * MOST_REFUSED)  # noqa: S311 - the same every time
    found = 0
    for question in foreign:
        response = await asker.ask(AgentRequest(question))
        if response.outcome is Outcome.REFUSED and found < MOST_REFUSED:
            found += 1
            yield Golden(question, Expectation(Outcome.REFUSED))


async def _candidates(edition: Edition, *, seed: int) -> list[Golden]:
    """What could be asked, from all over the book: one of each page before a second of any."""
    by_page: dict[str, list[Golden]] = {}
    seen: set[str] = set()
    ids = edition.catalogue.all_chunk_ids()
    for first in range(0, len(ids), _AT_ONCE):
        passages = await edition.store.fetch(ids[first : first + _AT_ONCE])
        for passage in passages.values():
            path = _path(edition, passage.chunk.url)
            for golden in _asked_of(passage.chunk, path):
                if golden.question not in seen:
                    seen.add(golden.question)
                    by_page.setdefault(path, []).append(golden)
    chance = random.Random(seed)  # noqa: S311 - the same every time
    pages = [by_page[path] for path in sorted(by_page)]
    for page in pages:
        page.sort(key=lambda golden: golden.question)
        chance.shuffle(page)
    chance.shuffle(pages)
    rounds = max(map(len, pages), default=0)
    turns = [page[turn] for turn in range(rounds) for page in pages if turn < len(page)]
    return sorted(turns, key=lambda golden: golden.question.startswith(_SUBJECT))


def _path(edition: Edition, url: str) -> str:
    page = edition.catalogue.page(url)
    return page.path if page else url


def _asked_of(chunk: Chunk, path: str) -> Iterator[Golden]:
    """What the chunk's heading asks, and what its sentences define."""
    title, heading = chunk.heading_hierarchy[:1], unnumbered((chunk.heading_hierarchy or ("",))[-1])
    section = (chunk.heading_hierarchy or ("",))[-1]
    place = Expectation(page=path, section="" if (section,) == title else section)
    if question := asked_by(heading):
        yield Golden(question, place)
    elif 1 <= len(heading.split()) <= 4 and heading[:1].isalpha():
        yield Golden(f"{_SUBJECT}{within(heading)}?", place)
    for unit in units(chunk.text, fence=chunk.fence):
        if unit.kind is UnitKind.SENTENCE and (defined := defines(chunk.text[unit.start : unit.end])):
            question, words = defined
            yield Golden(question, replace(place, words=(words,)))


def asked_by(heading: str) -> str:
    """The question a heading answers, empty when none can be made of it."""
    if question := as_question(heading):
        return question
    first, _, rest = heading.partition(" ")
    if first.lower() in _DOING and ":" not in heading and (" " in rest or rest[:1].isupper() or rest.endswith("s")):
        return f"How do I {_YOUR.sub('my', within(heading))}?"
    if found := _WORKS.fullmatch(heading):
        return _turned(found["word"], within(found["what"]), found["verb"])
    if found := _MEANS.fullmatch(heading):
        verb = {"means": "mean", "looks like": "look like", "needs": "need", "is for": "serve for"}[
            found["verb"].lower()
        ]
        return f"What does {found['what']} {verb}?"
    return f"{heading}?" if _ASKS.fullmatch(heading) and "," not in heading else ""


def _turned(word: str, what: str, verb: str) -> str:
    """“How keys are stored” as a question."""
    if verb.lower() in ("work", "works"):
        return f"{word} {'does' if verb.lower() == 'works' else 'do'} {what} work?"
    be, _, done = verb.partition(" ")
    return f"{word} {be} {what} {done}".rstrip() + "?"


def defines(sentence: str) -> tuple[str, str] | None:
    """The question a definition answers and the words that answer it: “A chunk is a piece of one section.”"""
    found = _DEFINES.match(sentence)
    if found is None or _VAGUE & set(found["what"].lower().split()):
        return None
    if found["article"] == "The" and " " not in found["what"]:
        return None
    words = re.split(r"\s(?:that|which|who|where|when|so|but|because|if|—|–|-)\s", found["words"])[0].strip()
    if not _FEWEST_WORDS <= len(words.split()) <= _MOST_WORDS:
        return None
    what = found["what"] if found["article"] else within(found["what"])
    article = f"{found['article'].lower()} " if found["article"] else ""
    return f"What {found['verb']} {article}{what}?", words


def written(questions: Sequence[Golden]) -> str:
    """The questions as YAML, with a word on how to go on."""
    import yaml

    lines = [
        "# Questions that this book answers now from where they were taken. Change them into your readers' words, add",
        "# your own, and run 'bythebook eval golden' with this file after every edit. What may be expected: a page, a",
        "# section, words (a text, or a list of texts that must all stand in the answer), or 'expect: refuse'.",
    ]
    for golden in questions:
        item = yaml.safe_dump([as_fields(golden)], allow_unicode=True, sort_keys=False, width=10_000)
        lines += ["", item.rstrip()]
    return "\n".join(lines) + "\n"


def as_fields(golden: Golden) -> dict[str, str | list[str]]:
    """The question as it is written down."""
    expected = golden.expected or Expectation()
    if expected.outcome is Outcome.REFUSED:
        return {"question": golden.question, "expect": "refuse"}
    fields: dict[str, str | list[str]] = {"question": golden.question}
    fields |= {name: value for name in ("page", "section") if (value := getattr(expected, name))}
    return fields | ({"words": list(expected.words)} if expected.words else {})
