"""Markers: the many ways in which a model says where it has something from, and which passage each of them means.

Inside the program a citation is one character from a range no text uses, so that it survives the splitting of sentences
and can never be confused with what was said. Readers only ever see numbers in brackets.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bythebook.retrieval import RetrievalResult

_FIRST = 0xF0000
_MOST = 4000
_MARK = re.compile(f"[{chr(_FIRST)}-{chr(_FIRST + _MOST)}]")
_RANGE = re.compile(r"(\d{1,4})(?:\s*(?:-|–|—|to|through)\s*(\d{1,4}))?")
_NUMBERS = re.compile(
    r"\s*(?:(?:sources?|passages?|docs?|documents?|refs?|references?|citations?|cites?|chunks?|contexts?|results?|"
    r"excerpts?|see|no\.?|nr\.?|#)[\s:.#]*)*"
    r"((?:\d{1,4}(?:\s*(?:-|–|—|to|through)\s*\d{1,4})?)(?:\s*(?:,|;|and|&|\+)\s*\^?\d{1,4}"
    r"(?:\s*(?:-|–|—)\s*\d{1,4})?)*)\s*(?:†.*|:\s*\d+[†-].*)?",
    re.IGNORECASE,
)
_SAYS_SOURCE = re.compile(r"\s*(?:sources?|references?|refs?|citations?|see|from|via)\s*[:\-–]?\s+", re.IGNORECASE)
_NOT_WORDS = re.compile(r"[\W_]+")
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
SUPERSCRIPT_DIGITS = "⁰¹²³⁴⁵⁶⁷⁸⁹"

_FOOTNOTE = re.compile(r"^[ \t]{0,3}\[\^?([^\]\n]{1,80})\]:[ \t]*(.*)$", re.MULTILINE)
_LISTED = re.compile(r"^[ \t]*(?:[-*+][ \t]+)?\[?\^?(\d{1,4})[\].:)]+[ \t]+(.+)$", re.MULTILINE)
_URL = re.compile(r"(?:https?|ftp|file|corpus)://[^\s<>\"'`|\])]+", re.IGNORECASE)
HEADING = re.compile(
    r"[\s#>*_]*(?:sources?|references?|citations?|footnotes?|bibliography|works cited|further reading|"
    r"sources? (?:used|cited|consulted)|quellen|fuentes)[\s*_]*:?[\s*_]*",
    re.IGNORECASE,
)


def mark(position: int) -> str:
    """The character that stands for a citation of the passage at this position."""
    return chr(_FIRST + position)


def positions(text: str) -> tuple[int, ...]:
    """The passages the marks in the text stand for, each once, in order."""
    return tuple(dict.fromkeys(ord(found) - _FIRST for found in _MARK.findall(text)))


def numbered(text: str) -> str:
    """The text with each mark as a number in brackets."""
    return _MARK.sub(lambda found: f"[{ord(found[0]) - _FIRST}]", text)


def unmarked(text: str) -> str:
    """The text without any mark, and without the space before it."""
    return re.sub(rf"[ \t]*{_MARK.pattern}", "", text)


class Passages:
    """Finds out which passage is meant. What was never retrieved is nothing."""

    def __init__(self, results: Sequence[RetrievalResult], *, aliases: str = "") -> None:
        """`aliases` is a text whose footnotes and list of sources say what its labels stand for."""
        self._positions = {result.position for result in results if result.position <= _MOST}
        self._urls: dict[str, int] = {}
        self._titles: dict[str, int] = {}
        for result in results:
            for address in (result.url, f"{result.url}#{result.anchor}", urlsplit(result.url).path):
                self._urls.setdefault(_address(address), result.position)
            for title in (result.title, " > ".join(result.heading_hierarchy), *result.heading_hierarchy[-1:]):
                self._titles.setdefault(_plain(title), result.position)
        self._urls.pop("", None)
        self._titles.pop("", None)
        self._aliases = self._defined(aliases)

    def at(self, url: str) -> tuple[int, ...]:
        """The passage of the page at this address."""
        found = self._urls.get(_address(url)) or self._urls.get(_address(url.partition("#")[0]))
        return (found,) if found else ()

    def titled(self, text: str) -> tuple[int, ...]:
        """The passage with this title, with or without "Source:" in front."""
        for said in (text, _SAYS_SOURCE.sub("", text, count=1)):
            if found := self._titles.get(_plain(said)):
                return (found,)
        return ()

    def labelled(self, label: str) -> tuple[int, ...]:
        """The passage a footnote's label stands for."""
        if found := self._aliases.get(label.strip().lower()):
            return found
        return self.counted(label) or ()

    def counted(self, text: str) -> tuple[int, ...] | None:
        """The passages that are named by number, as in "1", "1, 2", "1-3" or "Source 2"; None when none is meant."""
        match = _NUMBERS.fullmatch(text)
        if match is None:
            return None
        found: list[int] = []
        for first, last in _RANGE.findall(match[1]):
            for number in _spread(int(first), int(last or first)):
                found.extend(self._aliases.get(str(number), (number,) if number in self._positions else ()))
        return tuple(dict.fromkeys(found))

    def named(self, text: str) -> tuple[int, ...]:
        """The passages a line about sources names, by address, number or title."""
        urls = [position for url in _URL.findall(text) for position in self.at(url)]
        brackets = re.findall(r"\[([^\]]*)\]", text)
        counted = [position for inner in brackets for position in self.counted(inner) or ()]
        pieces = re.split(r"\s*[,;|]\s*|\s+[-–—]\s+", _URL.sub("", _SAYS_SOURCE.sub("", text, count=1)))
        titles = [position for piece in [text, *pieces, *brackets] for position in self.titled(piece)]
        whole = self.counted(_SAYS_SOURCE.sub("", text, count=1).strip(" .()*_")) or ()
        return tuple(dict.fromkeys([*urls, *counted, *titles, *whole]))

    def _defined(self, text: str) -> dict[str, tuple[int, ...]]:
        """What the labels stand for that are defined in the text by an address or a title."""
        aliases: dict[str, tuple[int, ...]] = {}
        for label, said in [*_FOOTNOTE.findall(text), *_LISTED.findall(_tail(text))]:
            urls = [position for url in _URL.findall(said) for position in self.at(url)]
            titles = self.titled(re.split(r"\s+[-–—(]|\]|, (?=http)", said.strip(" -*[_"))[0])
            if found := tuple(dict.fromkeys([*urls, *titles])):
                aliases.setdefault(label.strip().lower(), found)
        return aliases


