"""Claims made from a book by rule: true ones are its sentences reworded, false ones have one small change as well.

A true claim has one more rewording than a false one, which has its change instead, so that both are equally far from
the book. The same seed makes the same claims. `training/` makes its pairs with the same terms and clauses.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_TABLES: dict[str, Any] = tomllib.loads((Path(__file__).parent / "swaps.toml").read_text(encoding="utf-8"))
COMMON_FIRST = frozenset(_TABLES["first_words"].split())
_SYNONYMS, _COMPARED = _TABLES["synonyms"], _TABLES["comparisons"]
CODE = re.compile(
    r"(?<![\w/.-])(?:--?[a-z][\w-]+(?:=[\w.]+)?|\w+_\w+(?:\(\))?|[a-z]+[A-Z]\w+"
    r"|[A-Za-z]\w*(?:\.[A-Za-z_]\w*)+(?:\(\))?|\w+\(\)|\$\w+|[A-Z][a-z]+[A-Z]\w+"
    r"|[A-Z]{3,}[A-Z0-9_]*)(?![\w/])"
)
NAME = re.compile(r"(?<!^)(?<![.!?:] )\b[A-Z][\w-]*(?:[ ](?:[A-Z0-9][\w-]*|for(?= [A-Z])|of(?= [A-Z])))*")
NUMBER = re.compile(
    r"(?<![\w.,-])\$?\d+(?:[.,]\d+)*(?![\w-]*[A-Za-z]{4})(?:\s?(?:%|GB|MB|KB|TB|ms|px|vCPUs?|GiB|MiB))?(?![\d])"
)
_CLAUSE_FIRST = re.compile(
    r"^(?P<word>If|When|Whenever|Because|Since|Although|Unless|Until|Once|Before|After|While"
    r"|As long as) (?P<condition>[^,;:()]{8,110}), (?P<main>[^;:]{12,160})[.]$"
)
_CLAUSE_LAST = re.compile(
    r"^(?P<main>[^;:,]{12,160}?),? (?P<word>if|when|whenever|because|although|unless|until|once"
    r"|as long as|only if|only when) (?P<condition>[^,;:()]{8,110})[.]$"
)
_POINTER = re.compile(
    r"(?:For (?:more|further|details)|See|Learn|Click|This (?:article|section|topic|page)|Here|Let)\b"
)
_SUBJECT = re.compile(
    r"^(?P<subject>(?:[\w`.'()-]+ ){1,6}?)(?P<rest>(?:is|are|was|were|can|may|must|will|should|has|have|does|do"
    r"|provides|uses|allows|requires|supports|contains|includes|needs|returns|creates|means|takes|makes|runs|gives|sets)\b.+)$"
)
_PASSIVE = re.compile(
    r"^(?P<a>[^,;:()]{2,60}?) (?P<be>is|are|was|were|can be|must be|will be) (?P<verb>\w+(?:ed|en|t|n)) by "
    r"(?P<b>(?:the |a |an |your )?[\w.`'-]+(?: [\w.`'-]+){0,2}?)(?P<rest>(?: (?:in|on|at|for|to|when|if|with)\b.*)?)\.$"
)
_PLACES = re.compile(
    r"\b(?P<w>from|between) (?P<a>[^,.;]{2,40}?) (?P<x>to|and) (?P<b>[^,.;]{2,40}?)(?=[,.;])"
    r"|(?P<a2>\b[\w`.-]+(?: [\w`.-]+)?) (?P<w2>instead of|rather than|before|after|over) (?P<b2>[\w`.-]+(?: [\w`.-]+)?)"
)
_SYNONYM = re.compile(r"(?<![\w-])(" + "|".join(sorted(_SYNONYMS, key=len, reverse=True)) + r")(?![\w-])")
_COMPARING = re.compile(r"(?<![\w-])(" + "|".join(sorted(_COMPARED, key=len, reverse=True)) + r")(?![\w-])")


@dataclass(frozen=True, slots=True)
class MadeClaim:
    """A claim, the sentence it was made from, and whether the book says it. `kind` names what was done."""

    text: str
    source: str
    supported: bool
    kind: str


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The sentences beside the one that is changed, and its page: what a swap takes its material from."""

    sentences: Sequence[str]
    page: str = ""
    heading: str = ""


Change = Callable[[str, Surroundings, random.Random], str]
"""Returns the changed sentence; the same sentence where there is nothing to change."""


def code_terms(text: str) -> list[str]:
    """Options, identifiers and calls in the text."""
    return list(dict.fromkeys(CODE.findall(text)))


def names(text: str) -> list[str]:
    """Capitalised names inside the sentences of the text."""
    first = r"^(?:The|This|You|For|See|Note|In|If|When|To|Use|Select|And|Or|A|An|With|On|Your|It|We)(?: |$)"
    found = [re.sub(first, "", name) for name in NAME.findall(text)]
    return list(dict.fromkeys(name for name in found if len(name) > 2))


