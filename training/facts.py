"""Made-up facts about named things, in the forms in which documentation states them, with true and false claims.

Sentences of real pages seldom say which of two things has a property in a way that a rule can turn around. Here the
facts are drawn first and written twice, in different words: as a table, a list, code or prose, and as a claim.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bythebook.evals.swaps import capitalize, close

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping, Sequence

ACTORS = [
    f"the {actor}"
    for actor in (
        "scheduler|proxy|client|server|worker|broker|gateway|controller|agent|compiler|loader|parser|renderer|cache|queue"
        "|database|operator|dispatcher|registry|resolver|planner|monitor|runtime|kernel|driver|sensor|host|guest|adapter"
        "|parent process|child process|load balancer|API server|web server|build tool|package manager|administrator"
        "|owner|reviewer|publisher|subscriber|producer|consumer|caller|callee|wrapper|middleware|router|view|template|model"
        "|handler|decorator|iterator|event loop|main thread|garbage collector|frontend|backend|primary node|replica"
        "|coordinator|executor|validator|tokenizer|plugin|extension|service|daemon"
    ).split("|")
]
CARGO = "messages requests events records responses metrics packets files jobs updates commands rows samples".split()
RELATIONS = """
{A} sends {X} to {B} = {B} receives {X} from {A} = {X} are sent to {B} by {A} = {B} gets its {X} from {A}
    = it is {A} that sends {B} the {X} = the {X} that {B} receives come from {A}
{A} calls {B} = {B} is called by {A} = {B} is what {A} calls = the call to {B} comes from {A} = {A} invokes {B}
{A} depends on {B} = {B} is needed by {A} = {A} cannot work without {B} = {B} has to be there for {A} to work
    = {A} relies on {B}
{A} runs before {B} = {B} runs after {A} = {A} runs first and {B} second = {B} only runs once {A} has run
    = first comes {A}, then {B}
{A} starts after {B} = {B} starts before {A} = {A} is started later than {B} = {B} has been started when {A} starts
{A} overrides {B} = {B} is overridden by {A} = {A} takes precedence over {B} = {B} gives way to {A}
    = where both are present, {A} wins over {B}
{A} is used over {B} = {A} has a higher priority than {B} = {B} has a lower priority than {A}
    = {B} is only used where {A} is missing
{A} contains {B} = {B} is part of {A} = {B} is found inside {A} = {A} includes {B} = inside {A} there is {B}
{A} inherits from {B} = {B} is the base of {A} = {B} is the parent of {A} = {A} extends {B} = {A} is derived from {B}
{A} replaces {B} = {B} is replaced by {A} = {A} is the successor of {B} = {A} is to be used instead of {B}
    = in place of {B} there is now {A}
{A} creates {B} = {B} is created by {A} = {A} is what creates {B} = the creation of {B} is up to {A}
{A} manages {B} = {B} is managed by {A} = the management of {B} falls to {A} = {A} is in charge of {B}
    = {B} is under the control of {A}
{A} monitors {B} = {B} is monitored by {A} = monitoring {B} is the task of {A} = {B} is watched by {A}
{A} is hosted on {B} = {B} hosts {A} = {A} runs on {B} = {B} is the host of {A}
{A} returns {B} = {B} is returned by {A} = calling {A} gives {B} = what {A} returns is {B}
{A} takes {B} as its argument = {B} is passed to {A} = {B} is what {A} is given = {A} is called with {B}
{A} reads {X} from {B} = {B} is where {A} reads {X} from = the {X} that {A} reads come from {B}
{A} writes {X} to {B} = {X} are written to {B} by {A} = {B} is what {A} writes {X} to = the {X} of {A} end up in {B}
{A} waits for {B} = {B} is waited for by {A} = {A} does not continue until {B} is done = {B} holds up {A}
{A} wraps {B} = {B} is wrapped by {A} = around {B} there is {A} = {A} is a wrapper around {B}
{A} is faster than {B} = {B} is slower than {A} = {A} takes less time than {B} = {B} takes longer than {A}
    = compared with {A}, {B} is slow
{A} is larger than {B} = {B} is smaller than {A} = {A} exceeds {B} in size = compared with {B}, {A} is large
{A} is older than {B} = {B} is newer than {A} = {B} came after {A} = {A} came before {B}
{A} needs more memory than {B} = {B} needs less memory than {A} = {B} makes do with less memory than {A}
{A} is more accurate than {B} = {B} is less accurate than {A} = the accuracy of {A} is higher than that of {B}
    = {B} has a lower accuracy than {A}
{A} asks {B} for {X} = {B} is asked for {X} by {A} = {B} answers the request of {A} for {X}
{A} validates {B} = {B} is validated by {A} = the validation of {B} is done by {A} = {A} checks whether {B} is valid
{A} is converted into {B} = {B} is made out of {A} = the conversion turns {A} into {B} = from {A} comes {B}
{A} returns control to {B} = {B} gets control back from {A} = control goes back from {A} to {B}
{A} blocks {B} = {B} is blocked by {A} = because of {A}, {B} cannot go on = {A} keeps {B} from running
{A} owns {B} = {B} belongs to {A} = {B} is owned by {A} = the owner of {B} is {A}
{A} imports {B} = {B} is imported by {A} = the import of {B} happens in {A}
{A} logs to {B} = {B} is where {A} writes its log = the log of {A} goes to {B}
{A} listens to {B} = {B} is what {A} listens to = what {B} says is heard by {A}
{A} can access {B} = {B} is accessible to {A} = access to {B} is given to {A}
{A} restarts {B} when {B} fails = {B} is restarted by {A} after a failure = if {B} fails, {A} restarts it
{A} is a special case of {B} = {B} is more general than {A} = every instance of {A} is one of {B}
"""
"""Each relation in several forms that mean the same; `=` stands between them."""
CONTRASTS = """
synchronous, asynchronous; mutable, immutable; optional, required; stateless, stateful; single-threaded, multi-threaded
enabled by default, disabled by default; deprecated, experimental; public, private; read-only, writable
blocking, non-blocking; encrypted, unencrypted; ordered, unordered; free of charge, paid; compiled, interpreted
case-sensitive, case-insensitive; stored in memory, stored on disk; run on the client, run on the server
statically typed, dynamically typed; temporary, permanent; unidirectional, bidirectional; lazy, eager; global, local
loaded at startup, loaded on demand; suited to small data, suited to large data; built in, an extension
available on Linux, available on Windows; evaluated at compile time, evaluated at run time; limited, unlimited
checked before the request, checked after the request; CPU-bound, I/O-bound; recommended, discouraged
"""
_RELATIONS = [
    [form.strip() for form in block.split("=")] for block in RELATIONS.replace("\n    =", " =").strip().split("\n")
]
_CONTRASTS = [pair.strip().split(", ") for pair in CONTRASTS.strip().replace("\n", "; ").split("; ")]


@dataclass(frozen=True, slots=True)
class Attribute:
    """A column of a table: its values, sentences about one, and how two values compare ("" if they do not)."""

    name: str
    values: Sequence[str]
    forms: Sequence[str]
    more: str = ""
    less: str = ""


ATTRIBUTES = (
    Attribute(
        "Default",
        "1 2 3 5 8 10 16 20 25 30 50 64 100 120 256 300 500 1000".split(),
        (
            "the default of {e} is {v}",
            "{e} defaults to {v}",
            "if {e} is not set, {v} is used",
            "unless told otherwise, {e} is {v}",
        ),
        "a higher default",
        "a lower default",
    ),
    Attribute(
        "Timeout",
        [f"{number} seconds" for number in (1, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120)],
        (
            "the timeout of {e} is {v}",
            "{e} times out after {v}",
            "after {v}, {e} gives up",
            "{e} waits for at most {v}",
        ),
        "a longer timeout",
        "a shorter timeout",
    ),
    Attribute(
        "Memory",
        [f"{number} GB" for number in (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128)],
        ("{e} has {v} of memory", "the memory of {e} is {v}", "{v} of memory come with {e}", "{e} comes with {v}"),
        "more memory",
        "less memory",
    ),
    Attribute(
        "Price",
        [f"${number}" for number in (5, 9, 12, 19, 29, 49, 69, 99, 149, 199, 249, 349, 499, 600, 999)],
        ("{e} costs {v}", "the price of {e} is {v}", "you pay {v} for {e}", "{v} is what {e} costs"),
        "a higher price",
        "a lower price",
    ),
    Attribute(
        "Limit",
        "3 4 6 7 12 15 40 75 80 150 200 250 400 2000 5000".split(),
        (
            "the limit of {e} is {v}",
            "{e} is limited to {v}",
            "no more than {v} are allowed for {e}",
            "{e} allows at most {v}",
        ),
        "a higher limit",
        "a lower limit",
    ),
    Attribute(
        "Accuracy",
        [f"{number}%" for number in range(50, 100)],
        ("the accuracy of {e} is {v}", "{e} reaches an accuracy of {v}", "with {e} the accuracy is {v}"),
        "a higher accuracy",
        "a lower accuracy",
    ),
    Attribute(
        "Units",
        "2 3 4 5 6 7 8 9".split(),
        (
            "{e} has {v} units",
            "there are {v} units in {e}",
            "the number of units of {e} is {v}",
            "{e} consists of {v} units",
        ),
        "more units",
        "fewer units",
    ),
    Attribute(
        "Added in",
        [f"{major}.{minor}" for major in range(10) for minor in range(10)],
        ("{e} was added in version {v}", "since version {v} there is {e}", "{e} exists from version {v} on"),
    ),
    Attribute(
        "Port",
        "22 25 53 80 110 143 443 587 993 3306 5000 5432 6379 8000 8080 8443 9000".split(),
        (
            "{e} listens on port {v}",
            "the port of {e} is {v}",
            "port {v} belongs to {e}",
            "{e} can be reached on port {v}",
        ),
    ),
    Attribute(
        "Type",
        "string integer boolean list float object dictionary timestamp".split(),
        ("the type of {e} is {v}", "{e} is of type {v}", "{e} takes a value of type {v}", "{v} is the type of {e}"),
    ),
    Attribute(
        "Owner",
        "GitHub|the platform team|the vendor|the security team|the community|an administrator".split("|"),
        (
            "{e} is maintained by {v}",
            "the maintenance of {e} is up to {v}",
            "{v} maintains {e}",
            "it is {v} that maintains {e}",
        ),
    ),
    Attribute(
        "Stored in",
        "memory|the database|a cookie|the session|a temporary file|the registry|the home folder|a JSON file".split("|"),
        ("{e} is stored in {v}", "{v} is where {e} is kept", "the place of {e} is {v}", "{e} can be found in {v}"),
    ),
    Attribute(
        "Used for",
        "testing|production|local development|training|backups|real-time processing|batch jobs|monitoring".split("|"),
        ("{e} is used for {v}", "{e} is meant for {v}", "for {v} there is {e}", "{v} is what {e} is for"),
    ),
)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What the facts are about: names, identifiers and purposes, as the pages have them."""

    names: Sequence[str]
    identifiers: Sequence[str]
    purposes: Sequence[str]
    """Verb phrases: "export the report to a file"."""

    def draw(self, count: int, chance: random.Random) -> list[str]:
        """So many different things of one sort."""
        return chance.sample(list(chance.choice((self.names, self.identifiers, ACTORS, ACTORS))), count)


