"""The WordPiece tokenizer of BERT's vocabulary: turns text into token ids."""

import json
import re
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from bythebook.models.runtime import load_tokenizer

_CACHED_WORDS = 1 << 14
_LONGEST_WORD = 100
_SIGNS, _MARKS = "→←×≤≥≈°", "–—‘’“”…•·«»"
"""Frequent characters outside ASCII: signs are parts of a word, and each mark is a separate word."""
_WORD = re.compile(rf"[a-z0-9{_SIGNS}]+|[^a-z0-9{_SIGNS}\s]")
_PLAIN = re.compile(rf"[\t\n\r\x20-\x7e{_SIGNS}{_MARKS}]*")
_WHITESPACE = re.compile(r"[ \t\r\n]+")


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
        self._count_word = lru_cache(_CACHED_WORDS)(lambda word: len(self(word)))

    def __call__(self, text: str) -> list[int]:
        """The token ids of a text, in order."""
        if not self._is_plain(text):
            return list(self._encode(text).ids)
        return [piece for word in _WORD.findall(text.lower()) for piece in self._word(word)]

    def count(self, text: str) -> int:
        """The number of tokens. It is cheap, because most words are in the cache."""
        # Only characters that the tokenizer treats as whitespace separate words.
        return sum(map(self._count_word, _WHITESPACE.split(text)))

    def _is_plain(self, text: str) -> bool:
        return bool(_PLAIN.fullmatch(text)) and not ("[" in text and any(token in text for token in self._special))

    def _encode(self, text: str) -> Any:
        # The tokenizer rejects a text with a lone surrogate.
        return self._tokenizer.encode(text.encode("utf-8", "replace").decode("utf-8"), add_special_tokens=False)

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
    def _tokenizer(self) -> Any:
        return load_tokenizer(self._file)
