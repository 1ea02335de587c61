"""Small talk: greetings, thanks and questions about the assistant itself, in the languages of the widget."""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


class Kind(IntEnum):
    """What is said. Of several things at once, the highest is replied to."""

    ASSENT = 0
    GREETING = 1
    THANKS = 2
    FAREWELL = 3
    IDENTITY = 4


_TABLE = Path(__file__).with_suffix(".json")
"""By language: the phrases of each kind, the reply to it, and the line before the questions.

A phrase that several languages share belongs to the first.
"""
_LONGEST = 12
"""Small talk has at most this many words."""
_WORD = re.compile(r"[^\W\d_]+")
_NOT_TALK = re.compile(r"[\d_`/\\{}\[\]<>=#$@|*+]|\w\(")
"""Signs of code or names."""
_APOSTROPHES = str.maketrans("", "", "'’‘ʼ")
_FILLERS = frozenset("there so very please again for now and dear y et und o my friend".split())
"""Words that may stand between phrases."""


@dataclass(frozen=True, slots=True)
class SmallTalk:
    """What was said, and its language."""

    kind: Kind
    language: str

    def reply(self, questions: Sequence[str]) -> str:
        """A friendly line in the same language, with questions that the book answers."""
        replies = _table()[self.language]
        line, lead = replies["replies"][self.kind.name.lower()], replies["lead"]
        return "\n".join([line, "", lead, "", *(f"- {question}" for question in questions)]) if questions else line


def find_small_talk(text: str) -> SmallTalk | None:
    """The small talk that the whole text consists of. None if it asks anything else: "hi, how do I install it?"."""
    if _NOT_TALK.search(text):
        return None
    words = _WORD.findall(_normalize(text))
    found: list[SmallTalk] = []
    place = 0
    if len(words) > _LONGEST:
        return None
    while place < len(words):
        size, said = _longest_phrase(words[place:])
        if said is None:
            if words[place] not in _FILLERS:
                return None
            size = 1
        else:
            found.append(said)
        place += size
    return max(found, key=lambda said: said.kind, default=None)


def _longest_phrase(words: Sequence[str]) -> tuple[int, SmallTalk | None]:
    known = _phrases()
    sizes = (size for size in range(len(words), 0, -1) if " ".join(words[:size]) in known)
    size = next(sizes, 0)
    return size, known.get(" ".join(words[:size]))


@cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(_TABLE.read_bytes())
    return table


@cache
def _phrases() -> dict[str, SmallTalk]:
    phrases: dict[str, SmallTalk] = {}
    for language, entry in _table().items():
        for kind, listed in entry["phrases"].items():
            for phrase in listed:
                phrases.setdefault(" ".join(_normalize(phrase).split()), SmallTalk(Kind[kind.upper()], language))
    return phrases


def _normalize(text: str) -> str:
    """Lowercase, without accents and apostrophes. Arabic loses its vowel marks and the signs of its alef."""
    parts = unicodedata.normalize("NFKD", text.translate(_APOSTROPHES).casefold())
    return "".join(char for char in parts if not unicodedata.combining(char))