@dataclass(frozen=True, slots=True)
class Fact:
    """A quote, a claim that it supports and one that it does not. `kind` names the difference."""

    kind: str
    quote: str
    true: str
    false: str
    heading: str = ""


def make_fact(words: Vocabulary, chance: random.Random) -> Fact:
    """A quote of made-up facts with a claim that follows from it and one that does not."""
    makers = (_relation, _relation, _relation, _contrast, _table, _table, _option, _code_block)
    return chance.choice(makers)(words, chance)


def _relation(words: Vocabulary, chance: random.Random) -> Fact:
    """Who does what to whom, among three."""
    a, b, c = words.draw(3, chance)
    forms = chance.choice(_RELATIONS)
    cargo = chance.choice(CARGO)
    said, true, false = (chance.choice(forms) for _ in range(3))
    sentences = [write(said.format(A=a, B=b, X=cargo))]
    kind, wrong = "role", {"A": b, "B": a}
    for _ in range(chance.choice((0, 1, 1, 2))):
        other = chance.choice([one for one in _RELATIONS if one is not forms])
        first, second = chance.choice(((b, c), (c, a), (c, b), (a, c)))
        sentences.append(write(chance.choice(other).format(A=first, B=second, X=chance.choice(CARGO))))
    if len(sentences) > 1 and chance.random() < 0.4:
        kind, wrong = "subject", dict(zip("AB", chance.choice(((a, c), (c, b))), strict=True))
    chance.shuffle(sentences)
    return Fact(
        kind,
        " ".join(sentences),
        write(true.format(A=a, B=b, X=cargo)),
        write(false.format(**wrong, X=cargo)),
    )


