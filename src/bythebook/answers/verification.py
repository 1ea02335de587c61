"""Proof: every sentence a model said is held against the passages it was given, and keeps its place only with a quote.

What happens to sentences that claim nothing themselves:

- A heading, an introduction ("Here is how:") or a turn of phrase ("In summary,") stays with what it belongs to, and
  goes with it.
- A sentence that says the book lacks something cannot be quoted. It stays beside something proven, as the honest end
  of half an answer. When nothing else is left the answer is no answer: `declined` says so, and it is for the caller
  to refuse.

Blocks: an answer in Markdown taken apart into what can be proven or removed on its own, and put together again.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, replace
from enum import Enum, StrEnum, auto
from itertools import takewhile
from typing import TYPE_CHECKING, Literal

from bythebook.answers import SentenceProof
from bythebook.answers.citation_markers import Passages, mark, numbered, positions, unmarked
from bythebook.answers.markdown_scanner import Fence
from bythebook.answers.sanitizer import Cleaner, clean
from bythebook.answers.support import Desk, read
from bythebook.chunking.sentences import sentences
from bythebook.retrieval import citation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bythebook.answers.support import Lexicon, Quote, Support
    from bythebook.embeddings import Embedder
    from bythebook.retrieval import Citation, RetrievalResult

    Unsupported = Literal["remove", "mark"]

    from collections.abc import Iterator


UNVERIFIED = "[unverified]"
_ONLY_SOURCES = "what would stay is nothing but a list of sources"
_CODE_QUOTED = 0.7
"""How much of a block of code must stand in a passage. A reader runs it as it is, so likeness is not enough."""
_LONGEST_INTRODUCTION = 14

_LACKS = re.compile(
    r"\b(?:book|passages?|documentation|docs|context|pages?|sources?|text|manual|course|sections?|excerpts?|material)\b"
    r"[^.]{0,60}\b(?:not|n['’]t|no|lacks?)\b[^.]{0,30}"
    r"\b(?:mention|say|cover|contain|provide|include|specif|discuss|describe|explain|address|give|state|information)"
    r"|\b(?:i|we) (?:do not|don['’]t|could not|couldn['’]t|cannot|can['’]t|did not|didn['’]t) "
    r"(?:have|find|see|know|answer|provide|determine)\b"
    r"|\b(?:no|not enough|insufficient) (?:further |specific |more )?information\b"
    r"|\bnot (?:covered|mentioned|specified|discussed)\b",
    re.IGNORECASE,
)
_SAYS_NOTHING = frozenset(
    "above according additionally also answer based below book briefly can conclusion context course details do does "
    "documentation example examples explanation feel finally first firstly following follows for free further glad "
    "happy have hello help helpful helps here hi hope how i if important in information instance is it know lastly let "
    "look main manner may me more need next note now of ok okay on one ones other our out overall overview passage "
    "passages please point points provided question questions see shall short simple so some sources step steps such "
    "sum summarise summarize summary sure text thank thanks that the them then there therefore these things this those "
    "thus to us want way ways we what will with would yes you your are as at an a and by be any all about few ask "
    "key has had was were which from use used".split()
)
_BOLD = re.compile(r"(\*\*|__).{1,80}\1:?|(\*\*|__).{1,80}:\2")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?|\d+")


@dataclass(frozen=True, slots=True)
class Kept:
    """A sentence that stays, with the numbers of its citations."""

    text: str
    numbers: tuple[int, ...]
    confidence: float


@dataclass(frozen=True, slots=True)
class Doubted:
    """A sentence no passage bears out, and why not."""

    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class Proof:
    """What is left of a model's answer."""

    text: str
    """In Markdown, citations as [1], [2] in the order they appear. Empty when nothing was proven."""
    citations: tuple[Citation, ...]
    kept: tuple[Kept, ...]
    doubted: tuple[Doubted, ...]
    """What was removed, or marked as unverified."""
    sentences: tuple[SentenceProof, ...]
    """Everything the model said, in its order, with what became of it and why."""
    declined: bool
    """Whether the model itself said that the book does not say."""
    milliseconds: float

    @property
    def proven(self) -> bool:
        """Whether anything is left to answer with."""
        return bool(self.citations)


class _Verdict(Enum):
    PROVEN = auto()
    DOUBTED = auto()
    LACKS = auto()
    EMPTY = auto()
    """It claims nothing: it goes with its neighbours."""


