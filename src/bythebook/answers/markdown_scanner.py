"""Incremental scanning of a model's Markdown: URLs, code fences, source lists, links and HTML tags.

Each `find_*_end` function returns where the construct ends, or None if there is no such construct. It raises
`NeedMoreInput` while that depends on text that has not arrived. Where renderers disagree, code is treated as text and
text as a link: sanitizing too much is a blemish, too little is a security hole.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from bythebook.answers.citation_markers import HEADING, CitationResolver

URL_START = re.compile(r"(?<![A-Za-z0-9])(?:(?:https?|ftp|file|wss?)://|mailto:|www\.)", re.IGNORECASE)
URL_END = re.compile(r"[\s<>\"`|\[\]{}【]")
LOOPBACK = re.compile(r"https?://(?:localhost|127\.0\.0\.1|0\.0\.0\.0)(?![\w.-])", re.IGNORECASE)
# Matches from the @ sign: the local part may already have been sent to the reader.
EMAIL = re.compile(r"(?<=[\w.+-])@[\w-]+(?:\.[\w-]+)+")
_LETTERS = re.compile(r"[A-Za-z]+")
_LEADING = ("https", "ftp", "file", "wss", "mailto", "www")


def cannot_become_url(word: str, before: str) -> bool:
    """True if no continuation of `word` can become a URL. `before` is the text directly in front of it."""
    attached = before.isascii() and before.isalnum()
    leads = not attached and any(scheme.startswith(word.lower()) for scheme in _LEADING)
    return _LETTERS.fullmatch(word) is not None and not leads


def strip_trailing_punctuation(url: str) -> str:
    """Strip the punctuation of the surrounding sentence from a URL."""
    bare = url.rstrip(".,;:!?'*_~")
    return bare.rstrip(")") if bare.endswith(")") and bare.count("(") < bare.count(")") else bare


LONGEST = 4000
"""Maximum length of a construct. Streamed and complete text use the same limit."""
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
"""Some renderers do not recognise a fence that is indented further; such a fence is moved to this indent."""


@dataclass(frozen=True, slots=True)
class Fence:
    """The line that opens a code block."""

    indent: int
    mark: str

    @classmethod
    def parse(cls, line: str) -> Self | None:
        match = _OPENING.match(line.rstrip("\n"))
        if match is None or (match[2][0] == "`" and "`" in match[3]):
            return None
        return cls(len(match[1].expandtabs(4)), match[2])

    def is_closed_by(self, line: str) -> bool:
        stripped = line.strip()
        return stripped.startswith(self.mark) and not stripped.strip(self.mark[0])

    def reindent(self, line: str) -> str:
        """Re-indent a line of code so that every renderer keeps it inside the block."""
        body = line.lstrip(" \t")
        if not body.strip():
            return line
        depth = len(line[: len(line) - len(body)].expandtabs(4))
        wanted = min(self.indent, _DEEPEST) + max(depth - self.indent, 0)
        return line if depth == wanted and "\t" not in line[:depth] else " " * wanted + body


class SourceListTracker:
    """Recognises the lines of a source list at the end of an answer."""

    def __init__(self, resolver: CitationResolver) -> None:
        self._resolver = resolver
        self._heading = ""
        self.listing = False

    def read(self, line: str) -> tuple[int, ...] | None:
        """Passages to cite in place of this line; None if the line does not belong to a source list."""
        if HEADING.fullmatch(line) and line.strip():
            self.listing, self._heading = True, line
            return ()
        if _SOURCES_SAID.fullmatch(line):
            return self._resolver.by_line(line.strip(" \n()*_>"))
        if not self.listing:
            return None
        if not line.strip():
            return ()
        if _TELLING.search(line) or self._resolver.by_line(_ENTRY.sub("", line, count=1).strip()):
            self._heading = ""
            return ()
        self.listing = False
        return None

    def take_heading(self) -> str:
        """The heading of a source list that turned out to introduce ordinary text; empty if there is none."""
        if self.listing:
            return ""
        heading, self._heading = self._heading, ""
        return f"{heading.strip()}\n\n" if heading else ""


def is_link_definition(line: str) -> bool:
    """True for a link or footnote definition: `[1]: url` or `[^1]: source`."""
    return len(line) <= LONGEST and bool(_DEFINITION.fullmatch(line.rstrip("\n")))


def may_be_special_line(line: str) -> bool:
    """True if an unfinished line may become a fence, a definition or a source line."""
    body = line.lstrip(" \t")
    if not body or (body[0] in "`~" and (not body.strip(body[0]) or body.startswith(body[0] * 3))):
        return True
    if body[0] == "[" and len(line) <= LONGEST and re.fullmatch(r"\[[^\]\n]*(?:\](?::.*)?)?", body):
        return True
    said = body.lstrip("#>*_( \t").lower()
    return not said or any(said.startswith(word) or word.startswith(said) for word in _ANNOUNCING)


_DEEPEST_NESTING = 20
"""Deeper nested brackets are not links. The limit bounds the time of the search."""
_PARAGRAPH_ENDS = re.compile(r"\n[ \t]*\n")
_TAG = re.compile(r"<(/?)([A-Za-z][\w:-]*)")
_PLACEHOLDER = re.compile(r"<[A-Za-z][\w |-]*>")
_WITH_CONTENT = frozenset({"script", "style", "iframe", "svg", "math", "object", "template", "noscript", "textarea"})
_CITING = frozenset({"cite", "sup", "ref", "source", "citation"})
_TAGS = _WITH_CONTENT | _CITING | set(json.loads(Path(__file__).with_suffix(".json").read_bytes())["tags"].split())


class NeedMoreInput(Exception):
    """The result depends on text that has not arrived yet."""


def find_bracket_end(text: str, start: int, *, final: bool) -> int | None:
    """Index after the bracket that closes the one at `start`."""
    depth, at = 0, start
    for _ in range(LONGEST):
        char = text[at : at + 1]
        if not char or (char == "\n" and _PARAGRAPH_ENDS.match(text, at)):
            return _not_found(final=final or bool(char))
        if char == "`" and (code := find_code_end(text, at, final=final)):
            at = code
            continue
        depth += (char == "[") - (char == "]")
        at += 2 if char == "\\" else 1
        if depth in (0, _DEEPEST_NESTING):
            return at if depth == 0 else None
    return None


def find_destination_end(text: str, start: int, *, final: bool) -> int | None:
    """Index after the parenthesis that closes the one at `start`."""
    depth, at = 0, start
    for _ in range(LONGEST):
        char = text[at : at + 1]
        if not char or (char == "\n" and _PARAGRAPH_ENDS.match(text, at)):
            return _not_found(final=final or bool(char))
        depth += (char == "(") - (char == ")")
        at += 2 if char == "\\" else 1
        if depth in (0, _DEEPEST_NESTING):
            return at if depth == 0 else None
    return None


def find_code_end(text: str, start: int, *, final: bool) -> int | None:
    """Index after the code span that starts at `start`, if it ends on the same line."""
    run = len(text) - start - len(text[start:].lstrip("`"))
    line = text.find("\n", start)
    within = text[start : line if line >= 0 else len(text)][:LONGEST]
    unfinished = line < 0 and not final and len(within) < LONGEST
    closing = re.compile(rf"(?<!`){'`' * run}(?!`)").search(within, run)
    # A backtick at the end of the buffer may be the first of several.
    if unfinished and (closing is None or closing.end() == len(within)):
        raise NeedMoreInput
    return start + closing.end() if closing else None


def find_html_end(text: str, *, final: bool) -> int | None:
    """Index after the tag, comment or autolink at the start of the text, including the content of elements such as
    <script>.
    """
    if len(text) < 2:
        return _not_found(final=final)
    if not (text[1].isalpha() or text[1] in "/!?"):
        return None
    if len(text) < 4 and "<!--".startswith(text) and not final:
        raise NeedMoreInput
    end = _find_after("-->" if text.startswith("<!--") else ">", text, final=final)
    if end is None:
        return None
    tag = _TAG.match(text)
    name = tag[2].lower() if tag and not tag[1] else ""
    if name in _WITH_CONTENT | _CITING and text[end - 2] != "/":
        return _find_closing_tag(name, text, end, final=final) or end
    return end


def is_placeholder(text: str) -> bool:
    """True for a placeholder such as `<folder>` that is not an HTML tag."""
    tag = _TAG.match(text)
    return bool(_PLACEHOLDER.fullmatch(text)) and tag is not None and tag[2].lower() not in _TAGS


def citation_in_tag(text: str) -> str:
    """The citation inside a citing tag: "1" for `<cite>1</cite>`. Empty for other tags."""
    tag = _TAG.match(text)
    if tag is None or tag[2].lower() not in _CITING:
        return ""
    inner = re.fullmatch(r"<[^>]*>(.*)</[^>]*>", text, re.DOTALL)
    held = re.search(r"(?:id|name|n|number|source|href)\s*=\s*[\"']?([^\"'\s>/]+)", text.partition(">")[0])
    return (inner[1].strip() if inner else "") or (held[1] if held else "")


def _find_after(ending: str, text: str, *, final: bool) -> int | None:
    within = text[:LONGEST]
    at = within.find(ending)
    if at >= 0:
        return at + len(ending)
    return _not_found(final=final or len(within) == LONGEST)


def _find_closing_tag(name: str, text: str, start: int, *, final: bool) -> int | None:
    closing = re.compile(rf"</{name}\s*>", re.IGNORECASE).search(text[: start + LONGEST], start)
    if closing is None:
        return _not_found(final=final or len(text) >= start + LONGEST)
    return closing.end()


def _not_found(*, final: bool) -> int | None:
    if not final:
        raise NeedMoreInput
    return None
