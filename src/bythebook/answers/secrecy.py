"""Secrecy: what the model was told is the owner's, so a model that recites it is not shown doing so.

Proof removes most such sentences from an answer, but not those that say what the book lacks, and it comes only when the
answer is whole. `Secret` is for the time before, while it is being written; `kept_secret` is for the whole of it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_WORD = re.compile(r"[^\W_]+")
_SENTENCE = re.compile(r"(?:(?![.!?:]\s|\n).)*(?:[.!?:]\s|\n|\Z)", re.DOTALL)
_PIECE = re.compile(r"[^\W_]+|[\W_]+")
_BY_CHANCE = 4
"""So many words in a row may be anyone's."""
_RECITED = 8
"""So many are recited."""


def kept_secret(answer: str, instructions: str, passages: Iterable[str]) -> str:
    """The answer without its sentences that recite the instructions."""
    runs = _runs(instructions, passages)
    words = list(_WORD.finditer(answer))
    spoken = [word[0].casefold() for word in words]
    recited = [False] * len(answer)
    for at in range(len(words) - _RECITED + 1):
        if tuple(spoken[at : at + _RECITED]) in runs:
            start, end = words[at].start(), words[at + _RECITED - 1].end()
            recited[start:end] = [True] * (end - start)
    return "".join(found[0] for found in _SENTENCE.finditer(answer) if not any(recited[found.start() : found.end()]))


def _runs(instructions: str, passages: Iterable[str]) -> set[tuple[str, ...]]:
    """Every so many words of the instructions that tell them. What also stands in the passages is no secret."""
    known = [" ".join(_words(passage)) for passage in passages]
    words = _words(instructions)
    runs = (tuple(words[at : at + _RECITED]) for at in range(len(words) - _RECITED + 1))
    return {run for run in runs if not any(" ".join(run) in text for text in known)}


class Secret:
    """Follows words as they come, and falls silent for good when they recite the instructions."""

    def __init__(self, instructions: str, passages: Iterable[str] = ()) -> None:
        runs = _runs(instructions, passages)
        self._begun = {run[:length] for run in runs for length in range(1, _RECITED + 1)}
        self._run: tuple[str, ...] = ()
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
        run = (*self._run, self._word.casefold())[-_RECITED:]
        while run and run not in self._begun:
            run = run[1:]
        self._run, self._word = run, ""
        if len(run) == _RECITED:
            self._silent, self._held = True, ""
        if len(run) >= _BY_CHANCE:
            return ""
        released, self._held = self._held, ""
        return released


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]