_CONTRAST_QUOTES = (
    "{a} is {p}, whereas {b} is {q}",
    "{a} is {p}. {b} is {q}",
    "- {a}: {p}\n- {b}: {q}",
    "Unlike {b}, which is {q}, {a} is {p}",
    "| {a} | {p} |\n| {b} | {q} |",
    "While {b} is {q}, {a} is {p}",
    "There are two ways: {a}, which is {p}, and {b}, which is {q}",
    "**{a}** - {p}\n**{b}** - {q}",
    "{a} ({p}) and {b} ({q}) can be used",
)
_CONTRAST_CLAIMS = (
    "{a} is {p}",
    "{b}, in contrast to {a}, is {q}",
    "{a} is {p}, but {b} is {q}",
    "Of the two, it is {a} that is {p}",
    "{b} is {q}",
    "{a} differs from {b} in being {p}",
)


def _contrast(words: Vocabulary, chance: random.Random) -> Fact:
    """Two things, and which of two opposite properties each has."""
    a, b = words.draw(2, chance)
    one, other = chance.sample(chance.choice(_CONTRASTS), 2)
    quote = chance.choice(_CONTRAST_QUOTES).format(a=a, b=b, p=one, q=other)
    true = chance.choice(_CONTRAST_CLAIMS).format(a=a, b=b, p=one, q=other)
    false = chance.choice(_CONTRAST_CLAIMS).format(a=b, b=a, p=one, q=other)
    return Fact("subject", write(quote), write(true), write(false))


