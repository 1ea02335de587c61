"""Recognises the citation formats models use and resolves each to a retrieved passage.

Internally a citation is one private-use character per passage, so that it survives sentence splitting and cannot be
confused with the answer's text. Readers only see numbers in brackets.
"""

import re
from collections.abc import Iterable, Sequence
from urllib.parse import unquote, urlsplit

from bythebook.retrieval import RetrievalResult

_FIRST = 0xF0000
_MOST = 4000
_LONGEST_LINE = 2_000
"""How much of a source line or a URL is read: the time of some patterns grows with the square of it."""
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


def citation_mark(position: int) -> str:
    """The private-use character that cites the passage at this position."""
    return chr(_FIRST + position)


def find_positions(text: str) -> tuple[int, ...]:
    """Positions of the cited passages, in order of first citation."""
    return tuple(dict.fromkeys(ord(found) - _FIRST for found in _MARK.findall(text)))


def render_numbers(text: str) -> str:
    """Replace each citation mark by its number in brackets."""
    return _MARK.sub(lambda found: f"[{ord(found[0]) - _FIRST}]", text)


def strip_marks(text: str) -> str:
    """Remove citation marks and the space before them."""
    return re.sub(rf"[ \t]*{_MARK.pattern}", "", text)


class CitationResolver:
    """Resolves a citation by URL, title or number. A passage that was not retrieved never matches."""

    def __init__(self, results: Sequence[RetrievalResult], *, aliases: str = "") -> None:
        """Footnotes and source lists in `aliases` define what the answer's labels mean."""
        self._positions = {result.position for result in results if result.position <= _MOST}
        self._urls: dict[str, int] = {}
        self._titles: dict[str, int] = {}
        for result in results:
            for address in (result.url, f"{result.url}#{result.anchor}", urlsplit(result.url).path):
                self._urls.setdefault(_normalize_url(address), result.position)
            for title in (result.title, " > ".join(result.heading_hierarchy), *result.heading_hierarchy[-1:]):
                self._titles.setdefault(_normalize_title(title), result.position)
        self._urls.pop("", None)
        self._titles.pop("", None)
        self._aliases = self._parse_aliases(aliases)

    def at(self, url: str) -> tuple[int, ...]:
        """The passage of the page at this URL."""
        found = self._urls.get(_normalize_url(url)) or self._urls.get(_normalize_url(url.partition("#")[0]))
        return (found,) if found else ()

    def by_title(self, text: str) -> tuple[int, ...]:
        """The passage with this title, with or without "Source:" in front."""
        for said in (text, _SAYS_SOURCE.sub("", text, count=1)):
            if found := self._titles.get(_normalize_title(said)):
                return (found,)
        return ()

    def by_label(self, label: str) -> tuple[int, ...]:
        """The passage a footnote label refers to."""
        if found := self._aliases.get(label.strip().lower()):
            return found
        return self.by_number(label) or ()

    def by_number(self, text: str) -> tuple[int, ...] | None:
        """Passages cited by number, as in "1", "1, 2", "1-3" or "Source 2"; None if the text is not a citation."""
        match = _NUMBERS.fullmatch(text)
        if match is None:
            return None
        found: list[int] = []
        for first, last in _RANGE.findall(match[1]):
            for number in _expand_range(int(first), int(last or first)):
                found.extend(self._aliases.get(str(number), (number,) if number in self._positions else ()))
        return tuple(dict.fromkeys(found))

    def by_line(self, text: str) -> tuple[int, ...]:
        """Passages a source line mentions by URL, number or title."""
        text = text[:_LONGEST_LINE]
        urls = [position for url in _URL.findall(text) for position in self.at(url)]
        brackets = re.findall(r"\[([^\]]*)\]", text)
        counted = [position for inner in brackets for position in self.by_number(inner) or ()]
        pieces = re.split(r"\s*[,;|]\s*|\s+[-–—]\s+", _URL.sub("", _SAYS_SOURCE.sub("", text, count=1)))
        titles = [position for piece in [text, *pieces, *brackets] for position in self.by_title(piece)]
        whole = self.by_number(_SAYS_SOURCE.sub("", text, count=1).strip(" .()*_")) or ()
        return tuple(dict.fromkeys([*urls, *counted, *titles, *whole]))

    def _parse_aliases(self, text: str) -> dict[str, tuple[int, ...]]:
        """Labels the text defines by a URL or a title, with their passages."""
        aliases: dict[str, tuple[int, ...]] = {}
        for label, line in [*_FOOTNOTE.findall(text), *_LISTED.findall(_text_below_sources_heading(text))]:
            said = line[:_LONGEST_LINE]
            urls = [position for url in _URL.findall(said) for position in self.at(url)]
            titles = self.by_title(re.split(r"\s+[-–—(]|\]|, (?=http)", said.strip(" -*[_"))[0])
            if found := tuple(dict.fromkeys([*urls, *titles])):
                aliases.setdefault(label.strip().lower(), found)
        return aliases


def to_plain_digits(text: str) -> str:
    """Replace superscript digits by plain digits."""
    return text.translate(_SUPERSCRIPTS)


def is_source_label(text: str) -> bool:
    """True if the text starts like "Source: ..."."""
    return bool(re.match(r"\s*(?:sources?|references?|citations?)\s*[:#\d]", text, re.IGNORECASE))


def _text_below_sources_heading(text: str) -> str:
    """The text below the last heading of a source list."""
    lines = text.splitlines()
    for index in range(len(lines) - 1, -1, -1):
        if lines[index].strip() and HEADING.fullmatch(lines[index]):
            return "\n".join(lines[index + 1 :])
    return ""


def _expand_range(first: int, last: int) -> Iterable[int]:
    return range(first, last + 1) if first <= last <= first + 20 else (first, last)


def _normalize_url(url: str) -> str:
    """A canonical form for comparing URLs; empty if `url` is malformed."""
    try:
        split = urlsplit(unquote(url[:_LONGEST_LINE].strip().strip("<>")).partition(":~:")[0])
    except ValueError:
        return ""
    path = re.sub(r"(?:/index)?(?:\.html?|\.mdx?)?/*$", "", split.path)
    host = split.netloc.lower().removeprefix("www.")
    return f"{host}{path}{'#' + split.fragment if split.fragment else ''}"


def _normalize_title(text: str) -> str:
    return _NOT_WORDS.sub(" ", text).strip().lower()
