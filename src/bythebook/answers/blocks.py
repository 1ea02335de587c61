"""Blocks: an answer in Markdown taken apart into what can be proven or removed on its own, and put together again."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from bythebook.answers.lines import Fence
from bythebook.answers.markers import positions, unmarked
from bythebook.chunks.sentences import sentences

if TYPE_CHECKING:
    from collections.abc import Iterator

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