def numbers(text: str) -> list[str]:
    return list(dict.fromkeys(NUMBER.findall(text)))


def split_condition(sentence: str) -> tuple[str, str, str] | None:
    """The conjunction, the subordinate clause and the main clause: "If A, B." and "B if A." give ("if", "A", "B")."""
    found = _CLAUSE_FIRST.match(sentence) or _CLAUSE_LAST.match(sentence)
    if not found or re.match(r"(?:and|or|but|then the)\b", found["main"]):
        return None
    return found["word"].lower(), found["condition"], re.sub(r"^then ", "", found["main"])


def close(text: str) -> str:
    """The text with single spaces, a capital at the beginning and a full stop."""
    text = " ".join(text.split()).rstrip(" .,;:")
    return capitalize(re.sub(r" ([,.;:])", r"\1", text)) + "."


def capitalize(text: str) -> str:
    return text[:1].upper() + text[1:] if text and not _is_term(text.split(maxsplit=1)[0]) else text


def uncapitalize(text: str) -> str:
    """The text as it stands inside a sentence: a word that is only capitalised for standing first is not."""
    return text[:1].lower() + text[1:] if text.split() and text.split(maxsplit=1)[0] in COMMON_FIRST else text


def _is_term(word: str) -> bool:
    return bool(CODE.fullmatch(word)) or word[:1] in "`$-"


def make_claims(sections: Sequence[tuple[str, Sequence[str]]], *, seed: int) -> Iterator[MadeClaim]:
    """A true and a false claim for each sentence that can be both reworded and changed.

    A section is its heading and its paragraphs.
    """
    chance = random.Random(seed)  # noqa: S311 - the same every time
    for heading, paragraphs in sections:
        page = " ".join(paragraphs)
        for paragraph in paragraphs:
            sentences = [one for one in re.split(r"(?<=[.!?])\s+(?=[A-Z`\"'(])", paragraph) if _is_usable(one)]
            for sentence in sentences:
                around = Surroundings([other for other in sentences if other != sentence], page, heading)
                yield from _make_pair(sentence, around, chance)


def _is_usable(sentence: str) -> bool:
    return sentence.endswith(".") and 6 <= len(sentence.split()) <= 34 and not _POINTER.match(sentence)


def _make_pair(sentence: str, around: Surroundings, chance: random.Random) -> Iterator[MadeClaim]:
    steps = chance.choice((0, 1, 1))
    true, how = reword(sentence, around, chance, steps=steps + 1)
    order = chance.sample(list(CHANGES.items()), len(CHANGES))
    changed = ((kind, change(sentence, around, chance)) for kind, change in order)
    kind, other = next(((kind, one) for kind, one in changed if _plain(one) != _plain(sentence)), ("", ""))
    false, _ = reword(other, around, chance, steps=steps) if other else ("", "")
    if how and false and _plain(false) != _plain(true) and len(false.split()) < 48:
        yield MadeClaim(true, sentence, supported=True, kind=how)
        yield MadeClaim(false, sentence, supported=False, kind=kind)


def reword(sentence: str, around: Surroundings, chance: random.Random, *, steps: int) -> tuple[str, str]:
    """The sentence reworded so many times, and the name of the last rewording; empty if none fits."""
    how = ""
    order = chance.sample(list(REWORDINGS.items()), len(REWORDINGS))
    for name, rule in order:
        made = rule(sentence, around, chance) if steps else sentence
        if _plain(made) != _plain(sentence):
            sentence, how, steps = made, name, steps - 1
    return sentence, how


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", " ", text.lower()).strip()


def _turn_passive(sentence: str, _: Surroundings, _chance: random.Random) -> str:
    found = _PASSIVE.match(sentence)
    return close("It is {b} by which {a} {be} {verb} {rest}".format(**_uncapitalize(found))) if found else sentence


def _resolve_pronoun(sentence: str, around: Surroundings, _chance: random.Random) -> str:
    return re.sub(r"^(?:It|This) (?=is|can|has|will|must|[a-z]+s\b)", f"{around.heading} ", sentence)


def _move_condition(sentence: str, _: Surroundings, _chance: random.Random) -> str:
    parts = split_condition(sentence)
    if not parts:
        return sentence
    word, condition, main = parts
    first = sentence.lower().startswith(f"{word} ")
    moved = f"{uncapitalize(main)} {word} {condition}" if first else f"{word} {condition}, {uncapitalize(main)}"
    return close(moved)


def _replace_words(sentence: str, _: Surroundings, _chance: random.Random) -> str:
    return _SYNONYM.sub(lambda found: str(_SYNONYMS[found[0]]), sentence)


