"""Makes pairs of quote and claim from the sentences of a book: true ones reworded, false ones changed in one small way.

python -m training.minimal_pairs QUESTIONS OUT.jsonl [--seed N] [--limit N]

QUESTIONS is a folder of passages of documentation (`docs_*.jsonl.gz`). Each line of OUT has `kind`, `heading`, `quote`,
`claim` and `label`. The same seed makes the same pairs.

A true claim is as far from its quote as a false one: it is reworded in one step more, where the false one has its
change. Where a change can be turned around, half of the quotes are changed instead of the claims. So neither a claim
alone, nor a quote alone, nor the share of words they have in common tells a true pair from a false one.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bythebook.evals.swaps import code_terms, names
from training.changes import Surroundings, change
from training.deeds import collect_material, make_deed_fact
from training.facts import Fact, Vocabulary, make_fact
from training.grammar import BASES
from training.rewordings import frame, join, resolve_pronoun, reword

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

SHARES = {"sentences": 0.35, "facts": 0.15, "deeds": 0.5}
"""The share of pairs that are made of the sentences of pages, of made-up facts, and of made-up pages about deeds."""
MARKUP = (
    ("`", "`"),
    ("``", "``"),
    ("**", "**"),
    ("*", "*"),
    (":func:`", "`"),
    (":class:`", "`"),
    ("'", "'"),
    ('"', '"'),
)


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a page under its headings."""

    heading: str
    text: str


@dataclass(frozen=True, slots=True)
class MadePair:
    """A quote with its heading path, a claim, and whether the quote supports it. `kind` names the change."""

    kind: str
    heading: str
    quote: str
    claim: str
    label: bool


_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\"'(])")


_POINTER = re.compile(
    r"For (?:more|further|details|additional)|See |Learn |Go to |Select |Click |\||[a-z][a-z']* |This"
    r" (?:article|section|topic|page) |The following |Yes\b|No\b|A: |Q: |Here |In other words|Is |Are ",
    re.ASCII,
)
"""Beginnings of sentences that point somewhere else, or say nothing that a claim could be about."""


def sentences_of(paragraph: str) -> list[str]:
    """The whole sentences of the paragraph that are neither very short nor very long."""
    found = [re.sub(r"^(?:[-*•]|\d+[.)]) ", "", sentence.strip()) for sentence in _SENTENCE.split(paragraph)]
    return [
        sentence
        for sentence in found
        if sentence.endswith(".") and 5 <= len(sentence.split()) <= 34 and not _POINTER.match(sentence)
    ]


@dataclass(frozen=True, slots=True)
class Place:
    """A sentence, the paragraph it stands in, and the part of it that is quoted."""

    passage: Passage
    paragraph: Sequence[str]
    sentence: str
    quoted: Sequence[str]

    @property
    def standing_alone(self) -> str:
        """The sentence with its pronoun resolved, where the sentence before is quoted too."""
        place = self.quoted.index(self.sentence)
        before = self.quoted[place - 1] if place else ""
        return resolve_pronoun(self.sentence, before) or self.sentence

    @property
    def surroundings(self) -> Surroundings:
        beside = [*self.quoted, *(other for other in self.paragraph if other not in self.quoted)]
        return Surroundings(beside[:6], self.passage.text)


def make_pairs(passages: Iterable[Passage], *, seed: int) -> Iterator[MadePair]:
    """A true and a false pair for each sentence that can be both reworded and changed."""
    chance = random.Random(seed)  # noqa: S311 - the same every time
    seen: set[str] = set()
    for passage in passages:
        for paragraph in passage.text.split("\n"):
            sentences = sentences_of(paragraph)
            for place, sentence in enumerate(sentences):
                if sentence not in seen:
                    seen.add(sentence)
                    quoted = _quoted(sentences, place, chance)
                    yield from _pairs(Place(passage, sentences, sentence, quoted), chance)


