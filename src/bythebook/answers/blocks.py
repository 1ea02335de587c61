"""Sections and their blocks: what an answer without a model can show as a whole.

A chunk is cut for retrieval. A reader wants the section again: its neighbours on the page under the same headings are
joined to it. A section consists of blocks (a paragraph, a list, a table, a code block), and blocks that only make sense
together are units: a lead sentence with what it introduces, a term with its description, code with the text before it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from bythebook.chunking.spans import Span, SpanKind, find_open_fence, split_spans
from bythebook.retrieval.retriever import to_result
from bythebook.sources import BlockKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bythebook.chunking import Chunk
    from bythebook.index.provider import IndexSnapshot
    from bythebook.retrieval import RetrievalResult

_NEIGHBOURS, _MOST_NEIGHBOURS = 2, 8
"""Chunks before and after a passage that are joined to it, and how many if they end inside a code block."""
_KINDS = {
    SpanKind.SENTENCE: BlockKind.PARAGRAPH,
    SpanKind.ITEM: BlockKind.LIST,
    SpanKind.CODE: BlockKind.CODE,
    SpanKind.ROW: BlockKind.TABLE,
}
_MAX_TERM_WORDS = 7
_SENTENCE_END = re.compile(r"[.!?…,;]$")
_NAME = re.compile(r"[`\"']?[-\w.:$@<>/\[\]]*[A-Za-z_][\w.:$@<>/\[\]-]*(?:\(.*\))?[`\"']?")
_LABEL = re.compile(
    r"(?:tip|notes?|warning|info|danger|check|important|caution|notice|hint|attention|technical details)\W*",
    re.IGNORECASE,
)
_NOTE = re.compile(r"(?:default|type|added in|changed in|deprecated|new in|versionadded|returns?|raises?)\b", re.I)


class PassageBlock(NamedTuple):
    """A block of a section: `text[start:end]`, with its spans."""

    kind: BlockKind
    start: int
    end: int
    spans: tuple[Span, ...]


class Quote(NamedTuple):
    """A part of a passage that is shown verbatim."""

    result: RetrievalResult
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.result.text[self.start : self.end]


@dataclass(frozen=True)
class Section:
    """The passages of one section that follow each other on the page, as one text."""

    results: tuple[RetrievalResult, ...]
    text: str

    @property
    def headings(self) -> tuple[str, ...]:
        return self.results[0].heading_hierarchy or (self.results[0].title,)

    @property
    def fence(self) -> str:
        return self.results[0].fence

    @cached_property
    def blocks(self) -> tuple[PassageBlock, ...]:
        return split_blocks(self.text, fence=self.fence)

    @cached_property
    def units(self) -> tuple[tuple[int, ...], ...]:
        """The blocks that read on their own, each as the indices of the blocks that belong together."""
        return tuple(_find_units(self))

    @cached_property
    def inline_code(self) -> tuple[tuple[int, int], ...]:
        """The start and end of each piece of inline code, without those that have a backtick themselves."""
        base = self.results[0].start
        ranges = {
            (result.start - base + start, result.start - base + end)
            for result in self.results
            for start, end in result.inline_code
        }
        return tuple(sorted(each for each in ranges if "`" not in self.text[slice(*each)]))

    def block_text(self, index: int) -> str:
        block = self.blocks[index]
        return self.text[block.start : block.end]

    def quotes(self, start: int, end: int) -> list[Quote]:
        """The range as quotes of the passages that contain it: one, or several where it spans passages."""
        base = self.results[0].start
        found: list[Quote] = []
        for result in self.results:
            first = result.start - base
            last = first + len(result.text)
            if first <= start < last:
                stop = min(end, last)
                found.append(Quote(result, start - first, stop - first))
                start = stop + len(self.text[stop:end]) - len(self.text[stop:end].lstrip())
            if start >= end:
                break
        return found


@lru_cache(maxsize=256)
def split_blocks(text: str, *, fence: str = "") -> tuple[PassageBlock, ...]:
    """The blocks of a text in order. Blank lines separate them; a code block is always one."""
    groups: list[list[Span]] = []
    for span in split_spans(text, fence=fence):
        if groups and not _is_new_block(text, groups[-1], span):
            groups[-1].append(span)
        else:
            groups.append([span])
    return tuple(_make_block(text, group) for group in groups)


def _is_new_block(text: str, group: Sequence[Span], span: Span) -> bool:
    if SpanKind.CODE in (group[-1].kind, span.kind) or SpanKind.ROW in (group[-1].kind, span.kind):
        return group[-1].kind is not span.kind or span.kind is SpanKind.CODE
    if "\n\n" in text[group[-1].end : span.start]:
        return True
    # An item below a sentence begins a list; a sentence below an item continues it.
    return span.kind is SpanKind.ITEM and group[0].kind is SpanKind.SENTENCE


def _make_block(text: str, group: Sequence[Span]) -> PassageBlock:
    start = text.rfind("\n", 0, group[0].start) + 1
    start = start if not text[start : group[0].start].strip(" \t-*+.)|0123456789") else group[0].start
    return PassageBlock(_KINDS[group[0].kind], start, group[-1].end, tuple(group))


def _find_units(section: Section) -> Iterator[tuple[int, ...]]:
    blocks = section.blocks
    entries = _term_starts(section)
    ends = dict(pairwise([*sorted(entries), len(blocks)]))
    index = 0
    while index < len(blocks):
        if index in entries:
            yield tuple(range(index, ends[index]))
            index = ends[index]
            continue
        last = index
        while last + 1 < len(blocks) and last + 1 not in entries and _belongs(section, last):
            last += 1
        yield tuple(range(index, last + 1))
        index = last + 1


def _belongs(section: Section, index: int) -> bool:
    """Whether the next block belongs to this one: it is introduced by it, or is its example or its default."""
    block, after = section.blocks[index], section.blocks[index + 1]
    if block.kind is BlockKind.PARAGRAPH:
        introduces = section.block_text(index).endswith((":", "...")) or _LABEL.fullmatch(section.block_text(index))
        return bool(introduces) or after.kind in (BlockKind.CODE, BlockKind.TABLE)
    return False


def _term_starts(section: Section) -> set[int]:
    """The blocks that are a term whose description follows: options, functions, glossary entries."""
    starts = [index for index, following in pairwise(range(len(section.blocks))) if _is_term(section, index, following)]
    described = sum(bool(_NAME.fullmatch(section.block_text(index))) for index in starts)
    # One short line may be anything, such as the label of a tab; a list of terms has several, or looks like code.
    return set(starts) if described and (len(starts) > 1 or _looks_like_code(section.block_text(starts[0]))) else set()


def _is_term(section: Section, index: int, following: int) -> bool:
    block, after = section.blocks[index], section.blocks[following]
    text = section.block_text(index)
    return (
        block.kind is BlockKind.PARAGRAPH
        and after.kind is BlockKind.PARAGRAPH
        and "\n" not in text
        and len(text.split()) <= _MAX_TERM_WORDS
        and not _SENTENCE_END.search(text)
        and not text.endswith(":")
        and not _NOTE.match(text)
        and not _LABEL.fullmatch(text)
    )


def _looks_like_code(text: str) -> bool:
    return bool(re.search(r"[_(]|^--?\w|[a-z][A-Z]|\w\.\w", text)) or (text.isupper() and len(text) > 3)


async def join_section(snapshot: IndexSnapshot, result: RetrievalResult) -> Section:
    """The section of a passage: the passage, joined with its neighbours under the same headings."""
    page = snapshot.catalog.get_page(result.url)
    alone = Section((result,), result.text)
    if page is None or page.text[result.start : result.start + len(result.text)] != result.text:
        return alone
    path = " > ".join(result.heading_hierarchy)
    ids = [record.chunk_id for record in snapshot.catalog.chunks_of_pages([result.url]) if record.headings == path]
    if len(ids) < 2:
        return alone
    fetched = (await snapshot.store.fetch(ids)).values()
    known = {passage.chunk.chunk_index: passage.chunk for passage in fetched}
    parts = [result]
    before = range(result.chunk_index - 1, result.chunk_index - 1 - _MOST_NEIGHBOURS, -1)
    after = range(result.chunk_index + 1, result.chunk_index + 1 + _MOST_NEIGHBOURS)
    for indices in (before, after):
        parts = _extend(parts, [known[index] for index in indices if index in known], page.text)
    return Section(tuple(parts), page.text[parts[0].start : _end(parts[-1])])


def _extend(parts: list[RetrievalResult], chunks: Sequence[Chunk], page: str) -> list[RetrievalResult]:
    """Add these chunks, which lead away from `parts`, up to the first that does not follow immediately."""
    hit = parts[0]
    for added, chunk in enumerate(chunks):
        leads_back = chunk.start < parts[0].start
        is_torn = parts[0].fence if leads_back else find_open_fence(_fenced_text(parts))
        gap = page[chunk.end : parts[0].start] if leads_back else page[_end(parts[-1]) : chunk.start]
        # Two sections that follow each other may have the same headings. Then there is a heading between their chunks.
        # The chunks of an attached collection have no places in their page.
        if gap.strip() or page[chunk.start : chunk.end] != chunk.text or (added >= _NEIGHBOURS and not is_torn):
            break
        part = to_result(chunk, position=hit.position, score=hit.score, rerank_score=hit.rerank_score)
        parts = [part, *parts] if leads_back else [*parts, part]
    return parts


def _end(result: RetrievalResult) -> int:
    return result.start + len(result.text)


def _fenced_text(parts: Sequence[RetrievalResult]) -> str:
    """The last chunk with the fence of the code block in which it begins."""
    return f"{parts[-1].fence}\n{parts[-1].text}" if parts[-1].fence else parts[-1].text
