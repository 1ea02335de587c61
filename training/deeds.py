"""Made-up pages about what things do, in the styles in which documentation says it, with true and false claims.

Documentation addresses its reader ("Use --all to list every file"), leaves the subject to a heading or to the name of
an item ("--all: List every file"), and gives several things in one paragraph. A claim names the subject and says the
same in another voice. What is done comes from real pages. A true and a false claim are written in the same forms: they
differ in which thing, which condition, which order or which degree they name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bythebook.evals.swaps import capitalize, close, split_condition
from training.facts import ACTORS, CARGO, Fact, Vocabulary, write
from training.grammar import gerund, is_plural, parse_active, participle, third_person

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Sequence


@dataclass(frozen=True, slots=True)
class Deed:
    """What something does: a verb in its base form, an object, and the rest."""

    verb: str
    object: str
    rest: str

    @property
    def do(self) -> str:
        return f"{self.verb} {self.object} {self.rest}".strip()

    @property
    def does(self) -> str:
        return f"{third_person(self.verb)} {self.object} {self.rest}".strip()

    @property
    def doing(self) -> str:
        return f"{gerund(self.verb)} {self.object} {self.rest}".strip()

    @property
    def done(self) -> str:
        """The passive, without who does it."""
        return f"{self.object} {self.be} {participle(self.verb)} {self.rest}".strip()

    @property
    def undone(self) -> str:
        return f"{self.object} {self.be} not {participle(self.verb)} {self.rest}".strip()

    @property
    def to_be_done(self) -> str:
        """The passive with "can"."""
        return f"{self.object} can be {participle(self.verb)} {self.rest}".strip()

    @property
    def be(self) -> str:
        return "are" if is_plural(self.object) else "is"

    def done_by(self, actor: str) -> str:
        return f"{self.object} {self.be} {participle(self.verb)} by {actor} {self.rest}".strip()

    @property
    def title(self) -> str:
        """The imperative as it begins the description of an item."""
        return capitalize(self.do)


@dataclass(frozen=True, slots=True)
class Material:
    """What the pages are made of."""

    words: Vocabulary
    deeds: Sequence[Deed]
    conditions: Sequence[str]
    """Clauses that follow "if"."""

    def things(self, count: int, chance: random.Random) -> list[str]:
        """So many different things that do something: options, functions, commands, parts, products."""
        kind = chance.choice(("option", "identifier", "identifier", "command", "name", "actor"))
        if kind == "option":
            return [f"--{word}" for word in chance.sample(_OPTIONS, count)]
        if kind == "command":
            tool = chance.choice(self.words.names).split()[0].lower()
            return [f"{tool} {word}" for word in chance.sample(_COMMANDS, count)]
        pool = {"identifier": self.words.identifiers, "name": self.words.names, "actor": ACTORS}[kind]
        return chance.sample(list(pool), count)


_OPTIONS = """
all undo force quiet verbose dry-run output input watch reload strict cache no-cache debug config limit offset recursive
follow tail since until format color no-color json yes token user group label detach rm build pull push keep clean check
diff fix select ignore exclude include extend target host port workers timeout retries log-level show-logs show-path
parallel editable upgrade pre user-agent headers proxy cert key ca-file stdin
""".split()
_COMMANDS = """
create build run publish update upgrade dev open package new init add remove install lock sync export import start stop
status list show check test lint deploy login logout serve watch clean convert migrate rollback inspect logs attach
""".split()


def collect_material(words: Vocabulary, texts: Iterable[str]) -> Material:
    """The purposes of the vocabulary as deeds, and the conditions that sentences of the texts name."""
    deeds = []
    for purpose in words.purposes:
        clause = parse_active(f"They {purpose}.")
        if clause and not re.search(r"\b(?:you|it|them|this|these|that|not)\b", purpose) and len(clause.object) > 4:
            deeds.append(Deed(clause.verb, clause.object, clause.rest))
    conditions: dict[str, None] = {}
    for text in texts:
        for sentence in re.split(r"(?<=[.!?])\s+", text):
            found = split_condition(sentence)
            if found and found[0] in ("if", "when") and _CONDITION.match(found[1]) and len(found[1].split()) < 12:
                conditions.setdefault(found[1])
    return Material(words, deeds, list(conditions))


_CONDITION = re.compile(
    r"^(?:a|an|the|no|your|one|two|any|all|there|you [a-z]+ ) ?(?!.*\b(?:it|they|them|this|these|following)\b)[^\n]+$"
)


def make_deed_fact(material: Material, chance: random.Random) -> Fact:
    """A page about what things do, with a claim that it supports and one that it does not."""
    (maker,) = chance.choices(list(MAKERS), list(MAKERS.values()))
    return maker(material, chance)


def _choose(forms: Sequence[str], chance: random.Random, **words: object) -> str:
    return chance.choice(forms).format(**words)


def _product(material: Material, chance: random.Random) -> str:
    return chance.choice((*_PRODUCTS, chance.choice(material.words.names)))


_PRODUCTS = ("the tool", "the library", "the program", "it", "the framework", "the command", "the server", "the system")
_NOUNS = ("option", "function", "setting", "parameter", "command", "method", "flag", "class", "argument", "hook")

_PAIR_QUOTES = (
    "To {p.do}, use {a}. To {q.do}, use {b}",
    "By adding {a} you can {p.do}. With {b} you can {q.do}",
    "Use {a} to {p.do} or {b} to {q.do}",
    "- {a}: {p.title}.\n- {b}: {q.title}.",
    "{a} - {p.title}\n{b} - {q.title}",
    "{a}: {p.title}.\n{b}: {q.title}.",
    "* `{a}`: {p.doing}\n* `{b}`: {q.doing}",
    "| {a} | {p.title} |\n| {b} | {q.title} |",
    "| {n} | Description |\n| {a} | {p.does} |\n| {b} | {q.does} |",
    "Set {a} to {p.do}. Set {b} if you want to {q.do}",
    "You {p.do} by passing {a} and {q.do} by passing {b}",
    "{a} {p.does}. {b} {q.does}",
    "First {a} {p.does}. Then {b} {q.does}",
    "If you want to {p.do}, pass {a}. Pass {b} to {q.do}",
    "Pass {a} and {p.to_be_done}. Pass {b} instead, and {q.to_be_done}",
    "{a} is what you need to {p.do}, while {b} lets you {q.do}",
    "Your code can call {a}, which {p.does}, or {b}, which {q.does}",
)
_LONE_QUOTES = (
    "To {p.do}, use {a}.",
    "By adding {a} you can {p.do}.",
    "{a}: {p.title}.",
    "{a} - {p.title}.",
    "Set {a} to {p.do}.",
    "You {p.do} by passing {a}.",
    "Use {a} if you have to {p.do}.",
)
_CLAIMS = (
    "{a} {p.does}",
    "{a} {p.does}",
    "adding {a} {p.does}",
    "{by}",
    "{by}, which {P} provides",
    "{P} {p.does} when {a} is used",
    "with {a}, {p.done}",
    "{a} makes {P} {p.do}",
    "it is {a} that {p.does}",
    "{p.doing} is what {a} is for",
    "by means of {a}, {P} {p.does}",
    "{a} is used to {p.do}",
    "if {a} is used, {p.done}",
    "{P} has {a} for {p.doing}",
    "{P} offers {a}, which {p.does}",
    "{p.done} if you use {a}",
    "the {n} {a} {p.does}",
    "`{a}` {p.does}",
    "the `{a}` {n} {p.does}",
)


def _say(a: str, deed: Deed, material: Material, chance: random.Random) -> str:
    """A claim that `a` does it."""
    product = _product(material, chance)
    noun = chance.choice(_NOUNS)
    text = _choose(_CLAIMS, chance, a=a, p=deed, P=product, n=noun, by=deed.done_by(a))
    return write(text.replace("the the", "the").replace("`the ", "`"))


def _item(material: Material, chance: random.Random) -> Fact:
    """Two or three items, each with what it does."""
    a, b, c = material.things(3, chance)
    p, q, r = chance.sample(material.deeds, 3)
    noun = chance.choice(_NOUNS)
    turned = chance.random() < 0.5
    first, second = ((b, q), (a, p)) if turned else ((a, p), (b, q))
    quote = _choose(_PAIR_QUOTES, chance, a=first[0], p=first[1], b=second[0], q=second[1], n=noun)
    if chance.random() < 0.35:
        quote += ("\n" if "\n" in quote else ". ") + _choose(_LONE_QUOTES, chance, a=c, p=r)
    true, false = _say(a, p, material, chance), _say(b, p, material, chance)
    if chance.random() < 0.2:
        word = chance.choice((" and ", ", whereas ", ", and ", "; "))
        parts = [one.rstrip(".") for one in (true, _say(b, q, material, chance), false, _say(a, q, material, chance))]
        true, false = (f"{x}{word}{y}." for x, y in (parts[:2], parts[2:]))
    return Fact("item", write(quote), true, false)


_IMPERATIVES = (
    "{p.title} and {q.do}",
    "You can {p.do}. You can also {q.do}",
    "You {p.do} here. Then {q.do}",
    "{p.title}. {q.title}",
    "Used to {p.do} and to {q.do}",
    "Your application can {p.do} and {q.do}",
    "This way you {p.do} and also {q.do}",
)
_DECLARATIVES = (
    "{P} {p.does} and {q.does}",
    "{P} {q.does} and {p.does}",
    "{P} {p.does}",
    "{P} {q.does}",
    "{done}",
    "{p.done}, and {q.done}",
    "{p.done} and {P} {q.does}",
    "what {P} does is to {p.do} and to {q.do}",
)


def _subject(material: Material, chance: random.Random) -> Fact:
    """Instructions without a subject. In the false claim the verbs have changed their objects."""
    p, q, r = chance.sample(material.deeds, 3)
    product = _product(material, chance)
    exchanged = (Deed(p.verb, q.object, p.rest), Deed(q.verb, p.object, q.rest))
    renamed = (Deed(r.verb, p.object, p.rest), Deed(r.verb, q.object, q.rest))
    right, wrong = chance.sample(((p, q), chance.choice((exchanged, exchanged, renamed, (r, r)))), 2)
    quote = _choose(_IMPERATIVES, chance, p=right[0], q=right[1])
    true, false = (
        write(_choose(_DECLARATIVES, chance, P=product, p=one, q=other, done=one.done_by(product)))
        for one, other in (right, wrong)
    )
    return Fact("imperative", write(quote), true, false, heading=product if chance.random() < 0.4 else "")


def _condition(material: Material, chance: random.Random) -> Fact:
    """Instructions for two cases, the claim with the condition of the other or with the opposite one."""
    c, e = chance.sample(material.conditions, 2)
    p, q = chance.sample(material.deeds, 2)
    product = _product(material, chance)
    word, opposite = chance.sample(("if", "unless"), 2)
    quote = _choose(
        (
            "{w} {c}, {p.do}. If {e}, {q.do}",
            "{p.title} {w} {c}. {q.title} if {e}",
            "If {e}, {q.do}. {w} {c}, {p.do}",
            "{w} {c}, {p.do}. When {e}, {q.do}",
        ),
        chance,
        w=word,
        c=c,
        e=e,
        p=p,
        q=q,
    )
    forms = ("{w} {c}, {P} {p.does}", "{P} {p.does} {w} {c}", "{w} {c}, {p.done}", "{by} {w} {c}")
    wrong = (opposite, c) if chance.random() < 0.5 else ("if", e)
    true, false = (
        write(_choose(forms, chance, w=one, c=case, P=product, p=p, by=p.done_by(product)))
        for one, case in ((word, c), wrong)
    )
    return Fact("condition", " ".join(map(close, quote.split(". "))), true, false)


def _order(material: Material, chance: random.Random) -> Fact:
    """What comes first."""
    p, q = chance.sample(material.deeds, 2)
    product = _product(material, chance)
    a, b = material.things(2, chance)
    deeds = (
        (
            "First {p.do}, then {q.do}",
            "{p.title} before {q.doing}",
            "{p.title}. After that, {q.do}",
            "1. {p.title}\n2. {q.title}",
            "After {p.doing}, {q.do}",
            "{p.doing} comes before {q.doing}",
        ),
        (
            "{P} {p.does} before it {q.does}",
            "{q.done} after {p.done}",
            "{q.doing} follows {p.doing}",
            "{p.done} first, and only then {q.done}",
            "before {q.doing}, {P} {p.does}",
            "once {p.done}, {q.done}",
        ),
    )
    things = (
        (
            "{a} is called before {b}",
            "{b} is called after {a}",
            "call {a}, and {b} when it is done",
            "{a} comes first, {b} second",
            "the order is {a}, then {b}",
            "{b} is only called once {a} has returned",
        ),
        (
            "{a} runs before {b}",
            "{b} runs after {a}",
            "{P} calls {a} before {b}",
            "first {a} is called and then {b}",
            "{b} comes later than {a}",
            "when {b} is called, {a} has been called already",
        ),
    )
    quotes, claims = chance.choice((deeds, things))
    right = {"a": a, "b": b, "p": p, "q": q, "P": product}
    wrong = {"a": b, "b": a, "p": q, "q": p, "P": product}
    quote = _choose(quotes, chance, **right)
    return Fact(
        "order",
        write(quote),
        write(_choose(claims, chance, **right)),
        write(_choose(claims, chance, **wrong)),
    )


_LATTER_QUOTES = (
    "There are two {n}s, {a} and {b}. The former {p.does}, the latter {q.does}",
    "{a} and {b} are both possible. While the former {p.does}, the latter {q.does}",
    "{a} and {b} {p.do} and {q.do}, respectively",
    "{a} {p.does} but does not {q.do}. {b} {q.does} but does not {p.do}",
    "{a} can {p.do}, unlike {b}, which can only {q.do}",
    "Choose between {a} and {b}: the first {p.does}, the second {q.does}",
    "Unlike {b}, which {q.does}, this one, {a}, {p.does}",
    "You can {p.do} with {a} but not with {b}, which is there to {q.do}",
)
_LATTER_CLAIMS = (
    "{a} {p.does}",
    "{b} {q.does}",
    "{a} {p.does}, {b} {q.does}",
    "{b} {q.does}, whereas {a} {p.does}",
    "it is {b} that {q.does}",
    "of the two, {a} {p.does}",
    "use {a} to {p.do}",
    "{b} is there to {q.do}, and {a} to {p.do}",
)


def _latter(material: Material, chance: random.Random) -> Fact:
    """Two things that are referred to by their order."""
    a, b = material.things(2, chance)
    p, q = chance.sample(material.deeds, 2)
    noun = chance.choice(_NOUNS)
    quote = _choose(_LATTER_QUOTES, chance, a=a, b=b, p=p, q=q, n=noun)
    true = _choose(_LATTER_CLAIMS, chance, a=a, b=b, p=p, q=q)
    false = _choose(_LATTER_CLAIMS, chance, a=b, b=a, p=p, q=q)
    return Fact("latter", write(quote), write(true), write(false))


_DOES = (
    ("{a} {p.does}", "Use {a} to {p.do}", "{a}: {p.title}.", "With {a}, {p.done}", "Add {a} and {p.done}"),
    (
        "{a} does not {p.do}",
        "Use {a} to avoid {p.doing}",
        "{a}: Do not {p.do}.",
        "With {a}, {p.undone}",
        "Add {a} to prevent {P} from {p.doing}",
        "{a} disables {p.doing}",
    ),
)
_DOES_CLAIMS = (
    ("{a} {p.does}", "{a} makes {P} {p.do}", "{p.done} if {a} is used", "with {a}, {P} {p.does}"),
    (
        "{a} does not {p.do}",
        "{a} keeps {P} from {p.doing}",
        "{p.undone} if {a} is used",
        "with {a}, {P} does not {p.do}",
        "{a} stops {P} from {p.doing}",
    ),
)


def _negation(material: Material, chance: random.Random) -> Fact:
    """Something that is done, or that is not done."""
    a, b = material.things(2, chance)
    p, q = chance.sample(material.deeds, 2)
    product = _product(material, chance)
    side = chance.randrange(2)
    quote = write(_choose(_DOES[side], chance, a=a, p=p, P=product))
    if chance.random() < 0.6:
        other = write(_choose(_DOES[chance.randrange(2)], chance, a=b, p=q, P=product))
        quote = " ".join(chance.sample([quote, other], 2))
    true, false = (write(_choose(_DOES_CLAIMS[one], chance, a=a, p=p, P=product)) for one in (side, 1 - side))
    return Fact("negation", quote, true, false)


_HEADING_QUOTES = (
    "It {p.does}. {b} {q.does}",
    "This {n} {p.does}. To {q.do}, use {b}",
    "Use this {n} to {p.do}, and {b} to {q.do}",
    "{p.title}. See {b} to {q.do}",
    "Called to {p.do}. {b} is called to {q.do}",
    "You can {p.do} with it. {b} is for {q.doing}",
    "Unlike {b}, which {q.does}, it {p.does}",
    "{b} {q.does}. This one {p.does}",
)


def _heading(material: Material, chance: random.Random) -> Fact:
    """What "it" does is what the heading names, and not what the other sentence is about."""
    a, b = material.things(2, chance)
    p, q = chance.sample(material.deeds, 2)
    quote = _choose(_HEADING_QUOTES, chance, b=b, p=p, q=q, n=chance.choice(_NOUNS))
    true = chance.choice(((a, p), (a, p), (b, q)))
    false = chance.choice(((b, p), (b, p), (a, q)))
    heading = a.removeprefix("the ").capitalize() if a.startswith("the ") else a
    return Fact(
        "heading",
        write(quote),
        _say(*true, material, chance),
        _say(*false, material, chance),
        heading=heading,
    )


def _scope(material: Material, chance: random.Random) -> Fact:
    """What holds for one thing alone, or for both."""
    deed = chance.choice(material.deeds)
    x, y = chance.sample([f"{one}s" for one in ACTORS if not one.endswith(("y", "s", "queue", "cache"))], 2)
    if chance.random() < 0.3:
        x, y = chance.sample(list(material.words.names), 2)
    product = _product(material, chance)
    one_quotes = (
        "{p.title} only for {x}, not for {y}",
        "{p.done} for {x}. This does not apply to {y}",
        "Note that {p.done} for {x} alone; {y} are not affected",
        "{P} {p.does} for {x} but not for {y}",
        "You can only {p.do} for {x}",
        "With {x} you can {p.do}, with {y} you cannot",
    )
    both_quotes = (
        "{p.title} for {x} and for {y}",
        "{p.done} for {x}. This applies to {y} as well",
        "{P} {p.does} for {x}, and for {y} too",
        "You can {p.do} for {x} and {y} alike",
        "{p.done}, no matter whether for {x} or {y}",
    )
    one_claims = (
        "{p.done} for {x} only",
        "{P} {p.does} for {x}, but not for {y}",
        "only for {x} {P} {p.does}",
        "{p.undone} for {y}",
    )
    both_claims = (
        "{p.done} for {x} and all {y}",
        "{P} {p.does} for both {x} and {y}",
        "for {y} too, {p.done}",
        "{P} {p.does} for {y} as well as for {x}",
    )
    words = {"p": deed, "x": x, "y": y, "P": product}
    quotes, claims, others = chance.choice(
        ((one_quotes, one_claims, both_claims), (both_quotes, both_claims, one_claims))
    )
    quote, true, false = (write(_choose(forms, chance, **words)) for forms in (quotes, claims, others))
    return Fact("scope", quote, true, false)


_TOUCHES = """
writes to, written to; reads, read; creates, created; validates, validated; opens, opened; closes, closed
specifies, specified; configures, configured; returns, returned; receives, received; stores, stored; parses, parsed
signs, signed; encrypts, encrypted; deletes, deleted; defines, defined; requests, requested; caches, cached
registers, registered; loads, loaded; monitors, monitored; provides, provided; generates, generated
"""
_VERBS = [pair.strip().split(", ") for pair in _TOUCHES.strip().replace("\n", "; ").split(";") if pair.strip()]
_OBJECTS = [
    *"stream file socket session token request response connection object certificate template key path table".split(),
    *(one.rstrip("s") for one in CARGO),
]
_RELATIVE_QUOTES = (
    "{a} {v} the {o} that {b} {w}",
    "the {o} that {b} {w} is {vd} by {a}",
    "{b} {w} the {o}, which {a} then {v}",
    "the {o} is {wd} by {b} and {vd} by {a}",
    "the {o} {wd} by {b} is the one that {a} {v}",
    "a {o} that {a} {v} has to be {wd} by {b}",
    "{a} {v} a {o}. It is {b} that {w} this {o}",
)


def _relative(material: Material, chance: random.Random) -> Fact:
    """Two that do different things with one object."""
    a, b = material.things(2, chance)
    (v, vd), (w, wd) = chance.sample(_VERBS, 2)
    thing = chance.choice(_OBJECTS)
    quote = _choose(_RELATIVE_QUOTES, chance, a=a, b=b, v=v, vd=vd, w=w, wd=wd, o=thing)
    claims = (*_RELATIVE_QUOTES, "{a} {v} the {o}", "the {o} is {wd} by {b}", "{b} {w} the {o}")
    true = _choose(claims, chance, a=a, b=b, v=v, vd=vd, w=w, wd=wd, o=thing)
    false = _choose(claims, chance, a=b, b=a, v=v, vd=vd, w=w, wd=wd, o=thing)
    return Fact("relative", write(quote), write(true), write(false))


@dataclass(frozen=True, slots=True)
class Scale:
    """A property that things have more or less of: its comparatives, superlatives, and how a sentence says them."""

    more: str
    less: str
    most: str
    least: str
    verb: str


_SCALES = (
    Scale("higher accuracy", "lower accuracy", "highest accuracy", "lowest accuracy", "has"),
    Scale("better accuracy", "worse accuracy", "best accuracy", "worst accuracy", "has"),
    Scale("faster", "slower", "fastest", "slowest", "is"),
    Scale("more expensive", "cheaper", "most expensive", "cheapest", "is"),
    Scale("larger", "smaller", "largest", "smallest", "is"),
    Scale("higher quality", "lower quality", "highest quality", "lowest quality", "has"),
    Scale("lower latency", "higher latency", "lowest latency", "highest latency", "has"),
    Scale("more memory", "less memory", "most memory", "least memory", "needs"),
    Scale("stricter", "more lenient", "strictest", "most lenient", "is"),
    Scale("more detail", "less detail", "most detail", "least detail", "gives"),
    Scale("easier to use", "harder to use", "easiest to use", "hardest to use", "is"),
    Scale("better compression", "worse compression", "best compression", "worst compression", "has"),
)
_SIZES = """
tiny nano small base medium large huge basic standard pro premium turbo lite full fast slow balanced mini ultra draft
""".split()


def _degree(material: Material, chance: random.Random) -> Fact:
    """Three items in ascending order, each described in a few words that compare it with the one before."""
    names = chance.sample(_SIZES, 3) if chance.random() < 0.6 else material.things(3, chance)
    up, down = chance.sample(_SCALES, 2)
    first, last = chance.sample(material.deeds, 2)
    turned = chance.random() < 0.5
    other = (down.most, down.less, down.least) if turned else (down.least, down.more, down.most)
    described = [
        (up.least, other[0], f"for {first.doing}"),
        (up.more, other[1], f"a good start for {chance.choice(material.deeds).doing}"),
        (up.most, other[2], f"best for {last.doing}"),
    ]
    shows = chance.random() < 0.4
    lines = [
        (name, capitalize(", ".join((*chance.sample(one[:2], 2), *((one[2],) if shows else ())))))
        for name, one in zip(names, described, strict=True)
    ]
    style = chance.choice(("- {0}: {1}", "* **{0}** - {1}", "| {0} | {1} |", "{0}: {1}.", "- `{0}` ({1})"))
    quote = "\n".join(style.format(*line) for line in lines)
    noun = chance.choice(("model", "plan", "mode", "option", "level", ""))
    low, high = chance.choice(((0, 1), (1, 2), (0, 2)))
    x, y = (f"the {names[place]} {noun}" if noun else names[place] for place in (low, high))
    second = (down.less, down.more) if turned else (down.more, down.less)
    word = "but" if chance.random() < 0.5 else "and"
    most, least = (f"the {names[place]} {noun}" if noun else names[place] for place in (2, 0))

    def compare(lesser: str, greater: str, bottom: str, top: str) -> str:
        return chance.choice(
            (
                f"{greater} {up.verb} {up.more} than {lesser}",
                f"{lesser} {up.verb} {up.less} than {greater}",
                f"{greater} {up.verb} {up.more} {word} {down.verb} {second[0]} than {lesser}",
                f"compared with {greater}, {lesser} {up.verb} {up.less} {word} {down.verb} {second[1]}",
                f"{top} {up.verb} the {up.most}",
                f"{bottom} {up.verb} the {up.least}",
                f"{greater} {up.verb} {up.more} {word} {down.verb} {second[0]} than {lesser}",
            )
        )

    true, false = compare(x, y, least, most), compare(y, x, most, least)
    return Fact("degree", quote, close(true), close(false))


_TWO_WAYS = (
    "Use {a} for {x} and {b} for {y}",
    "For {x} there is {a}; its counterpart for {y} is {b}",
    "{a} and {b} are meant for {x} and {y}, respectively",
    "| | {x} | {y} |\n| class | {a} | {b} |",
    "If you work with {x}, import {a}. If you work with {y}, import {b} instead",
    "- {a} ({x})\n- {b} ({y})",
)
_TWO_CLAIMS = (
    "{a} is for {x}",
    "for {y}, {b} is used",
    "{x} take {a}, {y} take {b}",
    "{b} goes with {y} and {a} with {x}",
    "use {b} with {y}",
    "the counterpart of {a} for {y} is {b}",
)
_WAYS = """
synchronous code, asynchronous code; reading, writing; requests, responses; clients, servers; training, inference
development, production; single files, whole folders; users, administrators; Linux, Windows; classes, functions
incoming messages, outgoing messages; text, binary data; small models, large models; threads, processes
sync hosts, async hosts; input, output; unit tests, integration tests; HTTP, WebSockets; strings, bytes
"""
_WAY_PAIRS = [pair.strip().split(", ") for pair in _WAYS.strip().replace("\n", "; ").split(";")]


def _relation_pair(material: Material, chance: random.Random) -> Fact:
    """Two things for two purposes."""
    a, b = material.things(2, chance)
    x, y = chance.sample(chance.choice(_WAY_PAIRS), 2)
    quote = _choose(_TWO_WAYS, chance, a=a, b=b, x=x, y=y)
    true, false = (_choose(_TWO_CLAIMS, chance, a=one, b=other, x=x, y=y) for one, other in ((a, b), (b, a)))
    return Fact("pair", write(quote), write(true), write(false))


MAKERS = {
    _item: 3,
    _subject: 2,
    _condition: 1,
    _order: 1,
    _latter: 1,
    _negation: 1,
    _heading: 1,
    _scope: 1,
    _relative: 1,
    _degree: 2,
    _relation_pair: 1,
}
"""What makes a page, and how often."""
