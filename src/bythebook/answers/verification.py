"""Verification: every sentence of a model's answer needs a quote from the retrieved passages, or it is removed.

Parts that claim nothing themselves:

- A heading, an introduction ("Here is how:") or a phrase ("In summary,") stays or goes with the part it belongs to.
- A sentence that says the book lacks something cannot be quoted. It stays beside verified sentences. If nothing else is
  left, `declined` is true and the caller refuses the question.

The answer's Markdown is parsed into blocks, verified sentence by sentence, and assembled again.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, replace
from enum import Enum, StrEnum, auto
from itertools import takewhile
from typing import TYPE_CHECKING, Literal

from bythebook.answers import SentenceProof
from bythebook.answers.citation_markers import (
    CitationResolver,
    citation_mark,
    find_positions,
    render_numbers,
    strip_marks,
)
from bythebook.answers.markdown_scanner import Fence
from bythebook.answers.sanitizer import StreamSanitizer, sanitize
from bythebook.answers.support import CandidateQuote, PassageMatcher, Support, TermWeights, compare_by_meaning
from bythebook.chunking.sentences import split_sentences
from bythebook.retrieval import Citation, RetrievalResult, to_citation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bythebook.embeddings import Embedder

    Unsupported = Literal["remove", "mark"]

    from collections.abc import Iterator


UNVERIFIED = "[unverified]"
_ONLY_SOURCES = "what would stay is nothing but a list of sources"
_CODE_QUOTED = 0.7
"""Minimum share of a code block that a passage must contain. Readers run code unchanged, so similarity is not
enough.
"""
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
class VerifiedSentence:
    """A sentence that stays, with its citation numbers."""

    text: str
    numbers: tuple[int, ...]
    confidence: float


@dataclass(frozen=True, slots=True)
class RejectedSentence:
    """A sentence that no passage supports, with the reason."""

    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class Proof:
    """The verified part of a model's answer."""

    text: str
    """Markdown with citations [1], [2] in order of appearance. Empty if nothing was verified."""
    citations: tuple[Citation, ...]
    kept: tuple[VerifiedSentence, ...]
    rejected: tuple[RejectedSentence, ...]
    """Sentences that were removed or marked as unverified."""
    sentences: tuple[SentenceProof, ...]
    """Every sentence of the answer, in order, with its verdict and reason."""
    declined: bool
    """True if the model said that the book does not cover the question."""
    milliseconds: float

    @property
    def proven(self) -> bool:
        """True if anything is left to answer with."""
        return bool(self.citations)


class _Verdict(Enum):
    PROVEN = auto()
    DOUBTED = auto()
    LACKS = auto()
    EMPTY = auto()
    """Claims nothing: stays or goes with its neighbours."""


async def prove(
    answer: str,
    results: Sequence[RetrievalResult],
    *,
    snapshot: TermWeights,
    embedder: Embedder,
    unsupported: Unsupported = "remove",
) -> Proof:
    """Verify every sentence of the answer against the retrieved passages."""
    started = time.perf_counter()
    desk = PassageMatcher(results, snapshot)
    parts = [
        _Part(block, one.text, desk.look_up(_body(one.text, block.kind), named=one.named))
        for block in parse_blocks(sanitize(answer, CitationResolver(results, aliases=answer)))
        for one in block.said
    ]
    claims = [part for part in parts if part.claims]
    read_closely = await compare_by_meaning([part.support for part in claims], embedder)
    closely = dict(zip(map(id, claims), read_closely, strict=True))
    judged = _judge([replace(part, support=closely.get(id(part), part.support)) for part in parts])
    return _assemble_proof(judged, unsupported=unsupported, started=started)


