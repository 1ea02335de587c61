"""Answers without a model: the block of the book that answers, verbatim, under its heading path.

The best passages are joined to their sections and cut into units that read on their own. The reranker reads each unit
under its headings and chooses; without it, the words of the question do. What follows the chosen unit is added as far
as the kind of question asks for it: code for "how", the remedy for an error, nothing for a value.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import accumulate, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bythebook.answers import SectionLink
from bythebook.answers.blocks import Section, join_section
from bythebook.chunking.spans import Span, SpanKind, find_open_fence
from bythebook.index.terms import weighted_overlap
from bythebook.retrieval import to_citation
from bythebook.retrieval.entries import defines, find_needed_words
from bythebook.retrieval.evidence import definition_pattern
from bythebook.retrieval.text_fragments import build_link
from bythebook.sources import BlockKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bythebook.answers.blocks import PassageBlock
    from bythebook.index.provider import IndexSnapshot
    from bythebook.retrieval import Citation, RetrievalResult
    from bythebook.retrieval.reranker import Reading


MODEL = "extractive"
_SECTIONS = 3
"""Sections whose units are compared."""
_CHARACTERS_PER_TOKEN = 4
_READ_CHARACTERS = 6000
"""How much is compared without the reranker."""
_UNIT_CHARACTERS = 420
"""The most it reads of one unit."""
_RANK_STEP = 0.5
"""What a unit of the next section must score more than one of the section before it, in logits."""
_DEFINING = 3.0
"""What a unit is worth more that defines the term of the question, in logits."""
_MAX_WORDS = 150
"""About the longest prose of an answer, without code and tables."""
_MAX_CODE_LINES, _WHOLE_LINES = 30, 8
"""The most lines of code in a block that is extended, and the lines of a whole example."""
_LONGEST_LIST, _LONGEST_TABLE = 12, 8
_SHORT_LIST_WORDS = 60
"""A list of more items is shown whole if it has no more words than this."""
_NEAR = 4.0
"""How far below the best unit another section may score to be worth a link, in logits."""
_SAME_NAME = 0.95
"""The share of the question's terms in a heading that makes it the subject of the question."""
_FEWEST_WORDS = 4
_NAMED, _ONLY_NAMED, _CERTAIN = (1.0, 0.0, 1.0), (12.0, 0.0, 2.0), (12.0, 6.0, 3.0)
"""What a section that the question names is worth, how much less each next one is, and what its beginning is worth more
than its rest, in logits."""
_WORDS_PER_LOGIT, _FULL_SECTION = 25, 4.0
"""What the words of a section are worth to a question that is only its name."""
_FRONT_WORDS = 80
"""The least words of an answer from the beginning of a named section."""
_MOST_LINES, _MOST_LINKS = 5, 3
_NEAR_FLOOR = -5.0
"""The least score of a section that is worth a link in a refusal, in logits."""
_NEAR_OVERLAP = 0.4
"""The same without the reranker: the share of the question's words."""
_NOTE = re.compile(r"(?:added|changed|deprecated|new) in ", re.IGNORECASE)
_LINE = re.compile(r"[^\n]+")
_MARK = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+")
_MARKED = (SpanKind.SENTENCE, SpanKind.ITEM)


class QuestionShape(NamedTuple):
    """What kind of answer a question asks for."""

    code: float
    """What code is worth to the answer, in logits: steps and examples have code."""
    words: int
    """The answer is extended to at least this many words, if its section has them."""
    front: bool = False
    """The question only names a subject: the beginning of its section answers it."""


_FORMS = json.loads(Path(__file__).with_suffix(".json").read_bytes())
_EXAMPLE, _CODE, _VALUE, _ASKS = (re.compile(_FORMS[name], re.I) for name in ("example", "code", "value", "asks"))
_ERROR = re.compile(_FORMS["error"])
_MAX_NAME_WORDS = 4


