"""Sentence segmentation with character offsets."""

import re
from collections.abc import Iterator

# The mark that ends a sentence, closing quotes and brackets, and the white space before the next sentence. Chinese
# and Japanese have no white space there.
_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’)\]*_]*+(?=\s)|[。！？｡]+[」』”’）]*|\n+")

# A full stop after one of these does not end a sentence.
_ABBREVIATIONS = frozenset(
    "al approx art ca cf ch dr e.g ed eds eg eq etc ex fig figs i.e ie inc jr ltd max min mr mrs ms no nos op p pp "
    "prof ref resp sec sr st viz vol vs".split()
)
_LAST_WORD = re.compile(r"[\w.&]+$")
_LINE_START = re.compile(r"(?:\A|\n)[^\S\n]*$")
_SENTENCE_START = re.compile(r"\s*[\"'“‘(\[*_`<$-]*[^\W_a-z]")


def split_sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield the `(start, end)` of each sentence in order, without the white space around it.

    A line break always ends a sentence: a line of a list or a table is a unit.
    """
    begin = 0
    for mark in _END.finditer(text):
        if mark.start() < begin or not _ends_sentence(text, mark):
            continue
        yield from _trim(text, begin, mark.end())
        begin = mark.end()
    yield from _trim(text, begin, len(text))


def _ends_sentence(text: str, mark: re.Match[str]) -> bool:
    if mark[0][0] not in ".…":
        return True
    if not _SENTENCE_START.match(text, mark.end()):
        return False
    word = _LAST_WORD.search(text, max(0, mark.start() - 24), mark.start())
    if word is None:
        return True
    last = word[0].rstrip(".").lower()
    initial = len(last) == 1 and last.isalpha() and last not in "ai" and word[0][0].isupper()
    return not (last in _ABBREVIATIONS or initial or _is_item_number(text, word))


def _is_item_number(text: str, word: re.Match[str]) -> bool:
    """Whether the word is the number in front of a list item: `1. First`."""
    return word[0].isdigit() and _LINE_START.search(text, max(0, word.start() - 24), word.start()) is not None


def _trim(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    piece = text[start:end]
    stripped = piece.strip()
    if stripped:
        begin = start + piece.index(stripped)
        yield begin, begin + len(stripped)