@dataclass(frozen=True, slots=True)
class _Part:
    """A sentence of the answer with its block and its evidence."""

    block: AnswerBlock
    text: str
    support: Support

    @property
    def claims(self) -> bool:
        """True if the sentence can be true or false."""
        prose = self.block.kind in (AnswerBlockKind.PARAGRAPH, AnswerBlockKind.ITEM, AnswerBlockKind.ROW)
        return prose and any(word not in _SAYS_NOTHING for word in _WORD.findall(self.text.lower()))

    @property
    def introduces(self) -> bool:
        return self.text.rstrip("*_ ").endswith(":") and self.block.kind in (
            AnswerBlockKind.PARAGRAPH,
            AnswerBlockKind.ITEM,
        )

    @property
    def heads(self) -> int:
        """Heading level, 7 for a line in bold; 0 if it is not a heading."""
        if self.block.kind is AnswerBlockKind.HEADING:
            return self.block.lead.count("#")
        bold = self.block.kind is AnswerBlockKind.PARAGRAPH and len(self.block.said) == 1 and _BOLD.fullmatch(self.text)
        return 7 if bold and not self.support.holds else 0


def _body(text: str, kind: AnswerBlockKind) -> str:
    return "\n".join(text.split("\n")[1:-1]) if kind is AnswerBlockKind.CODE else text


def _judge(parts: Sequence[_Part]) -> list[tuple[_Part, _Verdict]]:
    judged = [(part, _verdict(part)) for part in parts]
    # The first row of a table is its header.
    for index, (part, _) in enumerate(judged[1:], start=1):
        if part.block.kind is AnswerBlockKind.RULE and judged[index - 1][0].block.kind is AnswerBlockKind.ROW:
            judged[index - 1] = (judged[index - 1][0], _Verdict.EMPTY)
    return judged


def _verdict(part: _Part) -> _Verdict:
    if part.block.kind is AnswerBlockKind.CODE:
        return _Verdict.PROVEN if part.support.features.quoted >= _CODE_QUOTED else _Verdict.DOUBTED
    if not part.claims or part.heads:
        return _Verdict.EMPTY
    if part.support.holds:
        return _Verdict.PROVEN
    if _LACKS.search(part.text):
        return _Verdict.LACKS
    short = len(part.text.split()) <= _LONGEST_INTRODUCTION
    return _Verdict.EMPTY if part.introduces and short and not part.support.objection else _Verdict.DOUBTED


def _assemble_proof(judged: Sequence[tuple[_Part, _Verdict]], *, unsupported: Unsupported, started: float) -> Proof:
    """Assemble the answer from the parts that stay, and number the citations in order."""
    proven = any(verdict is _Verdict.PROVEN for _, verdict in judged)
    stays = _select_remaining([verdict for _, verdict in judged], [part for part, _ in judged], unsupported)
    numbers: dict[CandidateQuote, int] = {}
    kept: list[VerifiedSentence] = []
    written: list[tuple[_Part, str]] = []
    sentences: list[SentenceProof] = []
    for (part, verdict), stay in zip(judged, stays, strict=True):
        if not (stay and proven):
            sentences.append(_explain(part, verdict, ()))
            continue
        quotes = part.support.quotes if verdict is _Verdict.PROVEN else ()
        cited = tuple(numbers.setdefault(quote, len(numbers) + 1) for quote in quotes)
        note = "".join(map(citation_mark, cited)) if verdict is not _Verdict.DOUBTED else UNVERIFIED
        text = append_note(part.text, note, part.block.kind)
        written.append((part, text))
        kept.append(VerifiedSentence(render_numbers(text), cited, part.support.confidence if cited else 0.0))
        sentences.append(_explain(part, verdict, cited, stays=True))
    doubted = [RejectedSentence(part.text, _reason(part)) for part, verdict in judged if verdict is _Verdict.DOUBTED]
    text = render_numbers(StreamSanitizer(CitationResolver(())).resanitize(_join_parts(written)))
    if not all(f"[{number}]" in text for number in numbers.values()):
        # The remaining parts together look like a source list. An empty answer is better than half of one.
        text, numbers, kept = "", {}, []
        sentences = [replace(one, verdict="removed", reason=_ONLY_SOURCES, citations=()) for one in sentences]
    return Proof(
        text=text,
        citations=tuple(to_citation(quote.result, quote.start, quote.end, number=n) for quote, n in numbers.items()),
        kept=tuple(kept),
        rejected=tuple(doubted),
        sentences=tuple(sentences),
        declined=any(verdict is _Verdict.LACKS for _, verdict in judged),
        milliseconds=(time.perf_counter() - started) * 1000,
    )


