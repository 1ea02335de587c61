"""Verification: every sentence of a model's answer needs a place in the retrieved passages that proves it.

A sentence that is not proven gives way to the book's own words: the quote that comes nearest to it, verbatim and in
quotation marks. Where nothing comes near, or the quote is in the answer already, the sentence is removed.

Parts that claim nothing themselves:

- A heading, an introduction ("Here is how:") or a phrase ("In summary,") stays or goes with the part it belongs to.
- A sentence that says the book lacks something cannot be quoted. It stays beside verified sentences. If nothing else is
  proven, `declined` is true and the caller refuses the question.

The answer's Markdown is parsed into blocks, verified sentence by sentence, and assembled again.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass, replace
from enum import Enum, StrEnum, auto
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bythebook.answers import SentenceProof
from bythebook.answers.citation_markers import (
    CitationResolver,
    citation_mark,
    find_positions,
    render_numbers,
    strip_marks,
)
from bythebook.answers.code_comparison import code_difference, nearest_code
from bythebook.answers.markdown_scanner import Fence
from bythebook.answers.sanitizer import StreamSanitizer, sanitize
from bythebook.answers.support import CandidateQuote, PassageMatcher, Support, TermWeights
from bythebook.chunking.sentences import split_sentences
from bythebook.retrieval import Citation, RetrievalResult, to_citation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bythebook.models.cross_encoder import CrossEncoder

    Unsupported = Literal["remove", "mark"]


UNVERIFIED = "[unverified]"
_ONLY_SOURCES = "what would stay is nothing but a list of sources"
_LONGEST_INTRODUCTION = 14
_LONGEST_LABEL = 6
"""In words. A longer line in bold is a sentence."""
_MOST_PARTS = 400
"""Sentences, rows and code blocks of one answer that are verified. No model writes more."""

_TABLES = json.loads(Path(__file__).with_suffix(".json").read_bytes())
_LACKS = re.compile("|".join(_TABLES["declines"]), re.IGNORECASE)
"""How a model says that the book lacks something, in the languages of the widget."""
_SAYS_NOTHING = frozenset(_TABLES["says_nothing"].split())
_BOLD = re.compile(r"(\*\*|__).{1,80}\1:?|(\*\*|__).{1,80}:\2")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?|\d+")


_LONGEST_DECLINE = 400


@dataclass(frozen=True, slots=True)
class Proof:
    """The verified part of a model's answer."""

    text: str
    """Markdown with citations [1], [2] in order of appearance. Empty if nothing was verified."""
    citations: tuple[Citation, ...]
    rejected: tuple[SentenceProof, ...]
    """Claims that were removed, replaced by a quote, or marked as unverified."""
    sentences: tuple[SentenceProof, ...]
    """Every sentence of the answer, in order, with its verdict and reason."""
    declined: bool
    """True if the model said that the book does not cover the question."""
    share: float
    """The share of the answer's claims that are proven."""
    milliseconds: float

    @property
    def proven(self) -> bool:
        """True if anything is left to answer with."""
        return bool(self.citations)


class _Verdict(Enum):
    PROVEN = auto()
    QUOTED = auto()
    """Not proven; the book's own words stand in its place."""
    DOUBTED = auto()
    LACKS = auto()
    EMPTY = auto()
    """Claims nothing: stays or goes with its neighbours."""


_STAYS = (_Verdict.PROVEN, _Verdict.QUOTED)


async def prove(
    answer: str,
    results: Sequence[RetrievalResult],
    *,
    snapshot: TermWeights,
    entailment: CrossEncoder | None = None,
    unsupported: Unsupported = "remove",
    cut_off: bool = False,
) -> Proof:
    """Verify every sentence of the answer against the retrieved passages. `cut_off`: its end is missing."""
    started = time.perf_counter()
    desk = PassageMatcher(results, snapshot, entailment=entailment)
    blocks = parse_blocks(sanitize(answer, CitationResolver(results, aliases=answer)))
    said = [(block, one) for block in blocks for one in block.said][:_MOST_PARTS]
    if said and _is_cut_off(said[-1][0], alone=len(said) == 1, cut_off=cut_off):
        said.pop()
    parts = [_Part(block, one.text, Support.of_nothing(one.text)) for block, one in said]
    asked = [at for at, part in enumerate(parts) if part.claims]
    supports = await desk.prove([(_plain_row(parts[at].text), said[at][1].named) for at in asked])
    for at, support in zip(asked, supports, strict=True):
        parts[at] = replace(parts[at], support=support)
    parts = [_compare_code(part, desk) if part.block.kind is AnswerBlockKind.CODE else part for part in parts]
    return _assemble_proof(_judge(parts, unsupported), unsupported=unsupported, started=started)