async def prove(
    answer: str,
    results: Sequence[RetrievalResult],
    *,
    edition: Lexicon,
    embedder: Embedder,
    unsupported: Unsupported = "remove",
) -> Proof:
    """Hold every sentence of the answer against the passages it was given."""
    started = time.perf_counter()
    desk = Desk(results, edition)
    parts = [
        _Part(block, one.text, desk.look_up(_body(one.text, block.kind), named=one.named))
        for block in blocks(clean(answer, Passages(results, aliases=answer)))
        for one in block.said
    ]
    claims = [part for part in parts if part.claims]
    read_closely = await read([part.support for part in claims], embedder)
    closely = dict(zip(map(id, claims), read_closely, strict=True))
    judged = _judged([replace(part, support=closely.get(id(part), part.support)) for part in parts])
    return _written(judged, unsupported=unsupported, started=started)


@dataclass(frozen=True, slots=True)
class _Part:
    """A sentence of the answer, in its block."""

    block: Block
    text: str
    support: Support

    @property
    def claims(self) -> bool:
        """Whether it says something that can be true or false."""
        prose = self.block.kind in (Kind.PARAGRAPH, Kind.ITEM, Kind.ROW)
        return prose and any(word not in _SAYS_NOTHING for word in _WORD.findall(self.text.lower()))

    @property
    def introduces(self) -> bool:
        return self.text.rstrip("*_ ").endswith(":") and self.block.kind in (Kind.PARAGRAPH, Kind.ITEM)

    @property
    def heads(self) -> int:
        """The level of the heading it is, a line in bold being the lowest; 0 when it is none."""
        if self.block.kind is Kind.HEADING:
            return self.block.lead.count("#")
        bold = self.block.kind is Kind.PARAGRAPH and len(self.block.said) == 1 and _BOLD.fullmatch(self.text)
        return 7 if bold and not self.support.holds else 0


def _body(text: str, kind: Kind) -> str:
    return "\n".join(text.split("\n")[1:-1]) if kind is Kind.CODE else text


def _judged(parts: Sequence[_Part]) -> list[tuple[_Part, _Verdict]]:
    judged = [(part, _verdict(part)) for part in parts]
    # The first row of a table names its columns.
    for index, (part, _) in enumerate(judged[1:], start=1):
        if part.block.kind is Kind.RULE and judged[index - 1][0].block.kind is Kind.ROW:
            judged[index - 1] = (judged[index - 1][0], _Verdict.EMPTY)
    return judged


def _verdict(part: _Part) -> _Verdict:
    if part.block.kind is Kind.CODE:
        return _Verdict.PROVEN if part.support.features.quoted >= _CODE_QUOTED else _Verdict.DOUBTED
    if not part.claims or part.heads:
        return _Verdict.EMPTY
    if part.support.holds:
        return _Verdict.PROVEN
    if _LACKS.search(part.text):
        return _Verdict.LACKS
    short = len(part.text.split()) <= _LONGEST_INTRODUCTION
    return _Verdict.EMPTY if part.introduces and short and not part.support.objection else _Verdict.DOUBTED


def _written(judged: Sequence[tuple[_Part, _Verdict]], *, unsupported: Unsupported, started: float) -> Proof:
    """The answer made of what stays, its citations numbered as they come."""
    proven = any(verdict is _Verdict.PROVEN for _, verdict in judged)
    stays = _staying([verdict for _, verdict in judged], [part for part, _ in judged], unsupported)
    numbers: dict[Quote, int] = {}
    kept: list[Kept] = []
    written: list[tuple[_Part, str]] = []
    sentences: list[SentenceProof] = []
    for (part, verdict), stay in zip(judged, stays, strict=True):
        if not (stay and proven):
            sentences.append(_explained(part, verdict, ()))
            continue
        quotes = part.support.quotes if verdict is _Verdict.PROVEN else ()
        cited = tuple(numbers.setdefault(quote, len(numbers) + 1) for quote in quotes)
        note = "".join(map(mark, cited)) if verdict is not _Verdict.DOUBTED else UNVERIFIED
        text = noted(part.text, note, part.block.kind)
        written.append((part, text))
        kept.append(Kept(numbered(text), cited, part.support.confidence if cited else 0.0))
        sentences.append(_explained(part, verdict, cited, stays=True))
    doubted = [Doubted(part.text, _reason(part)) for part, verdict in judged if verdict is _Verdict.DOUBTED]
    text = numbered(Cleaner(Passages(())).again(_joined(written)))
    if not all(f"[{number}]" in text for number in numbers.values()):
        # What stays looks like a list of sources once it stands together: no answer is better than half of one.
        text, numbers, kept = "", {}, []
        sentences = [replace(one, verdict="removed", reason=_ONLY_SOURCES, citations=()) for one in sentences]
    return Proof(
        text=text,
        citations=tuple(citation(quote.result, quote.start, quote.end, number=n) for quote, n in numbers.items()),
        kept=tuple(kept),
        doubted=tuple(doubted),
        sentences=tuple(sentences),
        declined=any(verdict is _Verdict.LACKS for _, verdict in judged),
        milliseconds=(time.perf_counter() - started) * 1000,
    )


