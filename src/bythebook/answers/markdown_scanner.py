"""Addresses in the open: what looks like one in what a model writes.

Lines of an answer that are taken or left whole: code, link definitions, and the sources a model lists at the end.

Where the constructs of Markdown and HTML end that begin at a given place, as far as the text has come.

Each function says where the construct ends, `None` when what begins there is none, and raises `More` while that still
depends on what follows. Where a renderer could see it either way, code is taken for text and text for a link: what is
cleaned without need is a blemish, what is missed is a hole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from bythebook.answers.citation_markers import HEADING

if TYPE_CHECKING:
    from bythebook.answers.citation_markers import Passages


ADDRESS = re.compile(r"(?<![A-Za-z0-9])(?:(?:https?|ftp|file|wss?)://|mailto:|www\.)", re.IGNORECASE)
END = re.compile(r"[\s<>\"`|\[\]{}【]")
LOOPBACK = re.compile(r"https?://(?:localhost|127\.0\.0\.1|0\.0\.0\.0)(?![\w.-])", re.IGNORECASE)
# Without what stands before its sign, which may have been shown already.
EMAIL = re.compile(r"(?<=[\w.+-])@[\w-]+(?:\.[\w-]+)+")
_LETTERS = re.compile(r"[A-Za-z]+")
_LEADING = ("https", "ftp", "file", "wss", "mailto", "www")


def is_none(word: str, before: str) -> bool:
    """Whether a word that may go on is no address, however it goes on; `before` is what it continues, if anything."""
    attached = before.isascii() and before.isalnum()
    leads = not attached and any(scheme.startswith(word.lower()) for scheme in _LEADING)
    return _LETTERS.fullmatch(word) is not None and not leads


def bare(url: str) -> str:
    """The address without the marks of the sentence it stands in."""
    bare = url.rstrip(".,;:!?'*_~")
    return bare.rstrip(")") if bare.endswith(")") and bare.count("(") < bare.count(")") else bare


_OPENING = re.compile(r"([ \t]*)(`{3,}|~{3,})(.*)")
_DEFINITION = re.compile(r"[ \t]*\[[^\]\n]+\]:.*")
_SOURCES_SAID = re.compile(r"[\s>*_(]*sources?[\s*_]*:[\s*_]*\S.*", re.IGNORECASE | re.DOTALL)
_ENTRY = re.compile(r"\s*(?:[-*+]\s+|\d{1,3}[.)]\s+|\**\[\^?\d+\]|【\d|https?://)", re.IGNORECASE)
_TELLING = re.compile(r"https?://|\[\^?\d|【\d")
_ANNOUNCING = (
    "source", "reference", "citation", "footnote", "bibliography", "works cited", "further reading", "quellen",
    "fuentes",
)  # fmt: skip
_DEEPEST = 3
"""A fence that is indented further may be read as something else; it is moved to where it is always a fence."""


@dataclass(frozen=True, slots=True)
class Fence:
    """The line that opened a block of code."""

    indent: int
    mark: str

    @classmethod
    def opened_by(cls, line: str) -> Self | None:
        match = _OPENING.match(line.rstrip("\n"))
        if match is None or (match[2][0] == "`" and "`" in match[3]):
            return None
        return cls(len(match[1].expandtabs(4)), match[2])

    def closed_by(self, line: str) -> bool:
        stripped = line.strip()
        return stripped.startswith(self.mark) and not stripped.strip(self.mark[0])

    def placed(self, line: str) -> str:
        """The line where every renderer sees it inside the block: neither too deep nor less deep than its fence."""
        body = line.lstrip(" \t")
        if not body.strip():
            return line
        depth = len(line[: len(line) - len(body)].expandtabs(4))
        wanted = min(self.indent, _DEEPEST) + max(depth - self.indent, 0)
        return line if depth == wanted and "\t" not in line[:depth] else " " * wanted + body


class Sources:
    """Follows a list of sources through its lines."""

    def __init__(self, passages: Passages) -> None:
        self._passages = passages
        self._heading = ""
        self.listing = False

    def read(self, line: str) -> tuple[int, ...] | None:
        """The passages to cite in place of this line; None when the line is not about sources."""
        if HEADING.fullmatch(line) and line.strip():
            self.listing, self._heading = True, line
            return ()
        if _SOURCES_SAID.fullmatch(line):
            return self._passages.named(line.strip(" \n()*_>"))
        if not self.listing:
            return None
        if not line.strip():
            return ()
        if _TELLING.search(line) or self._passages.named(_ENTRY.sub("", line, count=1).strip()):
            self._heading = ""
            return ()
        self.listing = False
        return None

    def given_back(self) -> str:
        """The heading that announced sources when other things follow it; empty when there is none."""
        if self.listing:
            return ""
        heading, self._heading = self._heading, ""
        return f"{heading.strip()}\n\n" if heading else ""


def is_definition(line: str) -> bool:
    """Whether the line says what a label stands for: `[1]: address` or `[^1]: where it is from`."""
    return bool(_DEFINITION.fullmatch(line.rstrip("\n")))


def may_announce(line: str) -> bool:
    """Whether an unfinished line may turn out to be one that is taken or left whole."""
    body = line.lstrip(" \t")
    if not body or (body[0] in "`~" and (not body.strip(body[0]) or body.startswith(body[0] * 3))):
        return True
    if body[0] == "[" and re.fullmatch(r"\[[^\]\n]*(?:\](?::.*)?)?", body):
        return True
    said = body.lstrip("#>*_( \t").lower()
    return not said or any(said.startswith(word) or word.startswith(said) for word in _ANNOUNCING)


LONGEST = 4000
"""How far the end of a construct is looked for. The same for a text that comes at once and one that comes in pieces."""

_DEEPEST_NESTING = 20
"""Brackets within brackets beyond this are nobody's link, and looking for their ends would take for ever."""
_PARAGRAPH_ENDS = re.compile(r"\n[ \t]*\n")
_TAG = re.compile(r"<(/?)([A-Za-z][\w:-]*)")
_PLACEHOLDER = re.compile(r"<[A-Za-z][\w |-]*>")
_WITH_CONTENT = frozenset({"script", "style", "iframe", "svg", "math", "object", "template", "noscript", "textarea"})
_CITING = frozenset({"cite", "sup", "ref", "source", "citation"})
_TAGS = (
    _WITH_CONTENT
    | _CITING
    | frozenset(
        "a abbr acronym address applet area article aside audio b base basefont bdi bdo bgsound big blink "
        "blockquote body br button canvas caption center code col colgroup content data datalist dd del details "
        "dfn dialog dir div dl dt em embed fieldset figcaption figure font footer form frame frameset h1 h2 h3 h4 "
        "h5 h6 head header hgroup hr html i image img input ins isindex kbd keygen label legend li link listing "
        "main map mark marquee menu menuitem meta meter nav nobr noembed noframes ol optgroup option output p "
        "param picture plaintext portal pre progress q rb rp rt rtc ruby s samp search section select shadow slot "
        "small spacer span strike strong sub summary table tbody td tfoot th thead time title tr track tt u ul "
        "var video wbr xmp".split()
    )
)


