"""Splits a page into chunks: at headings, then between blocks, sentences and lines, never over the limit."""

import hashlib
import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, zip_longest

from bythebook.chunking import Chunk, with_headings
from bythebook.chunking.sentences import split_sentences
from bythebook.chunking.spans import is_lead, is_list_item, table_header
from bythebook.sources import Block, BlockKind, Page

Count = Callable[[str], int]


_WORD = re.compile(r"\S+\s*")
_LINE = re.compile(r"[^\n]+\n*")
_CHARACTERS_PER_TOKEN = 40


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
    """The opening line of the code block of which it is a later part."""
    table_header: str = ""
    """The header of the table of which it is a later part."""
    is_lead: bool = False
    """Whether it should stay in one chunk with the next piece."""


def document_id(url: str) -> str:
    """The id of the page at `url`, the same on every machine."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, url))


def split_page(page: Page, *, count: Count, sizes: ChunkSizes) -> Iterator[Chunk]:
    """Split `page` into chunks of at most `sizes.limit` tokens, each within one section.

    Code and tables that fit are not split. A label, and a sentence that ends in a colon, stay with what they introduce
    if both fit. The same page always gives the same chunks and ids. An edit changes only the ids of the chunks it
    affects.
    """
    seen: Counter[str] = Counter()
    index = 0
    count = _limit_word_length(count)
    for section in _sections(page):
        limit = _text_limit(section.headings, count=count, sizes=sizes)
        pieces = list(_split_blocks(page.text, section.blocks, count=count, limit=limit))
        for group in _pack(pieces, limit=limit, overlap=min(sizes.overlap, limit // 3)):
            yield _make_chunk(page, section, group, index=index, seen=seen)
            index += 1


def _limit_word_length(count: Count) -> Count:
    """Count at least one token for each `_CHARACTERS_PER_TOKEN`: some tokenizers count the longest word as one."""
    return lambda text: max(count(text), len(text) // _CHARACTERS_PER_TOKEN)


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


def _split_blocks(text: str, blocks: Sequence[Block], *, count: Count, limit: int) -> Iterator[_Piece]:
    for block, following in zip_longest(blocks, blocks[1:]):
        pieces = list(_split_block(text, block, count=count, limit=limit))
        if following and _introduces(text, block, following):
            pieces[-1] = replace(pieces[-1], is_lead=True)
        yield from pieces


def _introduces(text: str, block: Block, following: Block) -> bool:
    """Whether the last line of a block is a lead. The last item of a list introduces only code."""
    if block.kind not in (BlockKind.PARAGRAPH, BlockKind.LIST):
        return False
    last_line = text[block.start : block.end].rpartition("\n")[2]
    return is_lead(last_line) and (block.kind is BlockKind.PARAGRAPH or following.kind is BlockKind.CODE)


def _split_block(text: str, block: Block, *, count: Count, limit: int) -> Iterator[_Piece]:
    """The whole block if it fits, else its lines or sentences."""
    tokens = count(text[block.start : block.end])
    if tokens <= limit:
        yield _Piece(block.start, block.end, tokens)
        return
    if block.kind is BlockKind.PARAGRAPH:
        for start, end in _sentence_ranges(text, block):
            yield from _fit(text, _Piece(start, end, 0), count=count, limit=limit)
        return
    fence = text[block.start : text.index("\n", block.start)] if block.kind is BlockKind.CODE else ""
    header = table_header(text[block.start : block.end]) if block.kind is BlockKind.TABLE else ""
    lines = [match.span() for match in _LINE.finditer(text, block.start, block.end)]
    for number, (start, end) in enumerate(lines):
        piece = _Piece(
            start,
            end,
            0,
            fence if start > block.start else "",
            header if start >= block.start + len(header) else "",
            _is_lead_line(text, block, number=number, lines=lines),
        )
        yield from _fit(text, piece, count=count, limit=limit)


def _is_lead_line(text: str, block: Block, *, number: int, lines: Sequence[tuple[int, int]]) -> bool:
    """Whether a line of a block that is split stays with the next: a fence, a header, or a part of a list item."""
    if number + 1 == len(lines):
        return False
    if block.kind is BlockKind.LIST:
        here, following = (text[start:end].rstrip() for start, end in lines[number : number + 2])
        return here.endswith(":") or not is_list_item(following)
    first_rows = 1 if block.kind is BlockKind.CODE else 2
    return number < first_rows or (block.kind is BlockKind.CODE and number + 2 == len(lines))


def _sentence_ranges(text: str, block: Block) -> Iterator[tuple[int, int]]:
    """The sentences of the block, each up to the start of the next."""
    starts = [block.start + start for start, _ in split_sentences(text[block.start : block.end])]
    return pairwise([*starts, block.end])


def _fit(text: str, piece: _Piece, *, count: Count, limit: int) -> Iterator[_Piece]:
    """The whole range if it fits, else its words, else halves of a word. No piece exceeds `limit` tokens."""
    start, end = piece.start, piece.end
    tokens = count(text[start:end])
    if tokens <= limit:
        yield replace(piece, tokens=tokens)
        return
    ranges = [match.span() for match in _WORD.finditer(text, start, end)]
    if len(ranges) < 2:
        middle = (start + end) // 2
        ranges = [(start, middle), (middle, end)]
    for begin, stop in ranges:
        part = replace(piece, start=begin, end=stop, is_lead=piece.is_lead and stop == end)
        yield from _fit(text, part, count=count, limit=limit)


def _join_leads(pieces: Sequence[_Piece], *, limit: int) -> Iterator[list[_Piece]]:
    """Each piece with the leads before it that fit into the limit together."""
    unit: list[_Piece] = []
    for piece in pieces:
        if unit and not unit[-1].is_lead:
            yield unit
            unit = []
        unit.append(piece)
        while sum(one.tokens for one in unit) > limit and len(unit) > 1:
            yield [unit.pop(0)]
    if unit:
        yield unit


def _pack(pieces: list[_Piece], *, limit: int, overlap: int) -> Iterator[list[_Piece]]:
    """Group the pieces into as few chunks as the limit allows, of about the same size."""
    total = sum(piece.tokens for piece in pieces)
    parts = -(-total // limit) or 1
    target = total / parts
    group: list[_Piece] = []
    size = 0
    for unit in _join_leads(pieces, limit=limit):
        tokens = sum(piece.tokens for piece in unit)
        if group and (size + tokens > limit or size >= target):
            yield group
            group = _overlap_tail(group, room=min(overlap, limit - tokens))
            size = sum(kept.tokens for kept in group)
        group.extend(unit)
        size += tokens
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
        table_header=pieces[0].table_header,
        inline_code=tuple(_find_inline_code(section.blocks, start, start + len(text))),
    )
    seen[content_hash] += 1
    return chunk


def _find_inline_code(blocks: Sequence[Block], start: int, end: int) -> Iterator[tuple[int, int]]:
    """The inline code of a chunk, counted in its text."""
    for block in blocks:
        for first, last in block.code:
            if start <= first and last <= end:
                yield first - start, last - start


def _chunk_id(document: uuid.UUID, content: str) -> str:
    """A UUID made of the first half of the document's UUID and a hash of the content."""
    low = int.from_bytes(hashlib.sha256(content.encode()).digest()[:8]) >> 2
    return str(uuid.UUID(int=(document.int >> 64 << 64) | (0b10 << 62) | low))