_EXAMPLE_SHAPE = QuestionShape(code=3.0, words=0)
_SHAPES = (
    (_EXAMPLE, _EXAMPLE_SHAPE),
    (_ERROR, QuestionShape(code=0.5, words=70)),
    (_CODE, QuestionShape(code=1.0, words=30)),
    (_VALUE, QuestionShape(code=0.0, words=0)),
)
_ANY_SHAPE = QuestionShape(code=0.0, words=40)
_NAME_SHAPE = QuestionShape(code=0.5, words=40, front=True)


def classify_question(question: str) -> QuestionShape:
    """What kind of answer the question asks for."""
    if definition_pattern(question):
        return _ANY_SHAPE
    is_name = not _ASKS.search(question) and len(question.split()) <= _MAX_NAME_WORDS
    return next(
        (shape for pattern, shape in _SHAPES if pattern.search(question)), _NAME_SHAPE if is_name else _ANY_SHAPE
    )


@dataclass(frozen=True, slots=True)
class ExtractiveAnswer:
    """An answer in the book's own words."""

    text: str
    citations: tuple[Citation, ...]
    sentence: str
    """The sentence, row or item that answers, as it is in the text."""
    see_also: tuple[SectionLink, ...] = ()


class _Piece(NamedTuple):
    """A part of a unit that is short enough to be read, with its score."""

    rank: int
    section: Section
    unit: tuple[int, ...]
    start: int
    end: int
    text: str
    score: float = 0.0
    logit: float = 0.0
    """The score without what the kind of question and the place of the piece add."""

    @property
    def read(self) -> str:
        """What the reranker reads: the piece under its headings."""
        return f"{' > '.join(self.section.headings[-2:])}\n{self.text}"


class AnswerReader(NamedTuple):
    """Compares a question with parts of the book: by its words, and with the reranker if there is one."""

    question: str
    snapshot: IndexSnapshot
    reading: Reading | None
    """What the reranker has read of the passages, and may still read. Without it, words are compared."""
    named: frozenset[str] = frozenset()
    """The chunks that the question names as a whole, by their heading or as the front of the book."""
    certain: bool = False
    """Whether no other section can answer better than these."""

    def is_named(self, section: Section) -> bool:
        """Whether the question names this section."""
        return bool(self.named & {result.chunk_id for result in section.results})

    def overlap(self, text: str) -> float:
        """The share of the question's terms, weighted by idf, that are in the text."""
        terms = self.snapshot.bm25.terms
        return weighted_overlap(self.snapshot.idf_weights(terms(self.question)), terms(text))

    async def score(self, texts: Sequence[str]) -> list[float]:
        if self.reading is None:
            return [10 * self.overlap(text) for text in texts]
        return await self.reading.model.score([(self.question, text) for text in texts])

    @property
    def room(self) -> int:
        """How many characters may be compared with the question."""
        return self.reading.budget.block_tokens * _CHARACTERS_PER_TOKEN if self.reading else _READ_CHARACTERS


async def compose_answer(reader: AnswerReader, results: Sequence[RetrievalResult]) -> ExtractiveAnswer | None:
    """The best block of these passages with what belongs to it. None if there is nothing to quote."""
    shape = classify_question(reader.question)
    sections = await _join_sections(reader.snapshot, results)
    scored = await _score_pieces(reader, _choose_pieces(reader, sections), shape)
    if not scored:
        return None
    best = max(scored, key=lambda piece: piece.score)
    needed = find_needed_words(reader.question)
    if needed and not needed.search(best.section.text):
        return None
    if shape is not _EXAMPLE_SHAPE and (reader.certain or shape.front) and reader.is_named(best.section):
        shape = shape._replace(words=max(shape.words, _FRONT_WORDS), front=True)
    elif reader.overlap(best.section.headings[-1]) < _SAME_NAME:
        shape = shape._replace(front=False)
    if defines(best.text, definition_pattern(reader.question)):
        shape = shape._replace(front=False)
    chosen = _extend_unit(best.section, best.unit, shape)
    span = await _answering_span(reader, best)
    near = sorted((piece for piece in scored if piece.logit >= best.logit - _NEAR), key=lambda piece: -piece.score)
    others = [piece.section.results[0] for piece in near if piece.section.headings != best.section.headings]
    text, citations = _render(reader, best, chosen, span)
    return ExtractiveAnswer(text, citations, best.section.text[span.start : span.end], link_sections(others))


