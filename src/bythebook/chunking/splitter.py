"""Cutting a page into chunks: along its headings, in whole blocks, sentences and lines, never over the limit."""

from __future__ import annotations

import hashlib
import re
import uuid
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from bythebook.chunking import Chunk, under
from bythebook.chunking.sentences import sentences
from bythebook.sources import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bythebook.sources import Block, Page

    Count = Callable[[str], int]

_WORD = re.compile(r"\S+\s*")
_LINE = re.compile(r"[^\n]+\n*")


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large chunks are, in the embedder's own tokens."""

    limit: int = 220
    overlap: int = 0
    """How much of the end of one chunk may be repeated at the start of the next, in whole sentences."""
    headings: int = 34
    """What the embedder's window has left for the heading path. A longer path takes from the text's share."""


@dataclass(frozen=True, slots=True)
class _Section:
    headings: tuple[str, ...]
    anchor: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class _Piece:
    """A stretch that is not cut further."""

    start: int
    end: int
    tokens: int
    fence: str = ""


def document_id(url: str) -> str:
    """The id of the page at `url`, on every machine."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, url))


def split(page: Page, *, count: Count, sizes: Sizes) -> Iterator[Chunk]:
    """Cut `page` into chunks of at most `sizes.limit` tokens, each within one section.

    Code and tables stay whole where they fit. The same page gives the same chunks with the same ids, and an edit
    changes the ids of the chunks it touches and of no others.
    """
    seen: Counter[str] = Counter()
    index = 0
    for section in _sections(page):
        limit = _limit(section.headings, count=count, sizes=sizes)
        pieces = [piece for block in section.blocks for piece in _pieces(page.text, block, count=count, limit=limit)]
        for group in _packed(pieces, limit=limit, overlap=min(sizes.overlap, limit // 3)):
            yield _chunk(page, section, group, index=index, seen=seen)
            index += 1


def _sections(page: Page) -> Iterator[_Section]:
    """Each run of blocks between two headings, or on one page of a PDF, with the headings above it."""
    path: list[tuple[int, str, str]] = []
    blocks: list[Block] = []
    for block in page.blocks:
        if block.kind is not Kind.HEADING:
            if blocks and blocks[-1].anchor != block.anchor:
                yield from _section(page, path, blocks)
                blocks = []
            blocks.append(block)
            continue
        yield from _section(page, path, blocks)
        blocks = []
        path = [entry for entry in path if entry[0] < block.level]
        path.append((block.level, page.text[block.start : block.end], block.anchor))
    yield from _section(page, path, blocks)


def _section(page: Page, path: list[tuple[int, str, str]], blocks: list[Block]) -> Iterator[_Section]:
    if not blocks:
        return
    titles = tuple(title for _, title, _ in path)
    headings = titles if titles[:1] == (page.title,) else (page.title, *titles)
    # The first heading of a page is its top: its anchor would only hide the page's own address.
    anchor = blocks[0].anchor or (path[-1][2] if path and path[-1][0] > 1 else "")
    yield _Section(tuple(heading for heading in headings if heading), anchor, tuple(blocks))


def _limit(headings: tuple[str, ...], *, count: Count, sizes: Sizes) -> int:
    excess = count(under(headings, "")) - sizes.headings
    return sizes.limit - min(max(excess, 0), sizes.limit // 2)


def _pieces(text: str, block: Block, *, count: Count, limit: int) -> Iterator[_Piece]:
    """The block whole if it fits, else cut as finely as it must be."""
    tokens = count(text[block.start : block.end])
    if tokens <= limit:
        yield _Piece(block.start, block.end, tokens)
        return
    fence = text[block.start : text.index("\n", block.start)] if block.kind is Kind.CODE else ""
    by_lines = block.kind is not Kind.PARAGRAPH
    for start, end in _cuts(text, block, _LINE) if by_lines else _tiled(text, block):
        yield from _fitting(text, start, end, count=count, limit=limit, fence=fence if start > block.start else "")


def _tiled(text: str, block: Block) -> Iterator[tuple[int, int]]:
    """The sentences of the block, each reaching to the start of the next."""
    starts = [block.start + start for start, _ in sentences(text[block.start : block.end])]
    return pairwise([*starts, block.end])


def _cuts(text: str, block: Block, pattern: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    return (match.span() for match in pattern.finditer(text, block.start, block.end))


def _fitting(text: str, start: int, end: int, *, count: Count, limit: int, fence: str) -> Iterator[_Piece]:
    """The span whole if it fits, else its words, else halves of them: never more than `limit` tokens."""
    tokens = count(text[start:end])
    if tokens <= limit:
        yield _Piece(start, end, tokens, fence)
        return
    words = [match.span() for match in _WORD.finditer(text, start, end)]
    if len(words) > 1:
        for begin, stop in words:
            yield from _fitting(text, begin, stop, count=count, limit=limit, fence=fence)
        return
    middle = (start + end) // 2
    yield from _fitting(text, start, middle, count=count, limit=limit, fence=fence)
    yield from _fitting(text, middle, end, count=count, limit=limit, fence=fence)


def _packed(pieces: list[_Piece], *, limit: int, overlap: int) -> Iterator[list[_Piece]]:
    """Group the pieces into chunks of about the same size, as few as the limit allows."""
    total = sum(piece.tokens for piece in pieces)
    parts = -(-total // limit) or 1
    target = total / parts
    group: list[_Piece] = []
    size = 0
    for piece in pieces:
        if group and (size + piece.tokens > limit or size >= target):
            yield group
            group = _tail(group, room=min(overlap, limit - piece.tokens))
            size = sum(kept.tokens for kept in group)
        group.append(piece)
        size += piece.tokens
    if group:
        yield group


def _tail(group: list[_Piece], *, room: int) -> list[_Piece]:
    """The last pieces that fit into `room` tokens, but never the whole group."""
    kept: list[_Piece] = []
    for piece in reversed(group[1:]):
        room -= piece.tokens
        if room < 0:
            break
        kept.insert(0, piece)
    return kept


def _chunk(page: Page, section: _Section, pieces: list[_Piece], *, index: int, seen: Counter[str]) -> Chunk:
    start = pieces[0].start
    text = page.text[start : pieces[-1].end].rstrip()
    content_hash = hashlib.sha256(under(section.headings, text).encode()).hexdigest()
    document = uuid.UUID(document_id(page.url))
    chunk = Chunk(
        chunk_id=_chunk_id(document, f"{content_hash}/{seen[content_hash]}"),
        document_id=str(document),
        url=page.url,
        title=page.title,
        text=text,
        start=start,
        end=start + len(text),
        chunk_index=index,
        token_count=max(1, sum(piece.tokens for piece in pieces)),
        heading_hierarchy=section.headings,
        anchor=section.anchor,
        module_name=page.module_name,
        chapter_id=page.chapter_id,
        content_hash=content_hash,
        created_at=page.modified_at,
        fence=pieces[0].fence,
    )
    seen[content_hash] += 1
    return chunk


def _chunk_id(document: uuid.UUID, content: str) -> str:
    """A UUID of two halves: the document's first one, and one of the content's own."""
    low = int.from_bytes(hashlib.sha256(content.encode()).digest()[:8]) >> 2
    return str(uuid.UUID(int=(document.int >> 64 << 64) | (0b10 << 62) | low))
