"""Where the constructs of Markdown and HTML end that begin at a given place, as far as the text has come.

Each function says where the construct ends, `None` when what begins there is none, and raises `More` while that still
depends on what follows. Where a renderer could see it either way, code is taken for text and text for a link: what is
cleaned without need is a blemish, what is missed is a hole.
"""

from __future__ import annotations

import re

LONGEST = 4000
"""How far the end of a construct is looked for. The same for a text that comes at once and one that comes in pieces."""

_DEEPEST = 20
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
        if depth in (0, _DEEPEST):
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