async def _join_sections(snapshot: IndexSnapshot, results: Sequence[RetrievalResult]) -> list[Section]:
    sections: list[Section] = []
    for result in results:
        if any(result.chunk_id in {part.chunk_id for part in section.results} for section in sections):
            continue
        sections.append(await join_section(snapshot, result))
        if len(sections) == _SECTIONS:
            break
    return sections


def _choose_pieces(reader: AnswerReader, sections: Sequence[Section]) -> list[_Piece]:
    """The pieces with most of the question's words, as many as are read for one answer."""
    pieces = [
        piece
        for rank, section in enumerate(sections)
        for unit in section.units
        for piece in _split_unit(rank, section, unit)
    ]
    pieces.sort(key=lambda piece: -(reader.overlap(piece.text) - 0.1 * piece.rank))
    chosen: list[_Piece] = []
    room = reader.room
    for piece in pieces:
        if len(piece.read) <= room:
            chosen.append(piece)
            room -= len(piece.read)
    return chosen


def _split_unit(rank: int, section: Section, unit: tuple[int, ...]) -> Iterator[_Piece]:
    """The unit as pieces of at most `_UNIT_CHARACTERS`: whole, its spans in groups, or the rows of its table."""
    blocks = [section.blocks[index] for index in unit]
    table = blocks[-1] if blocks[-1].kind is BlockKind.TABLE else None
    if table is not None:
        for row in table.spans:
            yield _Piece(rank, section, unit, row.start, row.end, _describe_row(section.text, table, row))
        blocks = blocks[:-1]
    spans = [span for block in blocks for span in block.spans]
    if not spans:
        return
    lead = _lead(section, unit) if blocks[-1].kind is BlockKind.LIST else ""
    start, group = spans[0].start, list[Span]()
    for span, following in zip_longest(spans, spans[1:]):
        group.append(span)
        if following is None or following.end - group[0].start > _UNIT_CHARACTERS:
            first, last = group[0].start, span.end
            text = f"{lead}\n{section.text[first:last]}" if lead and first > start else section.text[first:last]
            yield _Piece(rank, section, unit, first, last, text[:_UNIT_CHARACTERS])
            group = []


def _lead(section: Section, unit: tuple[int, ...]) -> str:
    """The sentence that introduces the list of a unit: every piece of a long list needs it."""
    lead = section.blocks[unit[0]].spans[-1]
    return section.text[lead.start : lead.end] if len(unit) > 1 else ""


def _describe_row(text: str, table: PassageBlock, row: Span) -> str:
    """The row in words, each cell behind the name of its column."""
    names, cells = (
        [cell.strip() for cell in text[line.start : line.end].strip().strip("|").split("|")]
        for line in (table.spans[0], row)
    )
    if row is table.spans[0] or len(names) != len(cells):
        return text[row.start : row.end][:_UNIT_CHARACTERS]
    return "; ".join(f"{name}: {cell}" for name, cell in zip(names, cells, strict=True) if cell)[:_UNIT_CHARACTERS]


async def _score_pieces(reader: AnswerReader, pieces: Sequence[_Piece], shape: QuestionShape) -> list[_Piece]:
    scores = await reader.score([piece.read for piece in pieces])
    return [
        piece._replace(score=score + _prior(reader, piece, shape), logit=score)
        for piece, score in zip(pieces, scores, strict=True)
    ]


