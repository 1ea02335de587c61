"""Compares the code of an answer with code of the passages: readers run code unchanged, so similar is not enough.

Every line must stand in one code block of the book: in the same order, with the same names and numbers, and under the
same parents. Text in quotation marks may differ, and lines of the book may be left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_TOKEN = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'|[^\W\d]\w*|\d+(?:\.\d+)*|[^\w\s]")
_PROMPT = re.compile(r"\s*(?:\$|>>>|\.\.\.|PS>|>)\s+")
_COMMENT = re.compile(r"\s*(?:#(?!\[|!)|//|--\s|<!--|/\*|\*\s)")
_SECTION = re.compile(r"\s*\[[^\]]*\]\s*$")
_CONFIGURATION = frozenset("yaml yml json jsonc toml ini cfg properties".split())
_NEAR = 0.5
_MOST_LINES = 200


@dataclass(frozen=True, slots=True)
class CodeLine:
    """A line of code as its tokens, with the lines it is nested in."""

    tokens: tuple[str, ...]
    parents: tuple[tuple[str, ...], ...]


def strip_fence(block: str) -> str:
    """The content of a fenced code block."""
    lines = block.split("\n")
    fenced = lines[0].lstrip().startswith(("```", "~~~"))
    closed = fenced and lines[-1].strip() and not lines[-1].strip().strip("`~")
    return "\n".join(lines[fenced : len(lines) - bool(closed)])


def code_difference(block: str, book: Sequence[str], *, prose: Sequence[str]) -> str:
    """Why the block is not the book's code; empty if it is. `prose` may name a command in a sentence."""
    said = list(parse_code(strip_fence(block)))
    if not said:
        return "it has no line of code"
    if len(said) > _MOST_LINES:
        return "it is longer than any code of the book"
    language = block.split("\n", 1)[0].strip("`~ \t").lower()
    if any(_is_part(said, list(parse_code(strip_fence(code))), whole=language in _CONFIGURATION) for code in book):
        return ""
    text = " ".join(" ".join(prose).split())
    if all(len(line.tokens) > 1 and _join_tokens(line) in text.replace(" ", "") for line in said) and len(said) <= 2:
        return ""
    known = {line.tokens for code in book for line in parse_code(strip_fence(code))}
    unknown = next((line for line in said if line.tokens not in known), None)
    if unknown is None:
        return "its lines stand in the book in another order or at another level"
    return f"the book's code does not have the line {' '.join(unknown.tokens)[:60]!r}"


def nearest_code(block: str, book: Sequence[str]) -> int | None:
    """The index of the book's code that shares the most with the block, if that is at least half of the block."""
    said = {token for line in parse_code(strip_fence(block)) for token in line.tokens if token[0].isalnum()}
    shared = [
        len(said.intersection(token for line in parse_code(strip_fence(code)) for token in line.tokens))
        for code in book
    ]
    best = max(range(len(book)), key=lambda at: shared[at], default=None)
    return best if best is not None and said and shared[best] >= _NEAR * len(said) else None


def parse_code(code: str) -> Iterator[CodeLine]:
    """The lines that are neither empty nor comments, with the lines that enclose them."""
    open_lines: list[tuple[int, tuple[str, ...]]] = []
    section: tuple[tuple[str, ...], ...] = ()
    for raw in code.split("\n")[: 4 * _MOST_LINES]:
        line = _PROMPT.sub("", raw.expandtabs(4), count=1) if _PROMPT.match(raw) else raw.expandtabs(4)
        if not line.strip() or _COMMENT.match(line):
            continue
        indent = len(line) - len(line.lstrip())
        tokens = tuple("''" if token[0] in "\"'" else token for token in _TOKEN.findall(line))
        while open_lines and open_lines[-1][0] >= indent:
            open_lines.pop()
        if _SECTION.match(line) and not open_lines:
            section = (tokens,)
            yield CodeLine(tokens, ())
            continue
        # Brackets that close a block have no meaning of their own.
        if any(token[0].isalnum() or token[0] in "_'" for token in tokens):
            yield CodeLine(tokens, (*section, *(parent for _, parent in open_lines)))
        open_lines.append((indent, tokens))


def _is_part(said: Sequence[CodeLine], book: Sequence[CodeLine], *, whole: bool) -> bool:
    """Whether the lines stand in the book's code, all under the same place. `whole`: that place is the top."""
    bases = {line.parents[: len(line.parents) - len(said[0].parents)] for line in book if line.tokens == said[0].tokens}
    return any(_follows(said, book, base=base) for base in bases if not (whole and base))


def _follows(said: Sequence[CodeLine], book: Sequence[CodeLine], *, base: tuple[tuple[str, ...], ...]) -> bool:
    rest = iter(book)
    return all(any(one == CodeLine(line.tokens, (*base, *line.parents)) for one in rest) for line in said)


def _join_tokens(line: CodeLine) -> str:
    return "".join(line.tokens)