class More(Exception):
    """It depends on what follows."""


def after_bracket(text: str, start: int, *, final: bool) -> int | None:
    """Behind the bracket that closes the one at `start`."""
    depth, at = 0, start
    for _ in range(LONGEST):
        char = text[at : at + 1]
        if not char or (char == "\n" and _PARAGRAPH_ENDS.match(text, at)):
            return _undecided(final=final or bool(char))
        if char == "`" and (code := after_code(text, at, final=final)):
            at = code
            continue
        depth += (char == "[") - (char == "]")
        at += 2 if char == "\\" else 1
        if depth in (0, _DEEPEST_NESTING):
            return at if depth == 0 else None
    return None


def after_destination(text: str, start: int, *, final: bool) -> int | None:
    """Behind the parenthesis that closes the one at `start`."""
    depth, at = 0, start
    for _ in range(LONGEST):
        char = text[at : at + 1]
        if not char or (char == "\n" and _PARAGRAPH_ENDS.match(text, at)):
            return _undecided(final=final or bool(char))
        depth += (char == "(") - (char == ")")
        at += 2 if char == "\\" else 1
        if depth == 0:
            return at
    return None


def after_code(text: str, start: int, *, final: bool) -> int | None:
    """Behind the code span that begins with the backtick at `start`, if it ends on the same line."""
    run = len(text) - start - len(text[start:].lstrip("`"))
    line = text.find("\n", start)
    within = text[start : line if line >= 0 else len(text)][:LONGEST]
    unfinished = line < 0 and not final and len(within) < LONGEST
    closing = re.compile(rf"(?<!`){'`' * run}(?!`)").search(within, run)
    # A backtick at the very end may be the first of several.
    if unfinished and (closing is None or closing.end() == len(within)):
        raise More
    return start + closing.end() if closing else None


def after_html(text: str, *, final: bool) -> int | None:
    """Behind the tag, comment or address in angle brackets that the text begins with, and what only they may hold."""
    if len(text) < 2:
        return _undecided(final=final)
    if not (text[1].isalpha() or text[1] in "/!?"):
        return None
    if len(text) < 4 and "<!--".startswith(text) and not final:
        raise More
    end = _behind("-->" if text.startswith("<!--") else ">", text, final=final)
    if end is None:
        return None
    tag = _TAG.match(text)
    name = tag[2].lower() if tag and not tag[1] else ""
    if name in _WITH_CONTENT | _CITING and text[end - 2] != "/":
        return _behind_closing(name, text, end, final=final) or end
    return end


def is_placeholder(text: str) -> bool:
    """Whether this stands for something to fill in, such as `<folder>`, and is no tag HTML knows."""
    tag = _TAG.match(text)
    return bool(_PLACEHOLDER.fullmatch(text)) and tag is not None and tag[2].lower() not in _TAGS


def cited_by_tag(text: str) -> str:
    """What a tag made for citing holds: "1" of `<cite>1</cite>`. Empty for any other."""
    tag = _TAG.match(text)
    if tag is None or tag[2].lower() not in _CITING:
        return ""
    inner = re.fullmatch(r"<[^>]*>(.*)</[^>]*>", text, re.DOTALL)
    held = re.search(r"(?:id|name|n|number|source|href)\s*=\s*[\"']?([^\"'\s>/]+)", text.partition(">")[0])
    return (inner[1].strip() if inner else "") or (held[1] if held else "")


def _behind(ending: str, text: str, *, final: bool) -> int | None:
    within = text[:LONGEST]
    at = within.find(ending)
    if at >= 0:
        return at + len(ending)
    return _undecided(final=final or len(within) == LONGEST)


def _behind_closing(name: str, text: str, start: int, *, final: bool) -> int | None:
    closing = re.compile(rf"</{name}\s*>", re.IGNORECASE).search(text[: start + LONGEST], start)
    if closing is None:
        return _undecided(final=final or len(text) >= start + LONGEST)
    return closing.end()


def _undecided(*, final: bool) -> int | None:
    if not final:
        raise More
    return None
