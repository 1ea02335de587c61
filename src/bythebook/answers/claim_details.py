"""Numbers, names, identifiers and negations of a sentence: the details that one wrong word makes false.

Two sentences can share nearly all their words and still contradict each other by a year, a name or a "not". The
details found here must also occur in the quote before the quote counts as proof.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from functools import lru_cache

_UNITS = {
    word: number
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen".split()
    )
}
_TENS = {
    word: 10 * number for number, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), 2)
}
_SCALES = {"hundred": 100.0, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "dozen": 12.0}
_SCALES |= {f"{word}s": value for word, value in _SCALES.items()}
_ORDINAL = re.compile(r"(?:st|nd|rd|th)$")
_SHORT_YEAR = re.compile(r"\b((\d\d)\d\d)[-–](\d\d)\b")
_ORDINALS = {
    word: number
    for number, word in enumerate(
        "third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth".split(),
        start=3,
    )
}
_SPELLED = _UNITS | _TENS | _ORDINALS | {"twice": 2}

_TOKEN = re.compile(r"\d[\d,]*(?:\.\d+)*(?:['’]?s|st|nd|rd|th)?\b|\d+|[^\W\d_]+(?:['’][^\W\d_]+)?")
_IDENTIFIER = re.compile(
    r"(?<![\w-])--?[a-z][\w-]+|@\w[\w.]*|\w+(?:[./:]\w+)*\(\)|[^\W\d]\w*(?:_\w+)+|[^\W\d]\w+(?:(?:\.|::)[^\W\d]\w+)+"
    r"|[a-z]+[A-Z]\w*|[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+|[A-Z]+[a-z]+\d\w*"
)
_MEASURES = {
    spelling: spellings.split("/")[0]
    for spellings in (
        "percent/%/per cent", "s/sec/secs/second/seconds", "ms/millisecond/milliseconds", "minute/minutes/min/mins",
        "hour/hours/h/hr/hrs", "day/days", "week/weeks", "month/months", "year/years", "decade/decades",
        "century/centuries", "mm/millimetre/millimetres/millimeter/millimeters",
        "cm/centimetre/centimetres/centimeter/centimeters", "m/metre/metres/meter/meters",
        "km/kilometre/kilometres/kilometer/kilometers", "inch/inches", "ft/foot/feet", "mile/miles",
        "g/gram/grams", "kg/kilogram/kilograms/kilo/kilos", "pound/pounds/lb/lbs", "tonne/tonnes/ton/tons",
        "kb/kilobyte/kilobytes", "mb/megabyte/megabytes", "gb/gigabyte/gigabytes", "tb/terabyte/terabytes",
        "bit/bits", "byte/bytes", "hz/hertz", "khz", "mhz", "ghz", "v/volt/volts", "w/watt/watts", "kw", "a/amp/amps",
        "°c/celsius", "°f/fahrenheit", "degree/degrees/°", "dollar/dollars/usd", "euro/euros/eur",
    )
    for spelling in spellings.split("/")
}  # fmt: skip
_QUANTITY = re.compile(
    rf"(?<![\w.])(\d[\d,]*(?:\.\d+)?)[\s-]?({'|'.join(sorted(map(re.escape, _MEASURES), key=len, reverse=True))})(?!\w)"
)
_SPELLED_QUANTITY = re.compile(
    rf"\b((?:{'|'.join([*_UNITS, *_TENS])})(?:[\s-](?:{'|'.join([*_UNITS, *_TENS, *_SCALES])}))*)[\s-]"
    rf"({'|'.join(sorted((m for m in map(re.escape, _MEASURES) if len(m) > 2), key=len, reverse=True))})(?!\w)"
)
_CODE = re.compile(r"`([^`\n]+)`")
_NAME = re.compile(r"(?<![\w/.-])[^\W\d_a-z][\w’'-]*(?:\.(?=[^\W\d_a-z]\.))?")
_FIRST = re.compile(r"(?:^|[.!?:]\s+|\n\s*(?:[-*+|]\s+)?)[\"'“‘(*_]*(\w+)")

_NEGATIONS = frozenset(
    "no not never none neither nor nobody nothing nowhere without cannot unable hardly scarcely".split()
)
_DENIED = 5
"""How many words after a "not" it negates."""
_TELLING = 4
"""Shorter words are too common to be negated. Longer words are compared by this many leading letters."""
_OPPOSITES = (
    "more - less/fewer",
    "most - least/fewest",
    "before/prior/earlier - after/later/following",
    "first - last/second",
    "above/over/exceeds/exceeded/beyond - below/under/beneath",
    "increase/increases/increased/increasing - decrease/decreases/decreased/decreasing/reduce/reduces/reduced",
    "rise/rises/rose/grow/grows/grew/gain/gained - fall/falls/fell/shrink/shrinks/drop/drops/dropped/declined",
    "higher/high/highest - lower/low/lowest",
    "larger/large/largest/bigger/big/biggest/greater/greatest - smaller/small/smallest/lesser",
    "longer/long/longest - shorter/short/shortest",
    "faster/fast/fastest/quickly - slower/slow/slowest/slowly",
    "always - never/sometimes/rarely",
    "all/every/each/entire - none/some/few/part",
    "minimum/min - maximum/max",
    "enable/enables/enabled/allow/allows/allowed - disable/disables/disabled/forbid/forbids/forbidden/prevent",
    "start/starts/started/begin/begins/began/open/opens/opened - stop/stops/stopped/end/ends/ended/close/closed",
    "add/adds/added/include/includes/included - remove/removes/removed/exclude/excludes/excluded/delete/deletes",
    "true/success/succeed/succeeds/succeeded/pass/passes - false/failure/fail/fails/failed",
    "win/wins/won/victory - lose/loses/lost/defeat/defeated",
    "accept/accepts/accepted/approve/approved - reject/rejects/rejected/refuse/refused/declined/denied",
    "required/mandatory/must - optional/optionally",
    "public - private",
    "mutable - immutable",
    "synchronous/sync/blocking - asynchronous/async",
    "north/northern - south/southern",
    "east/eastern - west/western",
    "male/man/men/father/son/brother/husband/king/boy - female/woman/women/mother/daughter/sister/wife/queen/girl",
    "alive/living/born - dead/died/deceased",
    "early - late",
    "old/older/oldest - young/younger/youngest/new/newer/newest",
    "positive/good/better/best/praised/successful - negative/bad/worse/worst/criticized/criticised/unsuccessful",
    "same/similar/identical - different/opposite/differs",
    "single/only/sole/alone - multiple/several/many/both",
    "left - right",
    "inside/internal/within - outside/external",
    "parent - child",
    "input/inputs/read/reads/receive/receives/received - output/outputs/write/writes/written/send/sends/sent",
    "buy/buys/bought/purchase/purchased - sell/sells/sold",
    "rich/wealthy - poor",
    "strong/stronger - weak/weaker",
    "hot/hotter/warm - cold/colder/cool",
)


def _leanings() -> dict[str, frozenset[int]]:
    """Maps each word to its antonym pairs: positive for the left side, negative for the right side."""
    sides: dict[str, set[int]] = {}
    for index, pair in enumerate(_OPPOSITES, start=1):
        for sign, words in zip((1, -1), pair.split(" - "), strict=True):
            for word in words.split("/"):
                sides.setdefault(word, set()).add(sign * index)
    return {word: frozenset(signed) for word, signed in sides.items()}


_LEANINGS = _leanings()


@dataclass(frozen=True, slots=True)
class ClaimDetails:
    """The checkable details of a text, normalised: 1,000 equals 1000, and forty equals 40."""

    numbers: frozenset[str]
    digits: frozenset[str]
    """Numbers written in digits."""
    quantities: frozenset[tuple[str, str]]
    """Numbers with their unit of measure: 40 % equals 40 percent."""
    names: frozenset[str]
    """Capitalised words in lower case, except words that are capitalised only because they start a sentence."""
    identifiers: frozenset[str]
    words: frozenset[str]
    """Every word in lower case. Names are looked up here."""
    text: str
    """The whole text in lower case. Identifiers are looked up here."""
    denied: frozenset[str]
    """Leading letters of the words after a "not"."""
    leanings: frozenset[int]
    """The sides taken in antonym pairs."""

    def numbers_not_in(self, other: ClaimDetails) -> frozenset[str]:
        return frozenset(number for number in self.numbers - other.numbers if not self._implies(number, other))

    def measured_otherwise_in(self, other: ClaimDetails) -> bool:
        """True if a number has one unit here and only other units there."""
        there = {number for number, _ in other.quantities}
        return any(number in there for number, _ in self.quantities - other.quantities)

    def names_not_in(self, other: ClaimDetails) -> frozenset[str]:
        return frozenset(name for name in self.names - other.words if not _has_variant(name, other.words))

    def identifiers_not_in(self, other: ClaimDetails) -> frozenset[str]:
        return frozenset(name for name in self.identifiers - other.identifiers if name not in other.text)

    def denies(self, other: ClaimDetails) -> bool:
        """True if a shared word is negated in exactly one of the two texts."""
        here = any(word[:_TELLING] in self.denied for word in other.words)
        there = any(word[:_TELLING] in other.denied for word in self.words)
        return here != there

    def opposes(self, other: ClaimDetails) -> bool:
        """True if the other text has the antonym of a word here, and not the word."""
        return any(-leaning in other.leanings and leaning not in other.leanings for leaning in self.leanings)

    def compared_with(self, other: ClaimDetails) -> Iterator[str]:
        """Describe each detail and whether the other text contains it."""
        gone = {
            "number": (self.numbers, self.numbers_not_in(other)),
            "name": (self.names, self.names_not_in(other)),
            "identifier": (self.identifiers, self.identifiers_not_in(other)),
        }
        for kind, (every, missing) in gone.items():
            for one in sorted(every):
                yield f"{kind} {one}: {'missing' if one in missing else 'found'}"
        for number, measure in sorted(self.quantities):
            elsewhere = any(number == there for there, _ in other.quantities)
            found = "found" if (number, measure) in other.quantities else "another measure" if elsewhere else "missing"
            yield f"measure {number} {measure}: {found}"

    def _implies(self, number: str, other: ClaimDetails) -> bool:
        """Match a decade or century by one of its years, and a bound by a number beyond it."""
        if number.endswith("s"):
            years = [there for there in other.numbers if len(there) == 4]
            start = number.rstrip("'s").rstrip("0")
            return any(year.startswith(start) or (len(start) == 1 and year[2] == start) for year in years)
        beyond = _bound(number, self.text)
        return beyond != 0 and any((value - float(number)) * beyond > 0 for value in _values(other.numbers))


@lru_cache(maxsize=1024)
def extract_details(text: str) -> ClaimDetails:
    """Extract the details of a sentence or a passage."""
    full_years = _SHORT_YEAR.sub(r"\1 \2\3", text)
    lower = [match[0].replace("’", "'").lower() for match in _TOKEN.finditer(full_years)]
    return ClaimDetails(
        numbers=frozenset(_numbers(lower)),
        digits=frozenset(_numbers([word for word in lower if word[0].isdigit()])),
        quantities=frozenset(_quantities(text.lower())),
        names=frozenset(_names(text)),
        identifiers=frozenset(_identifiers(text)),
        words=frozenset(part for word in lower for part in (word, word.removesuffix("'s"))),
        text=text.lower(),
        denied=frozenset(_negated_stems(lower)),
        leanings=frozenset(leaning for word in lower for leaning in _LEANINGS.get(word, ())),
    )


def merge_details(parts: Iterable[ClaimDetails]) -> ClaimDetails:
    """Merge the details of several texts."""
    every = list(parts)
    sets = [known.name for known in fields(ClaimDetails) if known.name != "text"]
    return ClaimDetails(
        text="\n".join(part.text for part in every),
        **{name: frozenset().union(*(getattr(part, name) for part in every)) for name in sets},
    )


def _numbers(tokens: list[str]) -> Iterator[str]:
    """Every number, in words or digits; "two hundred" and "3 million" are one number each."""
    spelled = _Spelled()
    for word in tokens:
        token = _ORDINAL.sub("", word) if word[0].isdigit() else word
        if not token[0].isdigit():
            yield from spelled.read(token)
            continue
        yield from spelled.done()
        if token.endswith("s") or (value := _value(token)) is None:
            yield token
        else:
            spelled.begin(value)
    yield from spelled.done()


def _negated_stems(tokens: list[str]) -> Iterator[str]:
    for index, token in enumerate(tokens):
        if token in _NEGATIONS or token.endswith("n't"):
            behind = (word[:_TELLING] for word in tokens[index + 1 : index + 1 + _DENIED])
            yield from (word for word in behind if len(word) == _TELLING)


class _Spelled:
    """Accumulates a spelled-out number word by word."""

    def __init__(self) -> None:
        self._value: float | None = None

    def begin(self, value: float) -> None:
        self._value = value

    def read(self, word: str) -> Iterator[str]:
        value = self._value
        if word in _SCALES and value is not None:
            self._value = value * _SCALES[word]
        elif word in _SPELLED and value is not None and value >= 20 and value % 10 == 0:
            self._value = value + _SPELLED[word]
        elif word in _SPELLED or word in _SCALES:
            yield from self.done()
            self._value = _SPELLED.get(word, _SCALES.get(word, 0))
        elif not (word == "and" and value is not None and value >= 100 and value % 100 == 0):
            yield from self.done()

    def done(self) -> Iterator[str]:
        # "One" is rarely a count.
        if self._value is not None and self._value != 1:
            yield f"{self._value:.15g}"
        self._value = None


def _value(token: str) -> float | None:
    """Parse digits; None for tokens that are not a single number, such as the version 1.2.3."""
    try:
        return float(token.rstrip(",").replace(",", ""))
    except ValueError:
        return None


def _quantities(text: str) -> Iterator[tuple[str, str]]:
    for match in _QUANTITY.finditer(text):
        if (value := _value(match[1])) is not None:
            yield f"{value:.15g}", _MEASURES[match[2]]
    for match in _SPELLED_QUANTITY.finditer(text):
        for number in _numbers(re.split(r"[\s-]", match[1])):
            yield number, _MEASURES[match[2]]


def _values(numbers: frozenset[str]) -> Iterator[float]:
    return (value for number in numbers if (value := _value(number)) is not None)


def _bound(number: str, text: str) -> int:
    """1 if the text states a lower bound ("over N"), -1 for an upper bound ("under N"), 0 for the exact number."""
    digits = rf"\W+(?:\w+\W+)?{re.escape(number)}(?![\d.,]*\d)"
    if _value(number) is None:
        return 0
    if re.search(rf"\b(?:over|more than|above|exceeds?|exceeding|beyond|at least|greater than){digits}", text):
        return 1
    return -int(bool(re.search(rf"\b(?:under|less than|fewer than|below|at most|up to|smaller than){digits}", text)))


def _has_variant(name: str, words: frozenset[str]) -> bool:
    """True if a word with the same stem occurs (Libya, Libyan), or every part of a hyphenated name."""
    if "-" in name:
        return all(part in words or _has_variant(part, words) for part in name.split("-") if part)
    return len(name) >= 4 and any(word.startswith(name) or (len(word) >= 4 and name.startswith(word)) for word in words)


def _names(text: str) -> Iterator[str]:
    opening = {match.start(1) for match in _FIRST.finditer(text)}
    for match in _NAME.finditer(text):
        if match.start() not in opening and match[0] != "I":
            name = match[0].replace("’", "'").lower()
            if bare := name.removesuffix("'s").strip("'-."):
                yield bare


def _identifiers(text: str) -> Iterator[str]:
    for match in _CODE.finditer(text):
        yield _normalize_identifier(match[1])
    for match in _IDENTIFIER.finditer(text):
        yield _normalize_identifier(match[0])


def _normalize_identifier(identifier: str) -> str:
    return identifier.strip().removesuffix("()").strip(".,;:").lower()