def _leave_out(sentence: str, _: Surroundings, _chance: random.Random) -> str:
    shorter = re.sub(r" \([^()]{2,80}\)|,? (?:such as|including|for example|e\.g\.) [^;:.]{5,120}(?=\.$)", "", sentence)
    return close(
        re.sub(r"^(?:However|Therefore|In addition|For example|Note that|Similarly|In this case),? ", "", shorter)
    )


def _put_topic_first(sentence: str, _: Surroundings, _chance: random.Random) -> str:
    found = re.match(r"^(?P<main>[^,;:()]{12,120}) (?P<last>(?:in|on|at|with|for|by) [^,;:()]{6,60})\.$", sentence)
    return close(f"{found['last']}, {uncapitalize(found['main'])}") if found else sentence


def _uncapitalize(found: re.Match[str]) -> dict[str, str]:
    return {name: uncapitalize(value or "") for name, value in found.groupdict().items()}


def _swap_subject(sentence: str, around: Surroundings, chance: random.Random) -> str:
    own = _SUBJECT.match(sentence)
    others = [found["subject"] for other in around.sentences if (found := _SUBJECT.match(other))]
    others = [other for other in others if own and other.lower() != own["subject"].lower() and len(other) > 4]
    return f"{chance.choice(others)}{own['rest']}" if own and others else sentence


def _swap_roles(sentence: str, _: Surroundings, _chance: random.Random) -> str:
    if found := _PASSIVE.match(sentence):
        return close("{b} {be} {verb} by {a} {rest}".format(**_uncapitalize(found)))
    found = _PLACES.search(sentence)
    if not found:
        return sentence
    parts = _uncapitalize(found)
    swapped = "{w} {b} {x} {a}" if parts["a"] else "{b2} {w2} {a2}"
    return close(sentence[: found.start()] + swapped.format(**parts) + sentence[found.end() :])


def _swap_from(find: Callable[[str], list[str]]) -> Change:
    """A change that puts another number, name or identifier of the page in place of one of the sentence."""

    def change(sentence: str, around: Surroundings, chance: random.Random) -> str:
        own = find(sentence)
        others = [one for one in find(" ".join(around.sentences)) or find(around.page) if one not in sentence]
        return sentence.replace(chance.choice(own), chance.choice(others), 1) if own and others else sentence

    return change


def _swap_by(table: Sequence[tuple[str, str]]) -> Change:
    """A change by the patterns of a table, one of those that fit."""

    def change(sentence: str, _: Surroundings, chance: random.Random) -> str:
        fitting = [(pattern, other) for pattern, other in table if re.search(pattern, sentence)]
        pattern, other = chance.choice(fitting) if fitting else ("$^", "")
        return re.sub(pattern, other, sentence, count=1)

    return change


def _compare_otherwise(sentence: str, _: Surroundings, _chance: random.Random) -> str:
    return _COMPARING.sub(lambda found: str(_COMPARED[found[0]]), sentence, count=1)


def _drop_condition(sentence: str, _: Surroundings, chance: random.Random) -> str:
    parts = split_condition(sentence)
    if not parts or parts[0] in ("because", "since", "although", "while"):
        return sentence
    return close(f"{parts[2]}, {chance.choice(('whether or not', 'even if it is not the case that'))} {parts[1]}")


def _add(sentence: str, around: Surroundings, chance: random.Random) -> str:
    away = [one for one in re.split(r"(?<=[.!?])\s+", around.page) if one not in around.sentences and one != sentence]
    tails = [
        found[0] for one in away if (found := re.search(r" (?:in|on|for|with|by|through) [^,;:.()]{8,50}(?=\.$)", one))
    ]
    return close(sentence.rstrip(".") + chance.choice(tails)) if tails else sentence


def _stitch(sentence: str, around: Surroundings, chance: random.Random) -> str:
    others = [other for other in around.sentences if 4 < len(other.split()) < 20 and len(sentence.split()) < 22]
    return (
        close(f"because {uncapitalize(chance.choice(others).rstrip('.'))}, {uncapitalize(sentence)}")
        if others
        else sentence
    )


REWORDINGS: dict[str, Change] = {
    "passive": _turn_passive,
    "pronoun": _resolve_pronoun,
    "order": _move_condition,
    "topic first": _put_topic_first,
    "synonyms": _replace_words,
    "left out": _leave_out,
}
CHANGES: dict[str, Change] = {
    "subject": _swap_subject,
    "role": _swap_roles,
    "number": _swap_from(numbers),
    "name": _swap_from(names),
    "code": _swap_from(code_terms),
    "negation": _swap_by(tuple(_TABLES["negations"].items())),
    "scope": _swap_by(tuple(_TABLES["wider"].items())),
    "comparison": _compare_otherwise,
    "condition": _drop_condition,
    "addition": _add,
    "stitch": _stitch,
}