def _table(words: Vocabulary, chance: random.Random) -> Fact:
    """A few things with one to three properties each."""
    things = words.draw(chance.randint(2, 4), chance)
    columns = chance.sample(list(ATTRIBUTES), chance.choice((1, 2, 2, 3)))
    rows = {thing: [chance.choice(list(column.values)) for column in columns] for thing in things}
    place = chance.randrange(len(columns))
    column = columns[place]
    first = things[0]
    others = [thing for thing in things[1:] if rows[thing][place] != rows[first][place]]
    if not others:
        return _table(words, chance)
    second = chance.choice(others)
    quote = _write_rows([column.name for column in columns], rows, chance)
    values = {first: rows[first][place], second: rows[second][place]}
    if column.more and chance.random() < 0.35:
        return _degree(quote, column, values, chance)
    return _value(quote, column, values, chance)


def _value(quote: str, column: Attribute, values: Mapping[str, str], chance: random.Random) -> Fact:
    """A value of the table, and the same with the value or the thing of another row."""
    (first, own), (second, other) = values.items()
    form, another = chance.choice(column.forms), chance.choice(column.forms)
    if chance.random() < 0.3:
        joined = chance.choice(("{0}, while {1}", "{0} and {1}", "{0}, whereas {1}"))
        true = joined.format(form.format(e=first, v=own), another.format(e=second, v=other))
        false = joined.format(form.format(e=first, v=other), another.format(e=second, v=own))
        return Fact("subject", quote, write(true), write(false))
    true = form.format(e=first, v=own)
    if chance.random() < 0.5:
        return Fact("number", quote, write(true), write(another.format(e=first, v=other)))
    return Fact("subject", quote, write(true), write(another.format(e=second, v=own)))


def _degree(quote: str, column: Attribute, values: Mapping[str, str], chance: random.Random) -> Fact:
    """Which of two rows has the greater number."""
    lesser, greater = sorted(values, key=lambda thing: int("".join(filter(str.isdigit, values[thing]))))
    true = chance.choice((f"{greater} has {column.more} than {lesser}", f"{lesser} has {column.less} than {greater}"))
    false = chance.choice((f"{lesser} has {column.more} than {greater}", f"{greater} has {column.less} than {lesser}"))
    return Fact("comparison", quote, write(true), write(false))


def _write_rows(header: Sequence[str], rows: Mapping[str, Sequence[str]], chance: random.Random) -> str:
    cells = list(rows.items())
    chance.shuffle(cells)
    style = chance.choice(("table", "table", "list", "prose", "lines"))
    if style == "table":
        head = (chance.choice(("Name", "Option", "Item")), *header)
        return "\n".join(f"| {' | '.join(row)} |" for row in (head, *((thing, *row) for thing, row in cells)))
    if style == "list":
        named = {
            thing: ", ".join(f"{name.lower()}: {value}" for name, value in zip(header, row, strict=True))
            for thing, row in cells
        }
        return "\n".join(f"- {thing} ({values})" for thing, values in named.items())
    if style == "lines":
        named = {
            thing: " ".join(f"{name}: {value}." for name, value in zip(header, row, strict=True))
            for thing, row in cells
        }
        return " ".join(f"{capitalize(thing)}. {values}" for thing, values in named.items())
    forms = {column.name: chance.choice(column.forms) for column in ATTRIBUTES}
    return " ".join(_write_prose(thing, dict(zip(header, row, strict=True)), forms) for thing, row in cells)


