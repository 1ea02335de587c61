"""Secrecy: what the model was told is the owner's, so a model that recites it is not shown doing so.

Proof removes most such sentences from an answer, but not those that say what the book lacks, and it comes only when the
answer is whole. `Secret` is for the time before, while it is being written; `kept_secret` is for the whole of it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    Run = tuple[str, ...]

_WORD = re.compile(r"[^\W_]+")
_SENTENCE = re.compile(r"(?:(?![.!?:]\s|\n).)*(?:[.!?:]\s|\n|\Z)", re.DOTALL)
_PIECE = re.compile(r"[^\W_]+|[\W_]+")
_BY_CHANCE = 4
"""So many words in a row may be anyone's."""
_RECITED = 8
"""So many are recited."""


def kept_secret(answer: str, instructions: str, passages: Iterable[str]) -> str:
    """The answer without its sentences that recite the instructions."""
    words = list(_WORD.finditer(answer))
    spoken = [word[0].casefold() for word in words]
    runs = [tuple(spoken[at : at + _RECITED]) for at in range(len(words) - _RECITED + 1)]
    told = _runs(instructions).intersection(runs)
    if not told:
        return answer
    secret = _unknown(told, passages)
    recited = [False] * len(answer)
    for at, run in enumerate(runs):
        if run in secret:
            start, end = words[at].start(), words[at + _RECITED - 1].end()
            recited[start:end] = [True] * (end - start)
    return "".join(found[0] for found in _SENTENCE.finditer(answer) if not any(recited[found.start() : found.end()]))


@lru_cache(maxsize=8)
def _runs(instructions: str) -> frozenset[Run]:
    """Every so many words of the instructions that tell them."""
    words = _words(instructions)
    return frozenset(tuple(words[at : at + _RECITED]) for at in range(len(words) - _RECITED + 1))


def _unknown(runs: Iterable[Run], passages: Iterable[str]) -> frozenset[Run]:
    """Those that do not stand in the passages as well: what does is no secret."""
    known = [" ".join(_words(passage)) for passage in passages]
    return frozenset(run for run in runs if not any(" ".join(run) in text for text in known))


@lru_cache(maxsize=8)
def _beginnings(runs: frozenset[Run]) -> frozenset[Run]:
    return frozenset(run[:length] for run in runs for length in range(1, _RECITED + 1))


class Secret:
    """Follows words as they come, and falls silent for good when they recite the instructions."""

    def __init__(self, instructions: str, passages: Iterable[str] = ()) -> None:
        self._runs = _runs(instructions)
        self._begun = _beginnings(self._runs)
        # Few answers have words of the instructions in a row: only then the passages are gone through.
        self._passages: Iterable[str] | None = passages
        self._run: Run = ()
        self._held = ""
        self._word = ""
        self._silent = False

    def feed(self, text: str) -> str:
        """What of it may be shown now."""
        return "".join(map(self._take, _PIECE.findall(text)))

    def end(self) -> str:
        """What was held back, now that nothing follows."""
        return self._complete()

    def _take(self, piece: str) -> str:
        if self._silent:
            return ""
        if _WORD.match(piece):
            self._word += piece
            return self._hold(piece)
        return self._complete() + ("" if self._silent else self._hold(piece))

    def _hold(self, piece: str) -> str:
        """Only words that may be recited are held back, so that others come at once."""
        if len(self._run) < _BY_CHANCE:
            return piece
        self._held += piece
        return ""

    def _complete(self) -> str:
        """What can be told, now that a word is whole."""
        if not self._word or self._silent:
            return ""
        run = self._longest((*self._run, self._word.casefold())[-_RECITED:])
        if len(run) >= _BY_CHANCE and self._passages is not None:
            self._begun, self._passages = _beginnings(_unknown(self._runs, self._passages)), None
            run = self._longest(run)
        self._run, self._word = run, ""
        if len(run) == _RECITED:
            self._silent, self._held = True, ""
        if len(run) >= _BY_CHANCE:
            return ""
        released, self._held = self._held, ""
        return released

    def _longest(self, run: Run) -> Run:
        """As many of the last words as may begin to recite."""
        while run and run not in self._begun:
            run = run[1:]
        return run


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]