def _prior(reader: AnswerReader, piece: _Piece, shape: QuestionShape) -> float:
    """What the kind of question and the place of a piece add to its score."""
    blocks = [piece.section.blocks[index] for index in piece.unit]
    has_code = any(block.kind is BlockKind.CODE for block in blocks)
    prior = -_RANK_STEP * piece.rank
    if has_code:
        # A reader who asks for an example wants a whole one, and the first of a section.
        whole = min(_code_lines(piece.section, piece.unit), _WHOLE_LINES) / _WHOLE_LINES - 0.1 * piece.unit[0]
        prior += shape.code + (whole if shape is _EXAMPLE_SHAPE else 0.0)
    if defines(piece.text, definition_pattern(reader.question)):
        prior += _DEFINING
    needed = find_needed_words(reader.question)
    has_needed = bool(needed and needed.search(piece.text))
    if needed and not has_needed:
        prior -= 3.0
    if reader.is_named(piece.section):
        worth, step, front = _CERTAIN if reader.certain else _ONLY_NAMED if shape.front else _NAMED
        prior += worth - step * piece.rank + (front if 0 in piece.unit else 0.0)
        # Of several sections with this name, a short one only points to another.
        prior += min(len(piece.section.text.split()) / _WORDS_PER_LOGIT, _FULL_SECTION) if shape.front else 0.0
    elif 0 in piece.unit and reader.overlap(" ".join(piece.section.headings[-1:])) >= _SAME_NAME:
        prior += 2.0 if shape.front else 1.0
    is_short = len(piece.text.split()) < _FEWEST_WORDS and not has_code and not has_needed
    leads_nowhere = piece.section.block_text(piece.unit[-1]).endswith(":") and blocks[-1].kind is BlockKind.PARAGRAPH
    if piece.text.rstrip().endswith("?") or is_short or leads_nowhere:
        prior -= 3.0
    return prior


def _extend_unit(section: Section, unit: tuple[int, ...], shape: QuestionShape) -> list[int]:
    """The blocks of the answer: the unit, what it refers to, and what follows as far as the question asks for it."""
    chosen = list(unit)
    units = list(section.units)
    for before in reversed(units[: units.index(unit)]):
        is_wanted = shape.front or _leans_back(section, chosen[0])
        if not is_wanted or _words(section, [*before, *chosen]) > _MAX_WORDS:
            break
        chosen = [*before, *chosen]
    while len(chosen) > 1 and chosen[0] != unit[0] and _NOTE.match(section.block_text(chosen[0])):
        del chosen[0]
    for following in units[units.index(unit) + 1 :]:
        kinds = {section.blocks[index].kind for index in chosen}
        wants_code = shape.code and BlockKind.CODE not in kinds
        brings_code = any(section.blocks[index].kind is BlockKind.CODE for index in following)
        wants_words = _words(section, chosen) < shape.words and (shape.code or not brings_code)
        if not (wants_words or (wants_code and brings_code)):
            break
        together = [*chosen, *following]
        if _words(section, together) > _MAX_WORDS or _code_lines(section, together) > _MAX_CODE_LINES:
            break
        chosen.extend(following)
    return chosen


def _code_lines(section: Section, blocks: Sequence[int]) -> int:
    return sum(
        section.block_text(index).count("\n") for index in blocks if section.blocks[index].kind is BlockKind.CODE
    )


_LEANS = re.compile(
    r"\.\.\.|…|(?:this|that|these|those|it|they|however|but|also|then|otherwise|instead|in this case|"
    r"for example|e\.g\.|so|the above|such|both|and|or|similarly|alternatively|additionally|added in|"
    r"changed in|default:)\b",
    re.IGNORECASE,
)


def _leans_back(section: Section, index: int) -> bool:
    """Whether a block cannot be read without the one before it."""
    if section.blocks[index].kind is not BlockKind.PARAGRAPH:
        return section.blocks[index - 1].kind is BlockKind.PARAGRAPH
    return bool(_LEANS.match(section.block_text(index)))


