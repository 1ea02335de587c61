"""Word pieces: the numbers a model knows a text by."""

from __future__ import annotations

import json
import re
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tokenizers import Tokenizer

_REMEMBERED = 1 << 14
_LONGEST_WORD = 100
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_SIGNS, _MARKS = "→←×≤≥≈°", "–—‘’“”…•·«»"
"""What printed books have besides ASCII: signs that are part of a word, and marks that are words of their own."""
_WORD = re.compile(rf"[a-z0-9{_SIGNS}]+|[^a-z0-9{_SIGNS}\s]")
_PLAIN = re.compile(rf"[\x00-\x7f{_SIGNS}{_MARKS}]*")


class Pieces:
    """Cuts text as the model's own tokenizer does.

    That one takes longer to load than a question takes to answer. Plain text is therefore cut here, by the same table
    and with the same result; the tokenizer is loaded for the first text that is not plain.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        table = json.loads(file.read_bytes())
        self._numbers: dict[str, int] = table["model"]["vocab"]
        self._unknown = self._numbers[table["model"]["unk_token"]]
        # These stand for themselves wherever they stand in a text.
        self._special = tuple(token["content"] for token in table["added_tokens"])
        self._word = lru_cache(_REMEMBERED)(self._cut)

    def __call__(self, text: str) -> list[int]:
        """The pieces of a text, in its order."""
        if not _PLAIN.fullmatch(text) or ("[" in text and any(token in text for token in self._special)):
            # A lone surrogate is no character, and the tokenizer refuses the whole text for it.
            whole = text.encode("utf-8", "replace").decode("utf-8")
            return list(self._tokenizer.encode(whole, add_special_tokens=False).ids)
        words = _WORD.findall(_CONTROL.sub("", text).lower())
        return [piece for word in words for piece in self._word(word)]

    def _cut(self, word: str) -> tuple[int, ...]:
        """The longest piece that is known, then the longest of the rest; a word with an unknown rest is unknown."""
        if len(word) > _LONGEST_WORD:
            return (self._unknown,)
        pieces: list[int] = []
        start = 0
        while start < len(word):
            lead = "##" if start else ""
            ends = (end for end in range(len(word), start, -1) if lead + word[start:end] in self._numbers)
            end = next(ends, None)
            if end is None:
                return (self._unknown,)
            pieces.append(self._numbers[lead + word[start:end]])
            start = end
        return tuple(pieces)

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(self._file))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        return tokenizer
