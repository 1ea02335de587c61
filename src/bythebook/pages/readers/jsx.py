"""JSX inside MDX: where an expression or a tag ends. Nothing is run; only brackets and quotes are counted."""

from __future__ import annotations

import re

_BRACES = re.compile(r"""["'`{}]|/\*|//[^\n]*|\$\{""")
_BRACKETS = re.compile(r"""["'`{}()\[\]]|/\*|//[^\n]*|\$\{""")
_OPENING = frozenset(["{", "${", "(", "["])
_CLOSING = frozenset(["}", ")", "]"])
_IN_TAG = re.compile(r"""["'{>]""")
_IN_TEMPLATE = re.compile(r"\\.|`|\$\{", re.DOTALL)
_CLOSED = {"'": re.compile(r"(?:\\.|[^'\\\n])*'"), '"': re.compile(r'(?:\\.|[^"\\\n])*"')}
_ESM = re.compile(
    r"import[ \t]+(?:[\w*{][^;'\"]*?\bfrom[ \t]+)?['\"][^'\"\n]*['\"][^\n]*"
    r"|export[ \t]+(?:default|const|let|var|function|async|class|type|interface|\{|\*)"
)
_OPEN_BRACKET = re.compile(r"[{(\[]")
_BLANK_LINE = re.compile(r"\n[ \t]*(?:\n|$)")

NOT_CLOSED = -1
LONGEST = 50_000
"""Characters within which a tag or an expression closes, or is none."""


def end_of_expression(text: str, start: int) -> int:
    """The position behind the brace that closes the one at `start`, or NOT_CLOSED."""
    return _end(text, start, _BRACES)


def _end(text: str, start: int, brackets: re.Pattern[str]) -> int:
    open_now = ["{"]
    position = start + 1
    while open_now:
        in_template = open_now[-1] == "`"
        match = (_IN_TEMPLATE if in_template else brackets).search(text, position, start + LONGEST)
        if match is None:
            return NOT_CLOSED
        position = _step(text, match, open_now, in_template=in_template)
        if position == NOT_CLOSED:
            return NOT_CLOSED
    return position


def _step(text: str, match: re.Match[str], open_now: list[str], *, in_template: bool) -> int:
    """Count one bracket or quote, and say where to look for the next."""
    found = match[0]
    if found in _OPENING:
        open_now.append("{")
    elif found in _CLOSING or (found == "`" and in_template):
        open_now.pop()
    elif found == "`":
        open_now.append("`")
    elif found in _CLOSED and not in_template:
        closed = _CLOSED[found].match(text, match.end())
        # An apostrophe in a text between tags opens nothing.
        return closed.end() if closed else match.end()
    elif found == "/*":
        end = text.find("*/", match.end())
        return end + 2 if end >= 0 else NOT_CLOSED
    return match.end()


def end_of_tag(text: str, start: int) -> int:
    """The position behind the tag that begins at `start`, or NOT_CLOSED."""
    position = start + 1
    while True:
        match = _IN_TAG.search(text, position, start + LONGEST)
        if match is None:
            return NOT_CLOSED
        if match[0] == ">":
            return match.end()
        quote = match[0] != "{"
        position = text.find(match[0], match.end()) + 1 if quote else end_of_expression(text, match.start())
        if position <= 0:
            return NOT_CLOSED


def end_of_module_code(text: str, start: int) -> int:
    """The position behind the `import` or `export` at `start`; `start` itself where it is an English word."""
    match = _ESM.match(text, start)
    if match is None:
        return start
    if text.startswith("import", start):
        return match.end()
    position = start
    while True:
        blank = _BLANK_LINE.search(text, position)
        end = blank.start() if blank else len(text)
        bracket = _OPEN_BRACKET.search(text, position, end)
        if bracket is None:
            return end
        position = _end(text, bracket.start(), _BRACKETS)
        if position == NOT_CLOSED:
            return end
