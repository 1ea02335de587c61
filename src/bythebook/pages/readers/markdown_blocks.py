"""Blocks that documentation generators add to Markdown, as rules for the parser.

Admonitions, tabs, footnotes and include markers come in many spellings; a reader of the published page sees only a
label and what is below it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock

_LABELS = frozenset(
    [
        *(
            "abstract",
            "attention",
            "bug",
            "caution",
            "check",
            "danger",
            "details",
            "error",
            "example",
            "failure",
            "faq",
        ),
        *(
            "hint",
            "important",
            "info",
            "note",
            "question",
            "quote",
            "secondary",
            "seealso",
            "success",
            "summary",
            "tip",
        ),
        *("tldr", "todo", "warning"),
    ]
)

_STARTS = frozenset("{-*[:/!?=(")
_NOTHING = re.compile(
    r"\{\*.*\*\}|\{%.*%\}|\{!.*!\}|\{\{.*\}\}|\{:.*\}"  # includes, templates, attributes of the block above
    r"|-+8<-+.*"
    r"|\*\[[^\]]+\]:.*"  # an abbreviation's long form
    r"|\[\[?_?toc_?\]\]?"
    r"|\([\w:.-]+\)=",  # a label of MyST
    re.IGNORECASE,
)
_BETWEEN_MARKS = re.compile(r"(?P<mark>:{3,}|/{3,})[ \t]*(?P<rest>.*)")
_INDENTED = re.compile(r"(?:!!!|\?\?\?\+?|===[+!]*)[ \t]+(?P<rest>.*)")
_FOOTNOTE = re.compile(r"\[\^[^\]\s]+\]:[ \t]*(?P<rest>.*)")
_NAMED = re.compile(r"\{?(?P<kind>[\w-]+)\}?(?:[ \t]*[|\[]|[ \t]+|(?=\{)|$)(?P<title>.*?)\]?(?:\{[^}]*\})?[ \t]*")
_QUOTED = re.compile(r'(?P<kind>[\w -]*?)[ \t]*(?:"(?P<title>.*)")?[ \t]*')


def add_to(parser: MarkdownIt) -> None:
    """Teach a parser the blocks."""
    interrupted = ["paragraph", "reference", "blockquote", "list"]
    parser.block.ruler.before("reference", "published_block", _rule, {"alt": interrupted})


def _rule(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    position = state.bMarks[start] + state.tShift[start]
    if position >= state.eMarks[start] or state.src[position] not in _STARTS or state.is_code_block(start):
        return False
    line = state.src[position : state.eMarks[start]].rstrip()
    if _NOTHING.fullmatch(line):
        if not silent:
            state.line = start + 1
        return True
    for pattern, write in (
        (_BETWEEN_MARKS, _write_between_marks),
        (_INDENTED, _write_indented),
        (_FOOTNOTE, _write_note),
    ):
        match = pattern.fullmatch(line)
        if match:
            if not silent:
                write(state, start, end, match["rest"])
            return True
    return False


def _write_between_marks(state: StateBlock, start: int, end: int, rest: str) -> None:
    """`:::note Title` or `/// note | Title`: the label. What follows is read as if the marks were not there."""
    state.line = _after_indented(state, start + 1, end, blank_lines=False)
    match = _NAMED.fullmatch(rest)
    if match:
        _write_paragraph(state, start, _label(match["kind"], match["title"]))


def _write_indented(state: StateBlock, start: int, end: int, rest: str) -> None:
    """`!!! note "Title"` or `=== "Tab"`: the label, and the text indented below it."""
    match = _QUOTED.fullmatch(rest)
    if match and match["title"] is not None:
        _write_paragraph(state, start, match["title"])
    else:
        _write_paragraph(state, start, _label(rest.partition(" ")[0], ""))
    _write_children(state, start + 1, end)


def _write_note(state: StateBlock, start: int, end: int, rest: str) -> None:
    """`[^1]: text`: the footnote's text, without its mark."""
    last = start + 1
    while last < end and not state.isEmpty(last) and not _FOOTNOTE.match(_line(state, last)):
        rest += "\n" + _line(state, last)
        last += 1
    _write_paragraph(state, start, rest)
    _write_children(state, last, end)


def _write_children(state: StateBlock, start: int, end: int) -> None:
    last = _after_indented(state, start, end, blank_lines=True)
    line_max, state.lineMax = state.lineMax, last
    state.blkIndent += 4
    state.md.block.tokenize(state, start, last)
    state.blkIndent -= 4
    state.lineMax, state.line = line_max, last


def _after_indented(state: StateBlock, start: int, end: int, *, blank_lines: bool) -> int:
    """The first line from `start` on that is not indented like the content of the block above it."""
    line = last = start
    while line < end:
        if state.isEmpty(line):
            if not blank_lines:
                break
        elif state.sCount[line] - state.blkIndent < 4:
            break
        else:
            last = line + 1
        line += 1
    return last


def _write_paragraph(state: StateBlock, line: int, text: str) -> None:
    if not text.strip():
        return
    state.push("paragraph_open", "p", 1).map = [line, line + 1]
    inline = state.push("inline", "", 0)
    inline.content, inline.map, inline.children = text.strip(), [line, line + 1], []
    state.push("paragraph_close", "p", -1)


def _line(state: StateBlock, line: int) -> str:
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]


def _label(kind: str, title: str) -> str:
    return title.strip() or (kind.capitalize() if kind.lower() in _LABELS else "")
