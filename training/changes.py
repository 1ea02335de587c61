"""Changes a sentence in one small way, so that it says something else: what a language model gets wrong, by rule."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bythebook.evals.swaps import close, code_terms, names, numbers, split_condition, uncapitalize
from training.grammar import (
    BASES,
    Clause,
    active,
    is_noun_phrase,
    is_plural,
    parse_clause,
    passive,
    subject_of,
    third_person,
)

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

    Change = Callable[[str, "Surroundings", random.Random], str | None]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The sentences beside the one that is changed: what a swap takes its material from."""

    sentences: Sequence[str]
    page: str = ""
    """More text of the same page, for where the neighbours have nothing to offer."""


ANTONYMS = """
enable disable; enabled disabled; enables disables; allow prevent; allows prevents; allowed forbidden
increase decrease; increases decreases; add remove; added removed; adds removes; start stop; starts stops
started stopped; include exclude; includes excludes; included excluded; accept reject; accepts rejects
accepted rejected; required optional; mandatory optional; supported unsupported; available unavailable
possible impossible; first last; oldest newest; maximum minimum; max min; before after; above below; input output
source destination; read write; public private; internal external; local remote; open closed; online offline
manually automatically; manual automatic; synchronous asynchronous; synchronously asynchronously; upload download
uploads downloads; import export; imports exports; encrypted unencrypted; success failure; succeeds fails
succeed fail; true false; on-premises cloud-based; client server; parent child; left right; top bottom; up down
same different; new existing; temporary permanent; permanently temporarily; always never; inbound outbound
incoming outgoing; primary secondary; horizontal vertical; static dynamic; encode decode; encrypt decrypt; show hide
shows hides; shown hidden; send receive; sends receives; sent received; sender recipient; install uninstall
lock unlock; present absent; positive negative; old new; begin end; begins ends; begin finish; single multiple
create delete; creates deletes; created deleted; valid invalid; active inactive; expand collapse
ascending descending; fast slow; faster slower; larger smaller; higher lower; longer shorter; more fewer; more less
greater smaller; earlier later; newer older; easier harder; better worse; highest lowest; largest smallest
increases reduces; increase reduce; improve worsen; improves worsens; ignore use; ignored used; directly indirectly
optional required; common rare; exactly approximately; explicitly implicitly; free paid; read-only writable
with without; inside outside; within outside; user administrator; users administrators; request response
requests responses; row column; rows columns; key value; keys values; daily weekly; day month; days hours
hours minutes; minutes seconds; weekly monthly; monthly yearly; morning evening; north south; east west; hot cold
young old; most least; recommended discouraged
"""
_PAIRS: dict[str, list[str]] = {}
for _entry in ANTONYMS.replace("\n", ";").split(";"):
    if len(_words := _entry.split()) == 2:
        _PAIRS.setdefault(_words[0], []).append(_words[1])
        _PAIRS.setdefault(_words[1], []).append(_words[0])
_ANTONYM = re.compile(r"(?<![\w-])(" + "|".join(sorted(_PAIRS, key=len, reverse=True)) + r")(?![\w-])", re.IGNORECASE)


def turn_word(sentence: str, _: Surroundings, chance: random.Random) -> str | None:
    """A word becomes its opposite."""
    found = list(_ANTONYM.finditer(sentence))
    if not found:
        return None
    one = chance.choice(found)
    other = chance.choice(_PAIRS[one[0].lower()])
    return _splice(sentence, one, other.capitalize() if one[0][0].isupper() else other)


