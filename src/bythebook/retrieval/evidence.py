"""Evidence: does the book cover the question, and which of its sentences speak to it?

Decided from the passages that were found, before any model is asked.

Defining: whether a question asks what something is, and whether a sentence says so.

A book says what a thing is once and names it a hundred times. By words and by meaning the hundred are as near to
"What is a winch?" as the one.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from bythebook.chunking import under
from bythebook.chunking.spans import Unit, UnitKind, units
from bythebook.index.terms import SATURATION, share

if TYPE_CHECKING:
    from collections.abc import Sequence
    from re import Pattern

    from bythebook.embeddings import Embedder
    from bythebook.index.provider import Edition
    from bythebook.retrieval import RetrievalResult
    from bythebook.retrieval.retriever import Retrieved


READ_CLOSELY = 4
"""How many units are compared with the question by meaning; the rest is out of the running by its words."""
_PASSAGES = 5
# Code and table rows repeat a question's words without saying anything about them.
_SPEAKS = {UnitKind.SENTENCE: 1.0, UnitKind.ITEM: 1.0, UnitKind.CODE: 0.8, UnitKind.ROW: 0.8}

_DEFINES = 0.2
"""How much better a sentence speaks that says what a thing is, where that is what was asked."""


@dataclass(frozen=True, slots=True)
class Features:
    """What the decision rests on, each from 0 to 1."""

    passage_cosine: float
    """Of the question and its nearest passage."""
    unit_cosine: float
    """Of the question and its nearest unit."""
    passage_share: float
    """How much of what the question asks about, by the rarity of its words, stands in the first three passages."""
    unit_share: float
    """The same for the best single unit."""


class Weighed(NamedTuple):
    """A unit of a passage with how well it speaks to the question."""

    result: RetrievalResult
    unit: Unit
    score: float

    @property
    def text(self) -> str:
        return self.result.text[self.unit.start : self.unit.end]


class Evidence(NamedTuple):
    """What the passages say to the question."""

    features: Features
    units: tuple[Weighed, ...]
    """Best first."""

    @property
    def confidence(self) -> float:
        """How sure it is that the book covers the question, from 0 to 1."""
        return confidence(self.features)


# Fitted to three collections together, then moved a little by hand: docs/quality.md says how. `python -m bench.fitting
# refusal` fits them again and says what they reach on a collection they were not fitted to.
BIAS = -9.8
WEIGHTS = Features(passage_cosine=9.31, unit_cosine=6.06, passage_share=1.95, unit_share=2.91)
RULE = f"{BIAS:g}, {', '.join(f'{getattr(WEIGHTS, name):g}' for name in Features.__slots__)}; {READ_CLOSELY} units"
"""What the rule is, in letters: a line that was drawn for another rule means nothing to this one."""


def confidence(features: Features) -> float:
    """The logistic rule."""
    total = BIAS + sum(getattr(WEIGHTS, name) * getattr(features, name) for name in Features.__slots__)
    return 1 / (1 + math.exp(-total))


def glance(edition: Edition, retrieved: Retrieved) -> Evidence:
    """What passages and words say to the question, nothing read closely: the least the evidence can be."""
    results = retrieved.context.results[:_PASSAGES]
    if not results:
        return Evidence(Features(0.0, 0.0, 0.0, 0.0), ())
    query = retrieved.context.query
    wanted = edition.rarities(edition.words.terms(query))
    close = _by_words(edition, results, wanted, definition_of(query))[:READ_CLOSELY]
    terms = edition.words.terms
    features = Features(
        passage_cosine=retrieved.nearest,
        unit_cosine=0.0,
        passage_share=share(wanted, {term for result in results[:3] for term in terms(_headed(result))}),
        unit_share=max((share(wanted, terms(entry.text)) for entry in close), default=0.0),
    )
    return Evidence(features, tuple(close))


async def weigh(edition: Edition, embedder: Embedder, retrieved: Retrieved) -> Evidence:
    """Read the best passages closely against the question."""
    seen = glance(edition, retrieved)
    texts = [entry.text for entry in seen.units]
    cosines = [float(vector @ retrieved.question) async for vector in embedder.documents(texts)]
    weighed = [
        Weighed(entry.result, entry.unit, score=entry.score + 0.5 * cosine)
        for entry, cosine in zip(seen.units, cosines, strict=True)
    ]
    features = replace(seen.features, unit_cosine=min(max([0.0, *cosines]), 1.0))
    return Evidence(features, tuple(sorted(weighed, key=lambda entry: -entry.score)))


async def weigh_until(edition: Edition, embedder: Embedder, retrieved: Retrieved, *, sure: float) -> Evidence:
    """Read the best passages as closely as it takes to be this sure: whoever reads on only gets surer.

    For whoever wants to know whether the book covers the question, and not what it says.
    """
    seen = glance(edition, retrieved)
    for entry in seen.units:
        if seen.confidence >= sure:
            break
        async for vector in embedder.documents([entry.text]):
            cosine = min(max(float(vector @ retrieved.question), seen.features.unit_cosine), 1.0)
            seen = Evidence(replace(seen.features, unit_cosine=cosine), seen.units)
    return seen


def _headed(result: RetrievalResult) -> str:
    """The passage as it is read: below its headings."""
    return under(result.heading_hierarchy, result.text)


def _by_words(
    edition: Edition, results: Sequence[RetrievalResult], wanted: dict[int, float], definition: Pattern[str] | None
) -> list[Weighed]:
    """Every unit of the passages by its words and the rank of its passage, best first."""
    ideal = (SATURATION + 1) * sum(wanted.values()) or 1.0
    top = max(result.rerank_score for result in results) or 1.0
    weighed: list[Weighed] = []
    for result in results:
        for unit in units(result.text, fence=result.fence):
            text = result.text[unit.start : unit.end]
            weights = edition.words.weights(text)
            words = sum(wanted[term] * weight for term, weight in weights.items() if term in wanted) / ideal
            score = _SPEAKS[unit.kind] * 0.5 * words + 0.5 * result.rerank_score / top
            score += _DEFINES if definition and definition.match(text) else 0.0
            weighed.append(Weighed(result, unit, score=score * (0.5 if text.endswith("?") else 1.0)))
    return sorted(weighed, key=lambda entry: (-entry.score, entry.result.position, entry.unit.start))


MOST_WORDS = 4
"""Of the thing. A longer one is rather something about a thing, such as the default size of a chunk."""

_ASKED = re.compile(
    r"\W*(?:(?:so|and|but|ok|okay|please|(?:can|could) you|tell me|explain|describe)\W+)*"
    r"(?:(?:what|who)(?:\s+exactly)?(?:['’]s|\s+(?:is|are|was|were))|what\s+(?:do|does)(?=.*\bmean\W*$)|define)\s+"
    r"(?:(?:an?|the)\s+)?(?P<thing>\S.*?)(?:\s+mean)?\W*",
    re.IGNORECASE,
)
_ABOUT_A_THING = re.compile(r"\b(?:of|for|in|on|at|to|from|with|by|between|when|if|that|which|and|or)\b", re.IGNORECASE)
_POINTING = frozenset("it they this that these those he she".split())
"""In a follow-up, what they stand for comes behind them: "What is it? Isaac Sim"."""
_SAYS = r"(?:is|are|was|were|means?|refers?\s+to|stands?\s+for|describes?|denotes?|represents?|serves?\s+as)\b"


@lru_cache(maxsize=256)
def definition_of(question: str) -> re.Pattern[str] | None:
    """What a sentence begins with that says what the question asks for; None when it asks for something else."""
    asked = _ASKED.fullmatch(question)
    thing = asked["thing"] if asked else ""
    words = [word for word in re.findall(r"\w+", thing) if word.lower() not in _POINTING]
    if not 0 < len(words) <= MOST_WORDS or _ABOUT_A_THING.search(thing):
        return None
    # "A winch", "winches", "The Dunmore winch (1931)", "the drum with its rope (winch)".
    one = re.sub(r"(?<=\w{3})(?:(?<=[sxz])es|(?<=[cs]h)es|s)$", "", words[-1])
    name = r"\W+".join(map(re.escape, [*words[:-1], one])) + "(?:e?s){0,2}"
    named = rf"(?:\w+[ -]){{0,2}}{name}(?:\s*\([^()]*\))?|[^.:;]{{2,80}}\({name}\)"
    return re.compile(rf"\W*(?:(?:an?|the)\s+)?(?:{named})[\"”’'*_`]*,?\s+(?:\w+ly\s+)?{_SAYS}", re.IGNORECASE)