def _explained(part: _Part, verdict: _Verdict, cited: tuple[int, ...], *, stays: bool = False) -> SentenceProof:
    """What became of a part, and why."""
    reasons = {
        _Verdict.PROVEN: f"{part.support.features.quoted:.0%} of what it says stands in its quotes",
        _Verdict.DOUBTED: _reason(part),
        _Verdict.LACKS: "it says what the book lacks, which no quote can show",
        _Verdict.EMPTY: "it claims nothing by itself, and goes with what it belongs to",
    }
    kept: Literal["kept", "marked"] = "marked" if verdict is _Verdict.DOUBTED else "kept"
    return SentenceProof(
        text=part.text,
        verdict=kept if stays else "removed",
        reason=reasons[verdict],
        citations=cited,
        confidence=round(part.support.confidence, 3) if verdict in (_Verdict.PROVEN, _Verdict.DOUBTED) else 0.0,
        checked=part.support.checked,
    )


def _joined(written: Sequence[tuple[_Part, str]]) -> str:
    """The sentences in their blocks again."""
    whole: list[tuple[Block, str]] = []
    for part, text in written:
        if whole and whole[-1][0] is part.block:
            whole[-1] = (part.block, f"{whole[-1][1]} {text}")
        else:
            whole.append((part.block, text))
    return joined(whole)


def _staying(verdicts: Sequence[_Verdict], parts: Sequence[_Part], unsupported: Unsupported) -> list[bool]:
    alive = {_Verdict.PROVEN, _Verdict.DOUBTED} if unsupported == "mark" else {_Verdict.PROVEN}
    return [
        verdict in alive
        or verdict is _Verdict.LACKS
        or (verdict is _Verdict.EMPTY and any(verdicts[other] in alive for other in _belonging(parts, index)))
        for index, verdict in enumerate(verdicts)
    ]


def _belonging(parts: Sequence[_Part], index: int) -> list[int]:
    """What an empty part stands or falls with."""
    part = parts[index]
    after = range(index + 1, len(parts))
    if part.heads:
        return list(takewhile(lambda other: not 0 < parts[other].heads <= part.heads, after))
    if part.block.kind in (Kind.ROW, Kind.RULE):
        return list(takewhile(lambda other: parts[other].block.kind in (Kind.ROW, Kind.RULE), after))
    same = [other for other in range(len(parts)) if parts[other].block is part.block]
    if not part.introduces:
        return same
    follows = takewhile(lambda other: not parts[other].heads and _still_introduced(parts, index, other), after)
    return list(follows)


def _still_introduced(parts: Sequence[_Part], index: int, other: int) -> bool:
    """The very next thing is introduced, and the list, table or code that follows it."""
    return other == index + 1 or parts[other].block.kind in (Kind.ITEM, Kind.ROW, Kind.RULE, Kind.CODE)


def _reason(part: _Part) -> str:
    if part.support.objection:
        return part.support.objection
    if not part.support.quotes:
        return "no passage speaks of it"
    names = [detail for detail in part.support.checked if detail.startswith("name ") and detail.endswith("missing")]
    unnamed = f", and none names {names[0].removeprefix('name ').removesuffix(': missing')}" if names else ""
    return f"no passage says it clearly enough (confidence {part.support.confidence:.2f}){unnamed}"


_HEADING = re.compile(r"\s{0,3}(#{1,6})\s+")
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,4}[.)])\s+(?:\[[ xX]\]\s+)?")
_QUOTE = re.compile(r"\s*>\s?")
_RULE = re.compile(r"\s*\|?\s*:?-{2,}[\s:|-]*$|\s*(?:[-*_]\s*){3,}$")
_CODE = re.compile(r"`[^`\n]*`")
_MARKS = "\U000f0000-\U000f0fff"
_AROUND = re.compile(rf"\(\s*([{_MARKS}][{_MARKS}\s,;]*)\)")
# A marker behind the full stop belongs to the sentence before it.
_BEHIND = re.compile(rf"([.!?…:]+[\"'”’)*_]*)(\s*[{_MARKS}]+)(?=\s|$|[^\w{_MARKS}])")