_NEGATIONS = (
    (r"\b(is|are|was|were|must|should|has|have|can|could|may|might|will|would) not\b", r"\1"),
    (r"\bcannot\b", "can"),
    (r"\bcan't\b", "can"),
    (r"\bwon't\b", "will"),
    (r"\bisn't\b", "is"),
    (r"\baren't\b", "are"),
    (r"\b(?:does not|doesn't) ([a-z]+)", lambda m: third_person(m[1])),
    (r"\b(?:do not|don't) ", ""),
    (r"\bno longer\b", "still"),
    (r"\bwithout\b", "with"),
    (r"\bnever\b", "always"),
    (r"\bno\b(?! [a-z]+ than)", "a"),
    (r"\bneither\b", "both"),
    (r"\b(?:is|are) (?:un|im)(available|supported|affected|able|changed|possible)\b", r"is \1"),
)
_POSITIVES = (
    (r"\b(is|are|was|were|could|should|would|will|has been|have been)\b(?! (?:not|no|never))", r"\1 not"),
    (r"\bcan\b(?!not| not|'t)", "cannot"),
    (r"\b(?:must|needs? to|have to|has to)\b(?! not)", "does not have to"),
    (r"\bneed to\b", "do not need to"),
    (r"\bwill\b(?! not)", "will never"),
    (r"\balways\b", "not always"),
    (r"\b(?:is|are) (required|necessary|needed|mandatory)\b", r"is not \1"),
    (r"\bstill\b", "no longer"),
    (r"\bwith\b", "without"),
)
_FINITE = re.compile(r" ([a-z]+s) (?=the |a |an |your |all |[a-z]+s\b)")


def negate(sentence: str, _: Surroundings, chance: random.Random) -> str | None:
    """A negation goes, or comes."""
    tables = (
        [_NEGATIONS, _POSITIVES]
        if any(re.search(pattern, sentence) for pattern, _ in _NEGATIONS) and chance.random() < 0.8
        else [_POSITIVES]
    )
    options = [
        re.sub(pattern, other, sentence, count=1) for pattern, other in tables[0] if re.search(pattern, sentence)
    ]
    verb = _FINITE.search(sentence)
    if tables[0] is _POSITIVES and verb and verb[1][:-1] in BASES:
        options.append(_splice(sentence, verb, f" does not {verb[1][:-1]} "))
    return chance.choice(options) if options else None