def _explain(part: _Part, verdict: _Verdict, cited: tuple[int, ...], *, stays: bool = False) -> SentenceProof:
    """The verdict on a part, with the reason."""
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


def _join_parts(written: Sequence[tuple[_Part, str]]) -> str:
    """Join the sentences into their blocks again."""
    whole: list[tuple[AnswerBlock, str]] = []
    for part, text in written:
        if whole and whole[-1][0] is part.block:
            whole[-1] = (part.block, f"{whole[-1][1]} {text}")
        else:
            whole.append((part.block, text))
    return join_blocks(whole)


def _select_remaining(verdicts: Sequence[_Verdict], parts: Sequence[_Part], unsupported: Unsupported) -> list[bool]:
    alive = {_Verdict.PROVEN, _Verdict.DOUBTED} if unsupported == "mark" else {_Verdict.PROVEN}
    return [
        verdict in alive
        or verdict is _Verdict.LACKS
        or (verdict is _Verdict.EMPTY and any(verdicts[other] in alive for other in _dependents(parts, index)))
        for index, verdict in enumerate(verdicts)
    ]


def _dependents(parts: Sequence[_Part], index: int) -> list[int]:
    """The parts that decide whether an empty part stays."""
    part = parts[index]
    after = range(index + 1, len(parts))
    if part.heads:
        return list(takewhile(lambda other: not 0 < parts[other].heads <= part.heads, after))
    if part.block.kind in (AnswerBlockKind.ROW, AnswerBlockKind.RULE):
        return list(
            takewhile(lambda other: parts[other].block.kind in (AnswerBlockKind.ROW, AnswerBlockKind.RULE), after)
        )
    same = [other for other in range(len(parts)) if parts[other].block is part.block]
    if not part.introduces:
        return same
    follows = takewhile(lambda other: not parts[other].heads and _follows_introduction(parts, index, other), after)
    return list(follows)


def _follows_introduction(parts: Sequence[_Part], index: int, other: int) -> bool:
    """True for the part directly after an introduction, and for the list, table or code that follows."""
    return other == index + 1 or parts[other].block.kind in (
        AnswerBlockKind.ITEM,
        AnswerBlockKind.ROW,
        AnswerBlockKind.RULE,
        AnswerBlockKind.CODE,
    )


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
# A citation mark after the full stop belongs to the sentence before it.
_BEHIND = re.compile(rf"([.!?…:]+[\"'”’)*_]*)(\s*[{_MARKS}]+)(?=\s|$|[^\w{_MARKS}])")


class AnswerBlockKind(StrEnum):
    PARAGRAPH = "paragraph"
    ITEM = "item"
    HEADING = "heading"
    ROW = "row"
    RULE = "rule"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class AnswerSentence:
    """A sentence, table row or code block, with the passages the model cited for it."""

    text: str
    named: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AnswerBlock:
    """Consecutive lines of an answer that belong together."""

    kind: AnswerBlockKind
    lead: str
    """The list marker, heading marker or quotation marker in front."""
    said: tuple[AnswerSentence, ...]
    apart: bool
    """True if an empty line comes before it."""


def parse_blocks(text: str) -> list[AnswerBlock]:
    """Parse a sanitized answer into blocks."""
    found: list[AnswerBlock] = []
    for block in _scan_blocks(text):
        if found and not block.said and block.kind is not AnswerBlockKind.RULE:
            continue
        if found and found[-1].said and block.said and not any(said.text for said in block.said):
            # Citation marks on a separate line belong to the block above.
            found[-1] = _add_citations(found[-1], block.said[0].named)
        elif block.said:
            found.append(block)
    return found