def _words(section: Section, blocks: Sequence[int]) -> int:
    """The words of prose in these blocks."""
    return sum(
        len(section.block_text(index).split()) for index in blocks if section.blocks[index].kind is not BlockKind.CODE
    )


async def _answering_span(reader: AnswerReader, piece: _Piece) -> Span:
    """The sentence, item or row of the piece that answers."""
    spans = [
        span
        for index in piece.unit
        for span in piece.section.blocks[index].spans
        if piece.start <= span.start < piece.end
    ]
    prose = [span for span in spans if span.kind is not SpanKind.CODE] or spans
    prose = [span for span in prose if not _NOTE.match(piece.section.text, span.start)] or prose
    if len(prose) == 1:
        return prose[0]
    texts = [piece.section.text[span.start : span.end] for span in prose]
    scores = await reader.score([text[:_UNIT_CHARACTERS] for text in texts])
    needed = find_needed_words(reader.question)
    ranked = (
        (score - 3 * text.endswith("?") - 5 * bool(needed and not needed.search(text)), part)
        for score, text, part in zip(scores, texts, prose, strict=True)
    )
    return max(ranked, key=lambda entry: entry[0])[1]


_Range = tuple[int, int]


def _render(reader: AnswerReader, best: _Piece, chosen: Sequence[int], span: Span) -> tuple[str, tuple[Citation, ...]]:
    """The blocks as Markdown below their heading path, with numbered citations."""
    section = best.section
    parts = [f"**{' > '.join(section.headings)}**"] if any(section.headings) else []
    groups = _group_ranges(reader, best, chosen, span)
    prose = [part for index in chosen for part in section.blocks[index].spans if part.kind in _MARKED]
    citations: list[Citation] = []
    for group in groups:
        text = "\n".join(_show(section, part, span if len(prose) > 1 else None) for part in group)
        marks = []
        for quote in (quote for part in group for quote in section.quotes(*part)):
            inside = group[0][0] <= span.start < group[-1][1] and not citations
            words = section.text[span.start : span.end] if inside else quote.text
            number = len(citations) + 1
            marks.append(f"[{number}]")
            citations.append(to_citation(quote.result, quote.start, quote.end, number=number, words=words))
        mark = " ".join(marks)
        parts.append(f"{text}\n{mark}" if text.endswith(("```", "~~~", "|")) else f"{text} {mark}")
    return "\n\n".join(parts), tuple(citations)


def _group_ranges(reader: AnswerReader, best: _Piece, chosen: Sequence[int], span: Span) -> list[list[_Range]]:
    """What is shown of the blocks, as ranges of the section. Those of a group are shown without a gap."""
    section = best.section
    groups: list[list[_Range]] = []
    for index in chosen:
        for number, part in enumerate(_cut_block(reader, section.blocks[index], best, span)):
            start, end = part
            if groups and not section.text[groups[-1][-1][1] : start].strip():
                groups[-1][-1] = (groups[-1][-1][0], end)
            elif number and groups:
                groups[-1].append(part)
            else:
                groups.append([part])
    return groups


def _cut_block(reader: AnswerReader, block: PassageBlock, best: _Piece, span: Span) -> list[_Range]:
    """The block, or the part of a long one that matters: items and rows with the question's words, sentences read."""
    text = best.section.text
    if block.kind is BlockKind.PARAGRAPH and len(text[block.start : block.end].split()) > _MAX_WORDS:
        inside = [part for part in block.spans if best.start <= part.start < best.end]
        kept = inside or block.spans[:3]
        return [(kept[0].start, kept[-1].end)]
    lines = _lines(text, block)
    if block.kind is BlockKind.TABLE and len(lines) > _LONGEST_TABLE + 2:
        rows = _most_like(reader, text, lines[2:], span)
        likeness = {row: reader.overlap(text[slice(*row)]) for row in rows}
        rows = [row for row in rows if likeness[row] >= max(likeness.values()) / 2 or row[0] <= span.start < row[1]]
        return [(lines[0][0], lines[1][1]), *rows]
    words = len(text[block.start : block.end].split())
    is_long = words > _MAX_WORDS or (len(lines) > _LONGEST_LIST and words > _SHORT_LIST_WORDS)
    if block.kind is BlockKind.LIST and is_long:
        return _most_like(reader, text, lines, span)
    return [(block.start, block.end)]


