"""Keeps a model from reciting its system prompt to the reader.

Verification removes most recited sentences, but not sentences about what the book lacks, and only when the answer is
complete. `PromptLeakFilter` works on the stream; `remove_prompt_leaks` works on the complete answer.
"""

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

Run = tuple[str, ...]

DECLINE = "I don't have information about that in the book content"
"""What the prompt asks a model to say when the passages have no answer. It is no secret: a model must be able to."""


_WORD = re.compile(r"[^\W_]+")
_SENTENCE = re.compile(r"(?:(?![.!?:]\s|\n).)*(?:[.!?:]\s|\n|\Z)", re.DOTALL)
_IGNORABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]"
)
"""Control characters, and those that Unicode calls default-ignorable. Between letters, they hide a word."""
_PIECE = re.compile(r"[^\W_]+|[\W_]+")
_BY_CHANCE = 4
"""Runs of up to this many words match by chance."""
_RECITED = 8
"""A run of this many words counts as a leak."""


def remove_prompt_leaks(answer: str, instructions: str, passages: Iterable[str]) -> str:
    """Remove the sentences that recite the instructions."""
    plain = _IGNORABLE.sub("", answer)
    words = list(_WORD.finditer(plain))
    spoken = [_fold(word[0]) for word in words]
    runs = [tuple(spoken[at : at + _RECITED]) for at in range(len(words) - _RECITED + 1)]
    told = _runs(instructions).intersection(runs)
    if not told:
        return answer
    secret = _not_in_passages(told, passages)
    recited = [False] * len(plain)
    for at, run in enumerate(runs):
        if run in secret:
            start, end = words[at].start(), words[at + _RECITED - 1].end()
            recited[start:end] = [True] * (end - start)
    return "".join(found[0] for found in _SENTENCE.finditer(plain) if not any(recited[found.start() : found.end()]))


@lru_cache(maxsize=8)
def _runs(instructions: str) -> frozenset[Run]:
    """All word n-grams of the instructions that identify them."""
    parts = map(_words, instructions.split(DECLINE))
    return frozenset(tuple(words[at : at + _RECITED]) for words in parts for at in range(len(words) - _RECITED + 1))


def _not_in_passages(runs: Iterable[Run], passages: Iterable[str]) -> frozenset[Run]:
    """The n-grams that do not also occur in the passages; those in the passages are public."""
    known = [" ".join(_words(passage)) for passage in passages]
    return frozenset(run for run in runs if not any(" ".join(run) in text for text in known))


@lru_cache(maxsize=8)
def _beginnings(runs: frozenset[Run]) -> frozenset[Run]:
    return frozenset(run[:length] for run in runs for length in range(1, _RECITED + 1))


class PromptLeakFilter:
    """Holds back words that may be a recital, and stops the output permanently once they are one."""

    def __init__(self, instructions: str, passages: Iterable[str] = ()) -> None:
        self._runs = _runs(instructions)
        self._begun = _beginnings(self._runs)
        # Few answers share several words in a row with the instructions. The passages are scanned only then.
        self._passages: Iterable[str] | None = passages
        self._run: Run = ()
        self._held = ""
        self._word = ""
        self._silent = False

    def feed(self, text: str) -> str:
        """The part of the text that can be shown now."""
        return "".join(map(self._take, _PIECE.findall(_IGNORABLE.sub("", text))))

    def end(self) -> str:
        """The text that was held back, after the end of the answer."""
        return self._complete()

    def _take(self, piece: str) -> str:
        if self._silent:
            return ""
        if _WORD.match(piece):
            self._word += piece
            return self._hold(piece)
        return self._complete() + ("" if self._silent else self._hold(piece))

    def _hold(self, piece: str) -> str:
        """Hold back only words that may be a recital; release the others immediately."""
        if len(self._run) < _BY_CHANCE:
            return piece
        self._held += piece
        return ""

    def _complete(self) -> str:
        """Decide about a complete word."""
        if not self._word or self._silent:
            return ""
        run = self._longest((*self._run, _fold(self._word))[-_RECITED:])
        if len(run) >= _BY_CHANCE and self._passages is not None:
            self._begun, self._passages = _beginnings(_not_in_passages(self._runs, self._passages)), None
            run = self._longest(run)
        self._run, self._word = run, ""
        if len(run) == _RECITED:
            self._silent, self._held = True, ""
        if len(run) >= _BY_CHANCE:
            return ""
        released, self._held = self._held, ""
        return released

    def _longest(self, run: Run) -> Run:
        """The longest suffix of the run that starts an n-gram of the instructions."""
        while run and run not in self._begun:
            run = run[1:]
        return run


def _words(text: str) -> list[str]:
    return [_fold(word) for word in _WORD.findall(text)]


def _fold(word: str) -> str:
    """The word as a reader sees it: letters of full width, or in a ring, are the same letters."""
    return unicodedata.normalize("NFKC", word).casefold()