class Kind(StrEnum):
    PARAGRAPH = "paragraph"
    ITEM = "item"
    HEADING = "heading"
    ROW = "row"
    RULE = "rule"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence, a row or a block of code, and the passages the model named for it."""

    text: str
    named: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """Some of an answer's lines that belong together."""

    kind: Kind
    lead: str
    """What stands in front: the mark of a list item, of a heading or of a quotation."""
    said: tuple[Said, ...]
    apart: bool
    """Whether an empty line stands before it."""


def blocks(text: str) -> list[Block]:
    """The blocks of a cleaned answer, in order."""
    found: list[Block] = []
    for block in _blocks(text):
        if found and not block.said and block.kind is not Kind.RULE:
            continue
        if found and found[-1].said and block.said and not any(said.text for said in block.said):
            # Markers on a line of their own belong to what stands above.
            found[-1] = _also_named(found[-1], block.said[0].named)
        elif block.said:
            found.append(block)
    return found


def _blocks(text: str) -> Iterator[Block]:
    apart, fence, code = False, None, list[str]()
    paragraph: list[str] = []
    for line in [*text.splitlines(), ""]:
        if fence is not None:
            code.append(line)
            if fence.closed_by(line):
                yield Block(Kind.CODE, "", (Said("\n".join(code), ()),), apart)
                fence, code, apart = None, [], False
            continue
        opened = Fence.opened_by(line)
        if paragraph and (opened or not line.strip() or _begins(line)):
            yield _prose(paragraph, apart)
            paragraph, apart = [], False
        if opened:
            fence, code = opened, [line]
        elif not line.strip():
            apart = True
        elif line.lstrip().startswith("|") or _RULE.match(line):
            yield _row(line, apart)
            apart = False
        else:
            paragraph.append(line)
    if code:
        yield Block(Kind.CODE, "", (Said("\n".join([*code, fence.mark if fence else ""]).rstrip(), ()),), apart)


def _begins(line: str) -> bool:
    """Whether the line begins something new rather than going on with the paragraph."""
    return bool(_HEADING.match(line) or _ITEM.match(line) or _RULE.match(line) or line.lstrip().startswith(("|", ">")))


def _row(line: str, apart: bool) -> Block:
    if _RULE.match(line):
        return Block(Kind.RULE, "", (Said(line.strip(), ()),), apart)
    return Block(Kind.ROW, "", (_said(line.strip()),), apart)


def _prose(lines: list[str], apart: bool) -> Block:
    kind, lead = Kind.PARAGRAPH, ""
    for pattern, meant in ((_HEADING, Kind.HEADING), (_ITEM, Kind.ITEM), (_QUOTE, Kind.PARAGRAPH)):
        if match := pattern.match(lines[0]):
            kind, lead = meant, match[0]
            break
    first = lines[0][len(lead) :]
    whole = " ".join([first.strip(), *(_QUOTE.sub("", line).strip() for line in lines[1:])])
    whole = _AROUND.sub(r"\1", whole)
    settled = _BEHIND.sub(lambda found: found[2].strip() + found[1], whole)
    # A full stop in code ends no sentence.
    masked = _CODE.sub(lambda code: "X" * len(code[0]), settled)
    return Block(kind, lead, tuple(_said(settled[start:end]) for start, end in sentences(masked)), apart)


def _said(text: str) -> Said:
    return Said(unmarked(text).strip(), positions(text))


def _also_named(block: Block, named: tuple[int, ...]) -> Block:
    last = block.said[-1]
    with_more = Said(last.text, tuple(dict.fromkeys([*last.named, *named])))
    return Block(block.kind, block.lead, (*block.said[:-1], with_more), block.apart)


_END = re.compile(r"[.!?…:;]+[\"'”’)*_`]*$|\s*\|$")


def noted(said: str, note: str, kind: Kind) -> str:
    """The sentence with a note in front of its full stop, the row with it in its last cell, code with it below."""
    if not note:
        return said
    if kind is Kind.CODE:
        return f"{said}\n\n{note}"
    end = _END.search(said)
    at = end.start() if end and end.start() else len(said)
    return f"{said[:at]} {note}{said[at:]}"


def joined(parts: list[tuple[Block, str]]) -> str:
    """Blocks with their texts as one answer again."""
    out = ""
    for block, text in parts:
        between = "\n\n" if block.apart or block.kind in (Kind.CODE, Kind.HEADING) else "\n"
        out += (between if out else "") + block.lead + text
    return out
