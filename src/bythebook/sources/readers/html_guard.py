"""The guard: refuses HTML that was made to be slow, before it is parsed.

A parser of HTML must accept anything, and some of that takes it a time that grows with the square of the page: many
elements open at once, many attributes on one, formatting that is repeated in every paragraph. The guard walks over the
tags as the parser will and keeps account of what is open, never less than the parser will have.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field

from bythebook.sources import Unreadable

MOST_OPEN = 1_000
"""Elements open at once beyond which a page was made to be slow."""
MOST_TAGS = 400_000
FEW_TAGS = 3_000
"""Start and end tags up to which a page is parsed in no time even if it was made to be slow."""
MOST_ATTRIBUTES = 500
"""Attributes of one element."""
MOST_ROOTS = 20
"""How often `html` and `body` may be written: the attributes of all of them are gathered on one."""
MOST_CARRIED = 3_000_000
"""How often formatting that was never closed may be taken along into another element."""

_NAME = re.compile(r"<(/?)([a-zA-Z][^\s/>]*)")
_REST = re.compile(r"((?:=\s*\"[^\"]*\"|=\s*'[^']*'|[^>])*+)>")
_ATTRIBUTE = re.compile(r"[^\s/=>\"']+(?:\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s>]+))?")
_LONG_TAG = re.compile(r"<[^<>]{5000}")
_RAW = frozenset(["script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes"])
_VOID = frozenset(
    [
        *("area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "img", "input", "keygen", "link"),
        *("meta", "param", "source", "track", "wbr", "image"),
    ]
)
_CLOSED_BY_THE_NEXT = frozenset(["li", "p", "dt", "dd", "option", "html", "head", "body", "colgroup"])
"""They are closed by the next of their kind, or can only be open once."""
_CELLS = frozenset(["td", "th", "caption"])
_ROWS = frozenset(["tr", "tbody", "thead", "tfoot"])
_DRAWINGS = frozenset(["svg", "math"])
_INSIDE_DRAWINGS = frozenset("foreignobject desc title mi mo mn ms mtext annotation-xml script style".split())
"""Inside of these, in a drawing, HTML may stand again."""
_WALLS = _CELLS | _DRAWINGS | _INSIDE_DRAWINGS | {"table", "template", "object", "marquee", "applet", "select"}
"""Nothing outside of them is closed from inside."""
_FORMATTING = frozenset("a b big code em font i nobr s small strike strong tt u".split())
_SPECIAL = frozenset(
    [
        *("address", "article", "aside", "blockquote", "button", "center", "details", "dir", "div", "dl", "fieldset"),
        *("figcaption", "figure", "footer", "form", "frameset", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup"),
        *("listing", "main", "menu", "nav", "noscript", "ol", "plaintext", "pre", "search", "section", "summary", "ul"),
    ]
)
"""Only their own end tag, or that of another of them around them, closes them."""
_END_A_DRAWING = _SPECIAL | _FORMATTING | _CLOSED_BY_THE_NEXT | _VOID | frozenset("span sub sup var ruby table".split())


def check(text: str) -> None:
    """Raises Unreadable for a page that would take the parser, or us, out of proportion.

    A page with few tags cannot, whatever they are.
    """
    if text.count("<") > FEW_TAGS or _LONG_TAG.search(text):
        examine(text)


def examine(text: str) -> None:
    """Go through the tags of a page. Raises Unreadable."""
    tags = _Tags()
    place = 0
    for _ in range(MOST_TAGS):
        begins = _NAME.search(text, place)
        ends = _REST.match(text, begins.end()) if begins else None
        if begins is None or ends is None:
            return  # A tag that does not end is the end of the page.
        name, rest, place = begins[2].lower(), ends[1], ends.end()
        if begins[1]:
            tags.close(name)
            continue
        _count_attributes(rest)
        is_raw = name in _RAW and not tags.in_drawing
        tags.open(name, closed_at_once=rest.endswith("/"))
        if is_raw:
            place = _end_of(text, name, place)
    raise Unreadable(f"it has more than {MOST_TAGS} tags")


def _count_attributes(rest: str) -> None:
    if rest.count("=") + rest.count(" ") + rest.count("/") < MOST_ATTRIBUTES and len(rest) < 10_000:
        return
    if sum(1 for _ in _ATTRIBUTE.finditer(rest)) > MOST_ATTRIBUTES:
        raise Unreadable(f"an element in it has more than {MOST_ATTRIBUTES} attributes")


def _end_of(text: str, name: str, place: int) -> int:
    """Where text that is not markup ends. Without an end, it goes on to the end of the page."""
    match = re.compile(rf"</{re.escape(name)}", re.I).search(text, place)
    return match.start() if match else len(text)


@dataclass(slots=True)
class _Tags:
    """What is open."""

    names: list[str] = field(default_factory=list)
    places: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Where each name stands among those that are open."""
    walls: list[int] = field(default_factory=list)
    special: list[int] = field(default_factory=list)
    """Where special elements and walls stand."""
    formatting: int = 0
    carried: int = 0
    roots: int = 0

    @property
    def in_drawing(self) -> bool:
        """Whether what is open is a drawing, in which a tag may close itself."""
        return bool(self.walls) and self.names[self.walls[-1]] in _DRAWINGS

    def open(self, name: str, *, closed_at_once: bool) -> None:
        self._carry()
        self._count_roots(name)
        if self.in_drawing and name in _END_A_DRAWING:
            self._cut(self.walls[-1])
        if name in _VOID or name in _CLOSED_BY_THE_NEXT or (closed_at_once and self.in_drawing):
            return
        if (name in _CELLS or name in _ROWS) and (not self._end_cell() or name in _ROWS):
            return
        self._push(name)

    def close(self, name: str) -> None:
        self._carry()
        if name in _CELLS or name in _ROWS:
            self._end_cell()
            return
        if not self.places[name]:
            return
        place = self.places[name][-1]
        if name in _WALLS:
            self._cut(place)
        elif self.walls and place < self.walls[-1]:
            return
        elif name in _FORMATTING or name == "form":
            self._remove(place)
        elif name in _SPECIAL or not self.special or place > self.special[-1]:
            self._cut(place)

    def _count_roots(self, name: str) -> None:
        self.roots += name in ("html", "body")
        if self.roots > MOST_ROOTS:
            raise Unreadable(f"it has more than {MOST_ROOTS} bodies")

    def _carry(self) -> None:
        self.carried += self.formatting
        if self.carried > MOST_CARRIED:
            raise Unreadable("formatting in it is opened again and again, and never closed")

    def _end_cell(self) -> bool:
        """Close everything in the innermost table. Says whether there is one."""
        if self.places["table"]:
            self._cut(self.places["table"][-1] + 1)
        return bool(self.places["table"])

    def _push(self, name: str) -> None:
        here = len(self.names)
        if name in _WALLS:
            self.walls.append(here)
        if name in _WALLS or name in _SPECIAL:
            self.special.append(here)
        self.names.append(name)
        self.places[name].append(here)
        self.formatting += name in _FORMATTING
        if len(self.names) > MOST_OPEN:
            raise Unreadable(f"more than {MOST_OPEN} elements are open at once; close them")

    def _cut(self, place: int) -> None:
        """Close everything from there on. Formatting is not closed with it: the parser takes it along."""
        for name in self.names[place:]:
            self.places[name].pop()
        del self.names[place:]
        _shorten(self.walls, place)
        _shorten(self.special, place)

    def _remove(self, place: int) -> None:
        """Close one element, and none of those inside it."""
        inside = self.names[place + 1 :]
        self.formatting = max(0, self.formatting - (self.names[place] in _FORMATTING))
        counted = self.formatting
        self._cut(place)
        for name in inside:
            self._push(name)
        self.formatting = counted


def _shorten(places: list[int], end: int) -> None:
    while places and places[-1] >= end:
        places.pop()