def change_number(sentence: str, around: Surroundings, chance: random.Random) -> str | None:
    """A number becomes another one: of the neighbours, of the page, or one near it."""
    own = numbers(sentence)
    if not own:
        return None
    one = chance.choice(own)
    beside = [number for number in numbers(" ".join(around.sentences)) if number not in own]
    away = [number for number in numbers(around.page) if number not in own]
    bare = re.sub(r"[^\d]", "", one.split(".")[0]) or "1"
    near = one.replace(
        bare,
        str(chance.choice((int(bare) * 2, int(bare) + 1, max(int(bare) - 1, 0), int(bare) * 10, int(bare) // 2 + 3))),
        1,
    )
    pool = chance.choice(
        [options for options in (beside, beside, own[:] if len(own) > 1 else [], away, [near]) if options]
    )
    other = chance.choice([number for number in pool if number != one] or [near])
    unit = re.search(r"\s?[A-Za-z%]+$", one)
    other = other if not unit or re.search(r"[A-Za-z%]$", other) else other + unit[0]
    return _changed(sentence, sentence.replace(one, other, 1))


def change_subject(sentence: str, around: Surroundings, chance: random.Random) -> str | None:
    """The subject becomes that of a neighbour."""
    own = subject_of(sentence)
    others = [subject_of(other) for other in around.sentences if other != sentence]
    found = [
        other
        for other in others
        if other
        and other.lower() != own.lower()
        and other.lower() not in ("you", "it", "we", "they", "this", "these", "i")
    ]
    if not own or own.lower() in ("it", "this", "these", "they", "that", "you") or not found:
        return None
    other = chance.choice(found)
    return close(other + sentence[len(own) :])


def change_name(sentence: str, around: Surroundings, chance: random.Random) -> str | None:
    """A name becomes another one of the surroundings."""
    own = names(sentence)
    beside = [name for name in names(" ".join(around.sentences)) if name not in sentence]
    away = [name for name in names(around.page) if name not in sentence]
    pool = beside if beside and (chance.random() < 0.8 or not away) else away
    if not own or not pool:
        return None
    return sentence.replace(chance.choice(own), chance.choice(pool), 1)


def change_phrase(sentence: str, around: Surroundings, chance: random.Random) -> str | None:
    """A noun phrase after "the" or "a" becomes another one of the surroundings."""
    pattern = re.compile(
        r"\b(?:the|a|an|your) ((?:[a-z][\w-]+ ){0,2}[a-z][\w-]+)(?=[,.;]| (?:is|are|can|must|will|to|in|on"
        r"|for|of|from|with|and|or|that|when|if|by|has|have)\b)"
    )
    own = list(pattern.finditer(sentence))
    beside = [found[1] for other in around.sentences if other != sentence for found in pattern.finditer(other)]
    pool = [phrase for phrase in beside if phrase not in sentence and is_noun_phrase(phrase)]
    if not own or not pool:
        return None
    one, other = chance.choice(own), chance.choice(pool)
    return sentence[: one.start(1)] + other + sentence[one.end(1) :]


def swap_roles(sentence: str, _: Surroundings, chance: random.Random) -> str | None:
    """Who does it and what it is done to change places."""
    clause = parse_clause(sentence)
    if clause and clause.subject.lower() not in ("you", "we", "it", "they", "this"):
        turned = Clause(clause.object, clause.modal, clause.verb, clause.subject, clause.rest)
        return active(turned) if chance.random() < 0.5 else passive(turned)
    return None


_PLACES = (
    (
        r"\bfrom (?P<a>[^,.;]{2,40}?) to (?P<b>[^,.;]{2,40}?)(?=[,.;]| (?:in|on|by|when|if|using|for|and)\b)",
        "from {b} to {a}",
    ),
    (r"(?P<a>\b[\w`.-]+(?: [\w`.-]+){0,2}) instead of (?P<b>[\w`.-]+(?: [\w`.-]+){0,2})", "{b} instead of {a}"),
    (r"(?P<a>\b[\w`.-]+(?: [\w`.-]+){0,2}) rather than (?P<b>[\w`.-]+(?: [\w`.-]+){0,2})", "{b} rather than {a}"),
    (r"\breplace (?P<a>[^,.;]{2,40}?) with (?P<b>[^,.;]{2,40}?)(?=[,.;])", "replace {b} with {a}"),
    (r"\bconvert(?P<s>s?) (?P<a>[^,.;]{2,40}?) (?P<w>in)?to (?P<b>[^,.;]{2,40}?)(?=[,.;])", "convert{s} {b} to {a}"),
    (r"(?P<a>\b(?:the|a|an) [\w-]+(?: [\w-]+)?) of (?P<b>(?:the|a|an|your) [\w-]+(?: [\w-]+)?)", "{b} of {a}"),
    (r"^(?P<a>[^,;:.()]{8,80}) (?P<w>before|after) (?P<b>[^,;:.()]{8,80})(?=[.]$)", "{b} {w} {a}"),
)


def swap_places(sentence: str, _: Surroundings, chance: random.Random) -> str | None:
    """The two sides of "from ... to", "instead of", "replace ... with", "before" change places."""
    found = [(re.search(pattern, sentence), form) for pattern, form in _PLACES]
    matched = [(match, form) for match, form in found if match]
    if not matched:
        return None
    match, form = chance.choice(matched)
    parts = {name: uncapitalize(value or "") for name, value in match.groupdict().items()}
    return close(_splice(sentence, match, form.format(**parts)))


def swap_terms(sentence: str, _: Surroundings, chance: random.Random) -> str | None:
    """Two names or identifiers of the sentence change places."""
    terms = list(dict.fromkeys([*code_terms(sentence), *names(sentence), *numbers(sentence)]))
    apart = [(a, b) for a in terms for b in terms if a != b and a not in b and b not in a]
    if not apart or (re.search(r"\b(?:and|or)\b", sentence) and len(terms) == 2 and chance.random() < 0.7):
        return None
    first, second = chance.choice(apart)
    gap = "\x00"
    return sentence.replace(first, gap).replace(second, first).replace(gap, second)


COMPARED = """
more than = less than; at least = at most; up to = at least; no more than = more than; prior to = after; before = after
after = before; over = under; below = above; above = below; less than = more than; fewer than = more than
at most = at least; minimum = maximum; maximum = minimum; first = last; last = first; earlier than = later than
later = earlier; earlier = later; highest = lowest; lowest = highest; most = least; largest = smallest
smallest = largest; equal to = different from; faster = slower; slower = faster; larger = smaller; smaller = larger
higher = lower; lower = higher; longer = shorter; shorter = longer; older = newer; newer = older; greater = smaller
cheaper = more expensive; more expensive = cheaper; stronger = weaker; easier = harder; harder = easier; better = worse
"""
_COMPARED = dict(entry.strip().split(" = ") for entry in COMPARED.strip().replace("\n", ";").split(";"))
_COMPARING = re.compile(r"(?<![\w-])(" + "|".join(sorted(_COMPARED, key=len, reverse=True)) + r")(?![\w-])")


def turn_comparison(sentence: str, _: Surroundings, chance: random.Random) -> str | None:
    """ "More than" becomes "less than", "before" becomes "after", "at least" becomes "at most"."""
    found = list(_COMPARING.finditer(sentence))
    if not found:
        return None
    one = chance.choice(found)
    return _splice(sentence, one, _COMPARED[one[0]])


def change_code(sentence: str, around: Surroundings, chance: random.Random) -> str | None:
    """An identifier, option or literal becomes another one: of the surroundings, or with one part changed."""
    own = code_terms(sentence)
    if not own:
        return None
    one = chance.choice([term for term in own if not term.isupper()] or own)
    pool = [term for term in code_terms(" ".join(around.sentences)) if term not in sentence]
    pool = pool or [term for term in code_terms(around.page) if term not in sentence]
    if pool and chance.random() < 0.7:
        return sentence.replace(one, chance.choice(pool), 1)
    return _changed(sentence, sentence.replace(one, _change_part(one, chance), 1))


def _change_part(term: str, chance: random.Random) -> str:
    parts = re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+|[^A-Za-z0-9]+", term)
    words = [place for place, part in enumerate(parts) if part.isalnum()]
    place = chance.choice(words)
    swaps = {
        "get": "set",
        "set": "get",
        "max": "min",
        "min": "max",
        "add": "remove",
        "enable": "disable",
        "start": "stop",
        "create": "delete",
        "read": "write",
        "true": "false",
        "false": "true",
        "input": "output",
        "id": "name",
        "name": "id",
    }
    other = swaps.get(parts[place].lower()) or chance.choice(
        ("name", "id", "path", "mode", "type", "key", "limit", "user", "list", "file", "status", "count")
    )
    other = other.upper() if parts[place].isupper() else other.capitalize() if parts[place][0].isupper() else other
    if len(words) > 2 and chance.random() < 0.4:
        return "".join(parts[:place] + parts[place + 1 :]).strip("_.")
    return "".join([*parts[:place], other, *parts[place + 1 :]])


_WIDER = (
    (r"\b(?:may|might|could)\b", ("will always", "always", "will")),
    (
        r"\b(?:usually|typically|often|generally|normally|sometimes|frequently|occasionally)\b",
        ("always", "in every case"),
    ),
    (r"\b(?:some|many|most|several|certain|a few)\b", ("all", "all the")),
    (r"\bin (?:some|many|most|certain) cases\b", ("in all cases", "always")),
    (r"\bfor example\b", ("exclusively", "only")),
    (r"\bcan\b(?! not)", ("must", "can only", "always has to")),
    (r"\bone of the\b", ("the only one of the",)),
    (r"\bsuch as\b", ("which are only",)),
    (r"\bshould\b", ("must always",)),
    (r"\bonly (?=in|on|by|for|when|if|with|from|to)\b", ("also in other cases than ", "not only ")),
    (r"\bsupports\b", ("supports only", "always supports")),
    (r"\buse\b", ("only use", "always use")),
    (r"\bat least one\b", ("every",)),
    (r"\bby default\b", ("always", "in every case")),
    (r"\b(?:is|are) recommended\b", ("is mandatory",)),
    (r"\bpartially\b", ("fully",)),
    (r"\balmost all\b", ("all",)),
    (r"\brecommend\b", ("require",)),
    (r"\bup to\b", ("exactly",)),
    (r"\bapproximately\b|\babout (?=\d)", ("exactly ",)),
    (r"\bhelps?\b", ("is the only way to",)),
    (r"\bthe following\b", ("all",)),
)


def widen(sentence: str, _: Surroundings, chance: random.Random) -> str | None:
    """ "May" becomes "always", "some" becomes "all", "only" comes or goes."""

    found = [(match, others) for pattern, others in _WIDER if (match := re.search(pattern, sentence))]
    if not found:
        return None
    match, others = chance.choice(found)
    return close(_splice(sentence, match, chance.choice(others)))


def change_condition(sentence: str, around: Surroundings, chance: random.Random) -> str | None:
    """A condition is turned, dropped in so many words, or becomes that of a neighbour; or one is added."""
    parts = split_condition(sentence)
    others = [found for other in around.sentences if other != sentence and (found := split_condition(other))]
    if not parts:
        if not others or len(sentence.split()) > 22:
            return None
        word, condition, _ = chance.choice(others)
        only = "only " if word in ("if", "when") and chance.random() < 0.6 else ""
        return close(f"{sentence.rstrip('.')} {only}{word} {uncapitalize(condition)}")
    word, condition, main = parts
    condition = uncapitalize(condition)
    if word in ("because", "since", "although", "while", "where"):
        return _other_condition(main, word, others, chance)
    forms = [
        f"{main} whether or not {condition}",
        f"{main}, even if it is not the case that {condition}",
        f"{main} regardless of whether {condition}",
        f"{main} in any case",
    ]
    if word in ("if", "when", "whenever", "once", "as long as", "only if", "only when"):
        forms += [
            f"{main} unless {condition}",
            f"unless {condition}, {uncapitalize(main)}",
            f"if {uncapitalize(main)}, {condition}",
        ]
    if word in ("unless", "until"):
        forms += [f"{main} if {condition}", f"{main} only if {condition}", f"if {condition}, {uncapitalize(main)}"]
    if word in ("before", "after"):
        turned = "after" if word == "before" else "before"
        forms = [f"{main} {turned} {condition}", f"{turned} {condition}, {uncapitalize(main)}"]
    other = _other_condition(main, word, others, chance)
    return other if other and chance.random() < 0.35 else close(chance.choice(forms))


def _other_condition(main: str, word: str, others: Sequence[tuple[str, str, str]], chance: random.Random) -> str | None:
    if not others:
        return None
    _, condition, _ = chance.choice(others)
    return close(f"{main} {word} {uncapitalize(condition)}")


_TAILS = re.compile(
    r"(?:, (?:which|so|and) (?P<clause>[^,;:.()]{15,90})|(?P<place> (?:in|on|for|with|by|through|from"
    r"|after|before|within|every) (?:the |a |an |your |all )?[^,;:.()]{5,50}))[.]$"
)


def add_claim(sentence: str, around: Surroundings, chance: random.Random) -> str | None:
    """Something is added that is said elsewhere on the page, or nowhere."""
    away = [
        text
        for text in re.split(r"(?<=[.!?])\s+", around.page)
        if text not in around.sentences and 5 < len(text.split()) < 30
    ]
    if not away or len(sentence.split()) > 28:
        return None
    other = chance.choice(away)
    tail, deed = _TAILS.search(other), parse_clause(other)
    forms = []
    if tail and tail["place"]:
        forms += [close(sentence.rstrip(".") + tail["place"])] * 2
    if deed:
        verb = deed.verb if is_plural(subject_of(sentence)) else third_person(deed.verb)
        forms.append(close(f"{sentence.rstrip('.')} and {verb} {uncapitalize(deed.object)}"))
    if other.rstrip().endswith(".") and re.match(r"(?:The|A|An|You|Your|All|Each) ", other) and len(other.split()) < 16:
        forms.append(close(f"{sentence.rstrip('.')}, {chance.choice(('and', 'so', 'because'))} {uncapitalize(other)}"))
    return chance.choice(forms) if forms else None


def stitch(sentence: str, around: Surroundings, chance: random.Random) -> str | None:
    """Half of the sentence goes together with half of a neighbour, or one is given as the reason of the other."""
    others = [other for other in around.sentences if other != sentence and 4 < len(other.split()) < 20]
    if not others or len(sentence.split()) > 22:
        return None
    other = chance.choice(others)
    mine, theirs = split_condition(sentence), split_condition(other)
    forms = []
    if not re.match(r"(?:To|Use|If|When|Select|Because) ", sentence) and not re.match(
        r"(?:To|Use|If|When|Select|Because|This|It|They|These) ", other
    ):
        forms = [
            f"because {uncapitalize(other.rstrip('.'))}, {uncapitalize(sentence)}",
            f"{sentence.rstrip('.')}, because {uncapitalize(other)}",
            f"{sentence.rstrip('.')}, so {uncapitalize(other)}",
        ]
    if mine and theirs:
        forms += [
            f"{mine[0]} {uncapitalize(mine[1])}, {uncapitalize(theirs[2])}",
            f"{mine[2]} {theirs[0]} {uncapitalize(theirs[1])}",
        ] * 2
    subject, their_subject = subject_of(sentence), subject_of(other)
    if subject and their_subject and subject.lower() != their_subject.lower():
        forms += [subject + other[len(their_subject) :]] * 2
    return close(chance.choice(forms)) if forms else None


@dataclass(frozen=True, slots=True)
class Kind:
    """A way to change a sentence. `turns`: the unchanged sentence does not follow from the changed one either."""

    name: str
    change: Change
    turns: bool
    weight: float


KINDS = (
    Kind("subject", change_subject, turns=True, weight=4.0),
    Kind("subject", change_phrase, turns=True, weight=0.8),
    Kind("subject", change_name, turns=True, weight=0.8),
    Kind("role", swap_roles, turns=True, weight=10.0),
    Kind("role", swap_places, turns=True, weight=5.0),
    Kind("role", swap_terms, turns=True, weight=1.5),
    Kind("number", change_number, turns=True, weight=8.0),
    Kind("negation", negate, turns=True, weight=0.6),
    Kind("antonym", turn_word, turns=True, weight=0.7),
    Kind("comparison", turn_comparison, turns=True, weight=4.0),
    Kind("code", change_code, turns=True, weight=4.0),
    Kind("scope", widen, turns=False, weight=1.2),
    Kind("condition", change_condition, turns=False, weight=4.0),
    Kind("addition", add_claim, turns=False, weight=0.6),
    Kind("stitch", stitch, turns=False, weight=0.8),
)


def change(sentence: str, around: Surroundings, chance: random.Random) -> tuple[Kind, str] | None:
    """The sentence changed in one way that fits it, and which way that was."""
    order = sorted(KINDS, key=lambda kind: -(chance.random() ** (1 / kind.weight)))
    for kind in order:
        made = kind.change(sentence, around, chance)
        if made and _plain(made) != _plain(sentence) and 3 < len(made.split()) < 48:
            return kind, made
    return None


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", " ", text.lower()).strip()


def _splice(sentence: str, found: re.Match[str], other: str) -> str:
    return sentence[: found.start()] + other + sentence[found.end() :]


def _changed(before: str, after: str) -> str | None:
    return after if after != before else None