def _scan_blocks(text: str) -> Iterator[AnswerBlock]:
    apart, fence, code = False, None, list[str]()
    paragraph: list[str] = []
    for line in [*text.splitlines(), ""]:
        if fence is not None:
            code.append(line)
            if fence.is_closed_by(line):
                yield AnswerBlock(AnswerBlockKind.CODE, "", (AnswerSentence("\n".join(code), ()),), apart)
                fence, code, apart = None, [], False
            continue
        opened = Fence.parse(line)
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
        yield AnswerBlock(
            AnswerBlockKind.CODE,
            "",
            (AnswerSentence("\n".join([*code, fence.mark if fence else ""]).rstrip(), ()),),
            apart,
        )


def _begins(line: str) -> bool:
    """True if the line starts a new block instead of continuing the paragraph."""
    return bool(_HEADING.match(line) or _ITEM.match(line) or _RULE.match(line) or line.lstrip().startswith(("|", ">")))


def _row(line: str, apart: bool) -> AnswerBlock:
    if _RULE.match(line):
        return AnswerBlock(AnswerBlockKind.RULE, "", (AnswerSentence(line.strip(), ()),), apart)
    return AnswerBlock(AnswerBlockKind.ROW, "", (_parse_sentence(line.strip()),), apart)


def _prose(lines: list[str], apart: bool) -> AnswerBlock:
    kind, lead = AnswerBlockKind.PARAGRAPH, ""
    for pattern, meant in (
        (_HEADING, AnswerBlockKind.HEADING),
        (_ITEM, AnswerBlockKind.ITEM),
        (_QUOTE, AnswerBlockKind.PARAGRAPH),
    ):
        if match := pattern.match(lines[0]):
            kind, lead = meant, match[0]
            break
    first = lines[0][len(lead) :]
    whole = " ".join([first.strip(), *(_QUOTE.sub("", line).strip() for line in lines[1:])])
    whole = _AROUND.sub(r"\1", whole)
    settled = _BEHIND.sub(lambda found: found[2].strip() + found[1], whole)
    # A full stop inside code does not end a sentence.
    masked = _CODE.sub(lambda code: "X" * len(code[0]), settled)
    return AnswerBlock(
        kind, lead, tuple(_parse_sentence(settled[start:end]) for start, end in split_sentences(masked)), apart
    )


def _parse_sentence(text: str) -> AnswerSentence:
    return AnswerSentence(strip_marks(text).strip(), find_positions(text))


def _add_citations(block: AnswerBlock, named: tuple[int, ...]) -> AnswerBlock:
    last = block.said[-1]
    with_more = AnswerSentence(last.text, tuple(dict.fromkeys([*last.named, *named])))
    return AnswerBlock(block.kind, block.lead, (*block.said[:-1], with_more), block.apart)


_END = re.compile(r"[.!?…:;]+[\"'”’)*_`]*$|\s*\|$")


def append_note(said: str, note: str, kind: AnswerBlockKind) -> str:
    """Append a note before the full stop of a sentence, in the last cell of a row, or below code."""
    if not note:
        return said
    if kind is AnswerBlockKind.CODE:
        return f"{said}\n\n{note}"
    end = _END.search(said)
    at = end.start() if end and end.start() else len(said)
    return f"{said[:at]} {note}{said[at:]}"


def join_blocks(parts: list[tuple[AnswerBlock, str]]) -> str:
    """Join blocks with their texts into one answer."""
    out = ""
    for block, text in parts:
        between = "\n\n" if block.apart or block.kind in (AnswerBlockKind.CODE, AnswerBlockKind.HEADING) else "\n"
        out += (between if out else "") + block.lead + text
    return out