def _is_cut_off(last: AnswerBlock, *, alone: bool, cut_off: bool) -> bool:
    """Whether the last sentence has no end: the limit of tokens was reached, or a paragraph stops without a mark."""
    ended = last.kind is not AnswerBlockKind.PARAGRAPH or bool(_END.search(last.said[-1].text))
    return (cut_off and (not ended or last.kind is not AnswerBlockKind.PARAGRAPH)) or (not ended and not alone)


def _plain_row(text: str) -> str:
    return ", ".join(cell.strip() for cell in text.strip("| ").split("|")) if text.startswith("|") else text


def _compare_code(part: _Part, desk: PassageMatcher) -> _Part:
    """The part with the verdict on its code: its objection, and the book's code that proves it or comes nearest."""
    codes = desk.codes
    texts = [code.text for code in codes]
    objection = code_difference(part.text, texts, prose=desk.prose)
    if not objection:
        proving = [code for code in codes if not code_difference(part.text, [code.text], prose=())]
        quotes = tuple(proving[:1]) or desk.find_text(part.text)
        return replace(part, support=replace(part.support, quotes=quotes, checked=("code",)))
    near = nearest_code(part.text, texts)
    quotes = () if near is None else (codes[near],)
    return replace(part, support=replace(part.support, quotes=quotes, objection=objection))


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
        label = len(self.text.split()) <= _LONGEST_LABEL and not self.text.rstrip("*_").endswith((".", "!", "?"))
        return 7 if bold and (label or not self.support.holds) else 0


def _judge(parts: Sequence[_Part], unsupported: Unsupported) -> list[tuple[_Part, _Verdict]]:
    judged = [(part, _verdict(part)) for part in parts]
    # The first row of a table is its header.
    for index, (part, _) in enumerate(judged[1:], start=1):
        if part.block.kind is AnswerBlockKind.RULE and judged[index - 1][0].block.kind is AnswerBlockKind.ROW:
            judged[index - 1] = (judged[index - 1][0], _Verdict.EMPTY)
    proven = [quote for part, verdict in judged if verdict is _Verdict.PROVEN for quote in part.support.quotes]
    declined = any(verdict is _Verdict.LACKS for _, verdict in judged)
    if unsupported == "mark" or (declined and not proven):
        return judged
    for index, (part, verdict) in enumerate(judged):
        near = _nearest(part) if verdict is _Verdict.DOUBTED else None
        if near is not None and not any(map(near.overlaps, proven)):
            proven.append(near)
            judged[index] = (replace(part, support=replace(part.support, quotes=(near,))), _Verdict.QUOTED)
    return judged


def _nearest(part: _Part) -> CandidateQuote | None:
    """The quote that can stand in place of a part: code for code, a sentence for a sentence. A row has none."""
    if part.block.kind is AnswerBlockKind.CODE:
        return part.support.quotes[0] if part.support.quotes else None
    return part.support.near if part.block.kind is not AnswerBlockKind.ROW else None


def _verdict(part: _Part) -> _Verdict:
    if part.block.kind is AnswerBlockKind.CODE:
        return _Verdict.DOUBTED if part.support.objection or not part.support.quotes else _Verdict.PROVEN
    if not part.claims or part.heads:
        return _Verdict.EMPTY
    if part.support.holds:
        return _Verdict.PROVEN
    if _LACKS.search(part.text[:_LONGEST_DECLINE]):
        return _Verdict.LACKS
    short = len(part.text.split()) <= _LONGEST_INTRODUCTION
    return _Verdict.EMPTY if part.introduces and short and not part.support.objection else _Verdict.DOUBTED


def _assemble_proof(judged: Sequence[tuple[_Part, _Verdict]], *, unsupported: Unsupported, started: float) -> Proof:
    """Assemble the answer from the parts that stay, and number the citations in order."""
    proven = any(verdict in _STAYS for _, verdict in judged)
    stays = _select_remaining([verdict for _, verdict in judged], [part for part, _ in judged], unsupported)
    numbers: dict[CandidateQuote, int] = {}
    written: list[tuple[_Part, str]] = []
    sentences: list[SentenceProof] = []
    for (part, verdict), stay in zip(judged, stays, strict=True):
        if not (stay and proven):
            sentences.append(_explain(part, verdict, ()))
            continue
        quotes = part.support.quotes if verdict in _STAYS else ()
        cited = tuple(numbers.setdefault(quote, len(numbers) + 1) for quote in quotes)
        note = "".join(map(citation_mark, cited)) if verdict is not _Verdict.DOUBTED else UNVERIFIED
        quoted = verdict is _Verdict.QUOTED
        text = f"{_own_words(part)}{note}" if quoted else append_note(part.text, note, part.block.kind)
        written.append((part, text))
        sentences.append(_explain(part, verdict, cited, stays=True))
    text = render_numbers(StreamSanitizer(CitationResolver(())).resanitize(_join_parts(written)))
    if not all(f"[{number}]" in text for number in numbers.values()):
        # The remaining parts together look like a source list. An empty answer is better than half of one.
        text, numbers = "", {}
        sentences = [replace(one, verdict="removed", reason=_ONLY_SOURCES, citations=()) for one in sentences]
    doubted = [
        said
        for said, (_, verdict) in zip(sentences, judged, strict=True)
        if verdict in (_Verdict.DOUBTED, _Verdict.QUOTED)
    ]
    supported = sum(one.verdict == "kept" and bool(one.citations) for one in sentences)
    return Proof(
        text=text,
        citations=tuple(to_citation(quote.result, quote.start, quote.end, number=n) for quote, n in numbers.items()),
        rejected=tuple(doubted),
        sentences=tuple(sentences),
        declined=any(verdict is _Verdict.LACKS for _, verdict in judged),
        share=supported / (supported + len(doubted)) if supported else 0.0,
        milliseconds=(time.perf_counter() - started) * 1000,
    )