def superscript(text: str) -> str:
    """Raised digits as plain ones."""
    return text.translate(_SUPERSCRIPTS)


def says_source(text: str) -> bool:
    """Whether the text begins like "Source: ..."."""
    return bool(re.match(r"\s*(?:sources?|references?|citations?)\s*[:#\d]", text, re.IGNORECASE))


def _tail(text: str) -> str:
    """What stands below the last heading that announces sources."""
    lines = text.splitlines()
    for index in range(len(lines) - 1, -1, -1):
        if lines[index].strip() and HEADING.fullmatch(lines[index]):
            return "\n".join(lines[index + 1 :])
    return ""


def _spread(first: int, last: int) -> Iterable[int]:
    return range(first, last + 1) if first <= last <= first + 20 else (first, last)


def _address(url: str) -> str:
    """The address without what two spellings of it may differ in; empty for what is none."""
    try:
        split = urlsplit(unquote(url.strip().strip("<>")).partition(":~:")[0])
    except ValueError:
        return ""
    path = re.sub(r"(?:/index)?(?:\.html?|\.mdx?)?/*$", "", split.path)
    host = split.netloc.lower().removeprefix("www.")
    return f"{host}{path}{'#' + split.fragment if split.fragment else ''}"


def _plain(text: str) -> str:
    return _NOT_WORDS.sub(" ", text).strip().lower()