def _lines(text: str, block: PassageBlock) -> list[_Range]:
    """The rows of a table, with its rule, or the items of a list with the lines that continue them."""
    lines = [
        (match.start() + block.start, match.end() + block.start)
        for match in _LINE.finditer(text[block.start : block.end])
    ]
    if block.kind is BlockKind.TABLE:
        return lines
    items: list[_Range] = []
    for start, end in lines:
        if items and not _MARK.match(text[start:end]):
            items[-1] = (items[-1][0], end)
        else:
            items.append((start, end))
    return items


def _most_like(reader: AnswerReader, text: str, lines: Sequence[_Range], span: Span) -> list[_Range]:
    """The lines with most of the question's words, and the one that answers, in their order."""
    ranked = sorted(lines, key=lambda line: (not line[0] <= span.start < line[1], -reader.overlap(text[slice(*line)])))
    words = accumulate(len(text[slice(*line)].split()) for line in ranked)
    most = max(1, sum(total <= _MAX_WORDS for total in words))
    return sorted(ranked[: min(most, _MOST_LINES)])


def _show(section: Section, part: _Range, span: Span | None) -> str:
    """The range as Markdown: the sentence that answers in bold, and a code block that was cut in its fences."""
    start, end = part
    marks = [(at, "`") for code in section.inline_code if start <= code[0] and code[1] <= end for at in code]
    if span and span.kind in _MARKED and start <= span.start and span.end <= end:
        sentence = section.text[span.start : span.end]
        if "\n" not in sentence and "*" not in sentence and not sentence.endswith(":"):
            marks += [(span.start, "**"), (span.end, "**")]
    text = section.text[start:end]
    # A bold sentence may begin or end with code: its marks are the outer ones.
    outer = span.start if span else start
    for at, mark in sorted(marks, key=lambda each: (-each[0], (each[1] == "**") == (each[0] == outer))):
        text = f"{text[: at - start]}{mark}{text[at - start :]}"
    if start == 0 and section.results[0].table_header:
        text = f"{section.results[0].table_header}\n{text}"
    if start == 0 and section.fence:
        text = f"{section.fence}\n{text}"
    fence = find_open_fence(text)
    return f"{text}\n{fence}" if fence else text


def link_sections(results: Sequence[RetrievalResult]) -> tuple[SectionLink, ...]:
    """Links to the sections of these passages, without duplicates."""
    links: dict[str, SectionLink] = {}
    for result in results:
        title = " > ".join(result.heading_hierarchy) or result.title
        if title:
            # A bracket would end the URL in Markdown.
            url = build_link(result.url, anchor=result.anchor, words="").replace("(", "%28").replace(")", "%29")
            links.setdefault(title, SectionLink(title, url))
    return tuple(links.values())[:_MOST_LINKS]


def find_near(reader: AnswerReader, results: Sequence[RetrievalResult]) -> tuple[SectionLink, ...]:
    """Links to the sections that are near to a question which the book does not answer. Empty if none is."""
    if reader.reading is None:
        return link_sections([result for result in results if reader.overlap(result.text) >= _NEAR_OVERLAP])
    logits = reader.reading.logits
    near = [result for result in results if logits.get(result.chunk_id, _NEAR_FLOOR - 1) >= _NEAR_FLOOR]
    return link_sections(sorted(near, key=lambda result: -logits[result.chunk_id]))