def _write_prose(thing: str, values: Mapping[str, str], forms: Mapping[str, str]) -> str:
    said = [
        forms[name].format(e="it" if place else thing, v=value) for place, (name, value) in enumerate(values.items())
    ]
    return write(" and ".join(said))


_OPTION_QUOTES = (
    "Use {a} to {p}. Use {b} to {q}",
    "The {a} {n} is used to {p}, and {b} to {q}",
    "- {a}: {p}\n- {b}: {q}",
    "To {p}, use {a}. To {q}, use {b} instead",
    "| {a} | {p} |\n| {b} | {q} |",
    "{a} lets you {p}. With {b} you can {q}",
    "$ run {a}  # {p}\n$ run {b}  # {q}",
)
_OPTION_CLAIMS = (
    "To {p}, you use {a}",
    "{a} is the {n} to {p}",
    "With `{a}` you can {p}",
    "The {n} `{a}` serves to {p}",
    "If you want to {p}, use `{a}`",
    "`{a}` is for those who want to {p}",
)


def _option(words: Vocabulary, chance: random.Random) -> Fact:
    """Which option, function or setting does what."""
    first, second = chance.sample(list(words.identifiers), 2)
    deed, other = chance.sample(list(words.purposes), 2)
    noun = chance.choice(("option", "function", "setting", "parameter", "command", "method", "flag", "class"))
    quote = chance.choice(_OPTION_QUOTES).format(a=first, b=second, p=deed, q=other, n=noun)
    true = chance.choice(_OPTION_CLAIMS).format(a=first, p=deed, n=noun)
    false = chance.choice(_OPTION_CLAIMS).format(a=second, p=deed, n=noun)
    return Fact("code", write(quote), write(true), write(false))


_LITERALS = "0 1 2 3 4 5 8 10 30 60 100 443 8080 true false 'auto' 'none' 'strict' '*'".split()


def _code_block(words: Vocabulary, chance: random.Random) -> Fact:
    """A nested setting or a call, and what is set in it."""
    outer, inner, a, b, c = chance.sample([name for name in words.identifiers if name.isidentifier()], 5)
    x, y = chance.sample(_LITERALS, 2)
    settings = (
        (f"`{a}` is set to `{x}`", f"`{a}` is set to `{y}`"),
        (f"under `{inner}`, `{b}` is `{y}`", f"under `{inner}`, `{a}` is `{x}`"),
        (f"`{b}` belongs under `{inner}`", f"`{a}` belongs under `{inner}`"),
        (f"the value of `{b}` is {y}", f"the value of `{b}` is {x}"),
        (f"`{a}` stands directly under `{outer}`", f"`{b}` stands directly under `{outer}`"),
    )
    calls = (
        (f"the example calls `{outer}` with `{a}` set to {x}", f"the example calls `{outer}` with `{a}` set to {y}"),
        (f"`{b}` is passed as {y}", f"`{b}` is passed as {x}"),
        (f"in the example `{a}` is {x} and `{b}` is {y}", f"in the example `{a}` is {y} and `{b}` is {x}"),
        (f"`{outer}` is called with `{a}` and `{b}`", f"`{outer}` is called with `{a}` and `{c}`"),
    )
    nested = f"{outer}:\n  {a}: {x}\n  {inner}:\n    {b}: {y}\n    {c}: {chance.choice(_LITERALS)}"
    called = f"{inner.lower()} = {outer}({a}={x}, {b}={y})\n{inner.lower()}.{c}({chance.choice(_LITERALS)})"
    quote, claims = chance.choice(((nested, settings), (called, calls)))
    true, false = chance.choice(claims)
    return Fact("code", quote, write(true), write(false))


def write(text: str) -> str:
    """The text as sentences; lists and tables stay as they are."""
    if "\n" in text:
        return text
    return " ".join(close(part) for part in text.split(". "))