def _own_words(part: _Part) -> str:
    """The book's words in place of a part: code as it is, a sentence in quotation marks."""
    (quote,) = part.support.quotes
    if part.block.kind is not AnswerBlockKind.CODE:
        return f"“{' '.join(quote.text.split())}” "
    fence = quote.result.fence
    code = f"{fence}\n{quote.text}" if fence and quote.start == 0 else quote.text
    opening = Fence.parse(code.split("\n", 1)[0])
    closed = opening is not None and opening.is_closed_by(code.rstrip().rsplit("\n", 1)[-1])
    return f"{code}\n\n" if closed or opening is None else f"{code}\n{opening.mark}\n\n"


def _explain(part: _Part, verdict: _Verdict, cited: tuple[int, ...], *, stays: bool = False) -> SentenceProof:
    """The verdict on a part, with the reason."""
    reasons = {
        _Verdict.LACKS: "it says what the book lacks, which no quote can show",
        _Verdict.EMPTY: "it claims nothing by itself, and goes with what it belongs to",
    }
    if part.block.kind is AnswerBlockKind.CODE:
        reasons[_Verdict.PROVEN] = "every line stands in the book's code"
    words: dict[_Verdict, Literal["kept", "marked", "replaced"]] = {
        _Verdict.DOUBTED: "marked",
        _Verdict.QUOTED: "replaced",
    }
    return SentenceProof(
        text=part.text,
        verdict=words.get(verdict, "kept") if stays else "removed",
        reason=reasons.get(verdict) or part.support.reason,
        citations=cited,
        confidence=0.0 if verdict in reasons and verdict is not _Verdict.PROVEN else round(part.support.confidence, 3),
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
    alive = {*_STAYS, _Verdict.DOUBTED} if unsupported == "mark" else {*_STAYS}
    return [
        verdict is _Verdict.LACKS
        or (verdict in alive and _has_what_it_introduces(parts, verdicts, index, alive))
        or (verdict is _Verdict.EMPTY and any(verdicts[other] in alive for other in _dependents(parts, index)))
        for index, verdict in enumerate(verdicts)
    ]


def _has_what_it_introduces(
    parts: Sequence[_Part], verdicts: Sequence[_Verdict], index: int, alive: set[_Verdict]
) -> bool:
    """False for an introduction of a list, a table or code of which nothing is left, even if it is proven itself."""
    after = [other for other in _dependents(parts, index) if other > index] if parts[index].introduces else []
    listed = [other for other in after if parts[other].block.kind is not AnswerBlockKind.PARAGRAPH]
    return not listed or any(verdicts[other] in alive for other in listed)


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


_HEADING = re.compile(r"\s{0,3}(#{1,6})\s+")
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,4}[.)])\s+(?:\[[ xX]\]\s+)?")
_QUOTE = re.compile(r"\s*>\s?")
_RULE = re.compile(r"\s*+\|?\s*+:?-{2,}+[\s:|-]*+$|\s*+(?:[-*_]\s*+){3,}+$")
_CODE = re.compile(r"`[^`\n]*`")
_MARKS = "\U000f0000-\U000f0fff"
_AROUND = re.compile(rf"\(\s*([{_MARKS}][{_MARKS}\s,;]*)\)")
# A citation mark after the full stop belongs to the sentence before it.
_BEHIND = re.compile(rf"(?<![.!?…:])([.!?…:]++[\"'”’)*_]*+)(\s*+[{_MARKS}]++)(?=\s|$|[^\w{_MARKS}])")


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


_END = re.compile(r"(?<![.!?…:;])[.!?…:;]++[\"'”’)*_`]*+$|(?<!\s)\s*+\|$")


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
