"""Splits a page into chunks: at headings, then between blocks, sentences and lines, never over the limit."""

import hashlib
import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from bythebook.chunking import Chunk, with_headings
from bythebook.chunking.sentences import split_sentences
from bythebook.sources import Block, BlockKind, Page

Count = Callable[[str], int]


_WORD = re.compile(r"\S+\s*")
_LINE = re.compile(r"[^\n]+\n*")


@dataclass(frozen=True, slots=True)
class ChunkSizes:
    """The sizes of chunks, in tokens of the embedder."""

    limit: int = 220
    overlap: int = 0
    """The maximum tokens repeated from the end of the previous chunk, in whole sentences."""
    headings: int = 34
    """The tokens of the embedder's window reserved for the heading path. A longer path reduces `limit`."""


@dataclass(frozen=True, slots=True)
class _Section:
    headings: tuple[str, ...]
    anchor: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class _Piece:
    """A range of the text that is not split further."""

    start: int
    end: int
    tokens: int
    fence: str = ""


def document_id(url: str) -> str:
    """The id of the page at `url`, the same on every machine."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, url))


def split_page(page: Page, *, count: Count, sizes: ChunkSizes) -> Iterator[Chunk]:
    """Split `page` into chunks of at most `sizes.limit` tokens, each within one section.

    Code and tables that fit are not split. The same page always gives the same chunks and ids. An edit changes only
    the ids of the chunks it affects.
    """
    seen: Counter[str] = Counter()
    index = 0
    for section in _sections(page):
        limit = _text_limit(section.headings, count=count, sizes=sizes)
        pieces = [
            piece for block in section.blocks for piece in _split_block(page.text, block, count=count, limit=limit)
        ]
        for group in _pack(pieces, limit=limit, overlap=min(sizes.overlap, limit // 3)):
            yield _make_chunk(page, section, group, index=index, seen=seen)
            index += 1


def _sections(page: Page) -> Iterator[_Section]:
    """The blocks between two headings, or on one page of a PDF, with the headings above them."""
    path: list[tuple[int, str, str]] = []
    blocks: list[Block] = []
    for block in page.blocks:
        if block.kind is not BlockKind.HEADING:
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
    # The heading of level 1 is the top of the page: the URL of the page is the better link.
    anchor = blocks[0].anchor or (path[-1][2] if path and path[-1][0] > 1 else "")
    yield _Section(tuple(heading for heading in headings if heading), anchor, tuple(blocks))


def _text_limit(headings: tuple[str, ...], *, count: Count, sizes: ChunkSizes) -> int:
    excess = count(with_headings(headings, "")) - sizes.headings
    return sizes.limit - min(max(excess, 0), sizes.limit // 2)


def _split_block(text: str, block: Block, *, count: Count, limit: int) -> Iterator[_Piece]:
    """The whole block if it fits, else its lines or sentences."""
    tokens = count(text[block.start : block.end])
    if tokens <= limit:
        yield _Piece(block.start, block.end, tokens)
        return
    fence = text[block.start : text.index("\n", block.start)] if block.kind is BlockKind.CODE else ""
    by_lines = block.kind is not BlockKind.PARAGRAPH
    for start, end in _match_ranges(text, block, _LINE) if by_lines else _sentence_ranges(text, block):
        yield from _fit(text, start, end, count=count, limit=limit, fence=fence if start > block.start else "")


def _sentence_ranges(text: str, block: Block) -> Iterator[tuple[int, int]]:
    """The sentences of the block, each up to the start of the next."""
    starts = [block.start + start for start, _ in split_sentences(text[block.start : block.end])]
    return pairwise([*starts, block.end])


def _match_ranges(text: str, block: Block, pattern: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    return (match.span() for match in pattern.finditer(text, block.start, block.end))


def _fit(text: str, start: int, end: int, *, count: Count, limit: int, fence: str) -> Iterator[_Piece]:
    """The whole range if it fits, else its words, else halves of a word. No piece exceeds `limit` tokens."""
    tokens = count(text[start:end])
    if tokens <= limit:
        yield _Piece(start, end, tokens, fence)
        return
    words = [match.span() for match in _WORD.finditer(text, start, end)]
    if len(words) > 1:
        for begin, stop in words:
            yield from _fit(text, begin, stop, count=count, limit=limit, fence=fence)
        return
    middle = (start + end) // 2
    yield from _fit(text, start, middle, count=count, limit=limit, fence=fence)
    yield from _fit(text, middle, end, count=count, limit=limit, fence=fence)


def _pack(pieces: list[_Piece], *, limit: int, overlap: int) -> Iterator[list[_Piece]]:
    """Group the pieces into as few chunks as the limit allows, of about the same size."""
    total = sum(piece.tokens for piece in pieces)
    parts = -(-total // limit) or 1
    target = total / parts
    group: list[_Piece] = []
    size = 0
    for piece in pieces:
        if group and (size + piece.tokens > limit or size >= target):
            yield group
            group = _overlap_tail(group, room=min(overlap, limit - piece.tokens))
            size = sum(kept.tokens for kept in group)
        group.append(piece)
        size += piece.tokens
    if group:
        yield group


def _overlap_tail(group: list[_Piece], *, room: int) -> list[_Piece]:
    """The last pieces that fit into `room` tokens, never the whole group."""
    kept: list[_Piece] = []
    for piece in reversed(group[1:]):
        room -= piece.tokens
        if room < 0:
            break
        kept.insert(0, piece)
    return kept


def _make_chunk(page: Page, section: _Section, pieces: list[_Piece], *, index: int, seen: Counter[str]) -> Chunk:
    start = pieces[0].start
    text = page.text[start : pieces[-1].end].rstrip()
    content_hash = hashlib.sha256(with_headings(section.headings, text).encode()).hexdigest()
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
    """A UUID made of the first half of the document's UUID and a hash of the content."""
    low = int.from_bytes(hashlib.sha256(content.encode()).digest()[:8]) >> 2
    return str(uuid.UUID(int=(document.int >> 64 << 64) | (0b10 << 62) | low))