def _quoted(sentences: Sequence[str], place: int, chance: random.Random) -> list[str]:
    before, after = chance.choice(((0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (0, 2), (2, 1), (1, 2)))
    return list(sentences[max(place - before, 0) : place + after + 1])


def _pairs(place: Place, chance: random.Random) -> Iterator[MadePair]:
    said = place.standing_alone
    changed = change(said, place.surroundings, chance)
    if not changed:
        return
    kind, other = changed
    turns = kind.turns and said == place.sentence
    true_turned, false_turned = (turns and chance.random() < 0.5 for _ in range(2))
    steps = chance.choice((0, 1, 1, 2))
    true, rewordings = reword(other if true_turned else said, chance, steps=steps + 1)
    false = _reword_changed(*((said, other) if false_turned else (other, said)), chance, steps=steps)
    if not false or (not rewordings and chance.random() > 0.3):
        return
    for claim, turned, label in ((true, true_turned, True), (false, false_turned, False)):
        quoted = [other if turned and one == place.sentence else one for one in place.quoted]
        yield _make_pair(MadePair(kind.name, place.passage.heading, " ".join(quoted), claim, label), quoted, chance)


def _reword_changed(changed: str, unchanged: str, chance: random.Random, *, steps: int) -> str | None:
    """The changed sentence reworded; nothing where the rewording leaves out what was changed."""
    seed = chance.random()
    made, same = (reword(text, random.Random(seed), steps=steps)[0] for text in (changed, unchanged))  # noqa: S311
    return made if made != same else None


def _make_pair(pair: MadePair, quoted: Sequence[str], chance: random.Random) -> MadePair:
    """The pair with what real ones have: claims that sum up two sentences or name their topic, code marked as code."""
    claim = pair.claim
    others = [other for other in quoted[1:] if len(other.split()) + len(claim.split()) < 45]
    # A false claim of the kind "stitch" has two sentences in it: so has a true one.
    if others and chance.random() < (0.7 if pair.label and pair.kind == "stitch" else 0.15):
        second, _ = reword(chance.choice(others), chance, steps=1)
        first, last = chance.sample([claim, second], 2)
        claim = join(first, last, chance)
    if chance.random() < 0.08:
        claim = frame(claim, chance, topic=pair.heading) or claim
    heading = pair.heading if chance.random() < 0.4 else ""
    return replace(pair, heading=heading, quote=mark_up(pair.quote, chance), claim=claim)


def mark_up(quote: str, chance: random.Random) -> str:
    """The quote with its identifiers marked as one of the usual formats marks them."""
    if chance.random() < 0.5:
        return quote
    before, after = chance.choice(MARKUP)
    for term in code_terms(quote):
        quote = quote.replace(term, f"{before}{term}{after}", 1)
    return quote


def make_unrelated(passages: Sequence[Passage], *, seed: int) -> Iterator[MadePair]:
    """Claims from one paragraph beside a quote from another one of the same page: what is true but not said there."""
    chance = random.Random(seed)  # noqa: S311 - the same every time
    for passage in passages:
        groups = [found for paragraph in passage.text.split("\n") if (found := sentences_of(paragraph))]
        if len(groups) > 1:
            first, second = chance.sample(groups, 2)
            claim, _ = reword(chance.choice(first), chance, steps=2)
            yield MadePair("elsewhere", "", " ".join(second[:3]), claim, label=False)


def collect_vocabulary(passages: Iterable[Passage]) -> Vocabulary:
    """The names, identifiers and purposes that the passages mention, in a fixed order."""
    named: Counter[str] = Counter()
    identifiers: Counter[str] = Counter()
    purposes: Counter[str] = Counter()
    purpose = re.compile(r"\b(?:to|can) ((?:[a-z]+) (?:the |a |an |your |all )?[a-z][^,;:.()\n]{8,50})(?=[.,])")
    for passage in passages:
        named.update(name for name in names(passage.text) if 3 < len(name) < 32)
        identifiers.update(term for term in code_terms(passage.text) if 3 < len(term) < 30)
        purposes.update(
            found for found in purpose.findall(passage.text) if found.split()[0] in BASES and len(found.split()) < 9
        )
    return Vocabulary(
        [name for name, count in named.items() if count > 2],
        [name for name, count in identifiers.items() if count > 1],
        list(purposes),
    )


def make_facts(make: Callable[[random.Random], Fact], name: str, *, count: int, seed: int) -> Iterator[MadePair]:
    """So many true and as many false pairs about what `make` makes up."""
    chance = random.Random(seed)  # noqa: S311 - the same every time
    for _ in range(count):
        fact = make(chance)
        for claim, label in ((fact.true, True), (fact.false, False)):
            said, _ = reword(claim, chance, steps=1) if chance.random() < 0.3 else (claim, 0)
            yield MadePair(f"{name} {fact.kind}", fact.heading, fact.quote, said, label)


def read_passages(folder: Path) -> list[Passage]:
    """The different passages of the documentation sets, each under the title of its page."""
    found: dict[str, Passage] = {}
    for path in sorted(folder.glob("docs_*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for row in map(json.loads, lines):
                found.setdefault(row["context"], Passage(row["title"], row["context"]))
    return list(found.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("questions", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=int, default=60_000, help="sentences of pages that are used, at most, as pairs")
    given = parser.parse_args()
    chance = random.Random(given.seed)  # noqa: S311 - the same every time
    passages = read_passages(given.questions)
    chance.shuffle(passages)
    pairs: list[MadePair] = []
    for pair in make_pairs(passages, seed=given.seed):
        pairs.append(pair)
        if len(pairs) >= given.limit:
            break
    pairs.extend(list(make_unrelated(passages, seed=given.seed))[: len(pairs) // 25])
    words = collect_vocabulary(passages)
    material = collect_material(words, [passage.text for passage in passages])
    makers: dict[str, Callable[[random.Random], Fact]] = {
        "facts": lambda drawn: make_fact(words, drawn),
        "deeds": lambda drawn: make_deed_fact(material, drawn),
    }
    for name, make in makers.items():
        count = round(given.limit * SHARES[name] / SHARES["sentences"] / 2)
        pairs.extend(make_facts(make, name.removesuffix("s"), count=count, seed=given.seed))
    chance.shuffle(pairs)
    given.out.write_text(
        "".join(json.dumps(asdict(pair), ensure_ascii=False) + "\n" for pair in pairs), encoding="utf-8"
    )
    for (kind, label), number in sorted(Counter((pair.kind, pair.label) for pair in pairs).items()):
        print(f"{kind} {'true' if label else 'false'}: {number}")


if __name__ == "__main__":
    main()
