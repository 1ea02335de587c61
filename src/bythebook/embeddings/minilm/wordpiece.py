"""The WordPiece tokenizer of MiniLM: turns text into token ids."""

from __future__ import annotations

import json
import re
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tokenizers import Tokenizer

_CACHED_WORDS = 1 << 14
_LONGEST_WORD = 100
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_SIGNS, _MARKS = "→←×≤≥≈°", "–—‘’“”…•·«»"
"""Frequent characters outside ASCII: signs are parts of a word, and each mark is a separate word."""
_WORD = re.compile(rf"[a-z0-9{_SIGNS}]+|[^a-z0-9{_SIGNS}\s]")
_PLAIN = re.compile(rf"[\x00-\x7f{_SIGNS}{_MARKS}]*")


class WordPieceTokenizer:
    """Splits text exactly as the model's `tokenizers` file does.

    Loading that tokenizer takes longer than answering a question. Plain text is therefore split here, with the same
    vocabulary and the same result. The tokenizer is loaded for the first text that is not plain.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        table = json.loads(file.read_bytes())
        self._ids: dict[str, int] = table["model"]["vocab"]
        self._unknown = self._ids[table["model"]["unk_token"]]
        # Special tokens are matched before words are split.
        self._special = tuple(token["content"] for token in table["added_tokens"])
        self._word = lru_cache(_CACHED_WORDS)(self._split_word)

    def __call__(self, text: str) -> list[int]:
        """The token ids of a text, in order."""
        if not _PLAIN.fullmatch(text) or ("[" in text and any(token in text for token in self._special)):
            # The tokenizer rejects a text with a lone surrogate.
            valid = text.encode("utf-8", "replace").decode("utf-8")
            return list(self._tokenizer.encode(valid, add_special_tokens=False).ids)
        words = _WORD.findall(_CONTROL.sub("", text).lower())
        return [piece for word in words for piece in self._word(word)]

    def _split_word(self, word: str) -> tuple[int, ...]:
        """Greedy longest-match split. A word with an unknown remainder becomes the unknown token."""
        if len(word) > _LONGEST_WORD:
            return (self._unknown,)
        pieces: list[int] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            ends = (end for end in range(len(word), start, -1) if prefix + word[start:end] in self._ids)
            end = next(ends, None)
            if end is None:
                return (self._unknown,)
            pieces.append(self._ids[prefix + word[start:end]])
            start = end
        return tuple(pieces)

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(self._file))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        return tokenizer
