"""Whatever reads the text of a model or of a page takes time that grows with its length, not with the square of it.

A model that fails repeats one piece of text until its tokens are used up, and the author of a page can write anything.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest

from bythebook.answers.blocks import Section
from bythebook.answers.citation_markers import CitationResolver
from bythebook.answers.claim_details import extract_details
from bythebook.answers.code_comparison import code_difference
from bythebook.answers.prompt_leak import remove_prompt_leaks
from bythebook.answers.sanitizer import AnswerPreview, sanitize
from bythebook.answers.verification import parse_blocks, prove
from bythebook.chunking.spans import split_spans
from bythebook.chunking.splitter import ChunkSizes, split_page
from bythebook.conversations.followups import Exchange
from bythebook.conversations.followups.rules import make_standalone
from bythebook.conversations.small_talk import find_small_talk
from bythebook.index.terms import VocabularyDelta
from bythebook.llm.prompts import build_instructions
from bythebook.retrieval.entries import chunk_entries
from bythebook.retrieval.text_fragments import build_link
from bythebook.sources import BlockKind, Page
from bythebook.sources.document import DocumentPart, compose
from tests.support.passages import chunk
from tests.support.retrieval_results import TermWeights, found

if TYPE_CHECKING:
    from collections.abc import Callable

LENGTH = 1_000
MOST_GROWTH = 6.25
"""For four times the length: 2.5 for each doubling."""
SHORT_SECONDS = 0.02
"""What takes less for the longest text is fast enough at any growth that a clock could measure."""

RESULTS = found(
    "Nodes are processes that perform computation.\n\n```bash\nros2 topic list\n```\n\n| a | b |\n|---|---|\n"
)
INSTRUCTIONS = build_instructions("")

PIECES = [
    *". a A 0 _ - , : ; / \\ ( ) [ ] { } < > ' ` ~ ! @ # $ % & * + = | ? ⁰ 【 … “ 中 。".split(),
    *[" ", "\n", "\t", '"', "\u200b", "\U000f0001", "`[", "[`", "`` ` ", "[[", "](", "[a](", "[a]:", "![", "!["],
    *["<a", "<a ", "</a", "<!--", "<sup>", "<script>", "<a href=", "www.", "http://", "http://a", "a@", "a.", "a@a."],
    *[
        "a_",
        "_a",
        "aB",
        "Ab",
        "a-",
        "a.b",
        "a()",
        "a/",
        "1,",
        "1.",
        "1 ",
        "1-",
        "[1]",
        "[1",
        "[^1]: a\n",
        "(1,",
        "(see ",
    ],
    *["sources: ", "source\n", "Sources:\n", "1. a\n", "- ", "- a\n", "> ", "> > ", "# ", "# a\n", "|-", "| a ", "|\n"],
    *[
        "**",
        "__a",
        "a**",
        "~~~\n",
        "```\n",
        "`a` ",
        "a\n\n",
        " \n",
        "a \n",
        "  - a\n",
        "a. ",
        "A. ",
        "a: ",
        "a:\n",
        "e.g. ",
    ],
    *["not ", "book not ", "the book ", "one ", "forty ", "1 and ", "A b ", "a (B", "a (", "a is ", "B (a ", "x = 1\n"],
    *["I don't have information about that in the book content ", "You are ", "\\(", "\\`", "({", "a|", "é", "ab "],
]


def preview(text: str) -> None:
    """Feed an answer as a model streams it, in short pieces."""
    reader = AnswerPreview(RESULTS, instructions=INSTRUCTIONS)
    for start in range(0, len(text), 16):
        reader.feed(text[start : start + 16])
    reader.end()


def split(text: str) -> None:
    for kind in (BlockKind.PARAGRAPH, BlockKind.CODE, BlockKind.TABLE, BlockKind.LIST):
        plain, blocks = compose([DocumentPart(kind, f"```\n{text}\n```" if kind is BlockKind.CODE else text)])
        page = Page("https://book.example/", "T", plain, blocks)
        list(split_page(page, count=lambda part: len(part) // 4 + 1, sizes=ChunkSizes()))


def units(text: str) -> None:
    section = Section(tuple(found(text)), text)
    assert section.units is not None


READERS: dict[str, Callable[[str], object]] = {
    "sanitize": lambda text: sanitize(text, CitationResolver(RESULTS, aliases=text)),
    "sources": lambda text: sanitize(
        f"Sources: {text}", CitationResolver(RESULTS, aliases=f"[^1]: {text}\nSources:\n1. {text}")
    ),
    "preview": preview,
    "parse_blocks": parse_blocks,
    "prove": lambda text: asyncio.run(prove(text, RESULTS, snapshot=TermWeights(RESULTS))),
    "prove_by_passage": lambda text: asyncio.run(
        prove("Nodes are processes.", found(text), snapshot=TermWeights(RESULTS))
    ),
    "remove_prompt_leaks": lambda text: remove_prompt_leaks(text, INSTRUCTIONS, [text]),
    "extract_details": extract_details,
    "code_difference": lambda text: code_difference(text, [text], prose=[text]),
    "split_spans": split_spans,
    "split_page": split,
    "units": units,
    "build_link": lambda text: build_link("https://book.example/", anchor="", words=text),
    "vocabulary": lambda text: VocabularyDelta().add(text),
    "chunk_entries": lambda text: chunk_entries(chunk(text), TermWeights(RESULTS).bm25.terms),
    "find_small_talk": find_small_talk,
    "make_standalone": lambda text: make_standalone("And why?", [Exchange(text, text)]),
}


@pytest.mark.parametrize("name", READERS)
def test_reading_takes_linear_time(name: str, pytestconfig: pytest.Config) -> None:
    # At full size every reader reads every piece. Else each reads a fourth of them, and all together all of them.
    step = 1 if pytestconfig.getoption("--full-size") else 4
    pieces = PIECES[list(READERS).index(name) % step :: step]
    slow = {piece: growth for piece in pieces if (growth := grow(READERS[name], piece)) > MOST_GROWTH}
    assert slow == {}


def grow(read: Callable[[str], object], piece: str) -> float:
    """How many times longer four times the text takes, in the best of three attempts."""
    growth = 0.0
    for attempt in range(3):
        long = measure(read, piece, 4 * LENGTH + attempt)
        if long < SHORT_SECONDS:
            return 0.0
        growth = long / max(measure(read, piece, LENGTH + attempt), SHORT_SECONDS / MOST_GROWTH)
        if growth <= MOST_GROWTH:
            break
    return growth


def measure(read: Callable[[str], object], piece: str, length: int) -> float:
    text = (piece * (length // len(piece) + 1))[:length] + "!"
    started = time.thread_time()
    read(text)
    return time.thread_time() - started
