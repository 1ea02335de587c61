"""MDX: Markdown with components. What components compute is not known here; what is written between them is kept.

JSX inside MDX: where an expression or a tag ends. Nothing is run; only brackets and quotes are counted.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from bythebook.sources.document import fenced
from bythebook.sources.readers import front_matter, markdown

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

    from bythebook.sources.document import Draft
    from bythebook.sources.projects import Style


_NEXT = re.compile(
    r"(?P<fence>^[ \t>]*(?:(?:[-*+]|\d+[.)])[ \t]+)*(?P<marks>`{3,}|~{3,}))"
    r"|(?P<code>`+)|(?P<escaped>\\.)|(?P<comment><!--)|(?P<expression>\{)|(?P<tag></?(?:[A-Za-z]|>))"
    r"|(?P<module>^(?:import|export)\b)",
    re.MULTILINE,
)
_HEADING_ID = re.compile(r"\{\s*(?:/\*\s*)?#(?P<id>[^\s{}*]+)\s*(?:\*/\s*)?\}")
_STRING = re.compile(r"\{\s*(?:'([^'\n]*)'|\"([^\"\n]*)\"|`([^`$]*)`)\s*\}")
_ADDRESS = re.compile(r"<(?:[A-Za-z][A-Za-z0-9+.-]*:[^\s<>]*|[\w.+-]+@[\w.-]+)>")
_NAME = re.compile(r"</?([\w.:-]*)")
_ID = re.compile(r"\bid=(\"[^\"]*\"|'[^']*')")
_CODE_ATTRIBUTE = re.compile(r"\bcode=\{`((?:\\.|[^`\\])*)`\}", re.DOTALL)
_TAB_VALUE = re.compile(r"\bvalue=[\"']([^\"']+)[\"']")
_LANGUAGE_ATTRIBUTE = re.compile(r"\blang(?:uage)?=[\"']([\w+#-]+)[\"']")

# These have a shape of their own; the HTML reader knows it. Of all other tags only what they hold is seen.
_SHAPED = frozenset(
    [
        *("table", "thead", "tbody", "tfoot", "tr", "td", "th", "ul", "ol", "li", "dl", "dt", "dd", "pre", "br"),
        *("h1", "h2", "h3", "h4", "h5", "h6"),
    ]
)
_WITHIN_A_LINE = frozenset(
    ["a", "abbr", "b", "code", "em", "i", "kbd", "mark", "s", "small", "span", "strong", "sub", "sup", "u"]
)
_MOST_FAILURES = 50


def read(text: str, *, style: Style) -> Draft:
    """The document as Markdown sees it once imports, tags, comments and expressions are gone."""
    matter, body = front_matter.split(text)
    return markdown.draft(without_components(body), style=style, title=matter.title, parser=_parser())


@cache
def _parser() -> MarkdownIt:
    # Text inside a component is often indented; in MDX that does not make it code.
    return markdown.build_parser().disable("code")


def without_components(text: str) -> str:
    """The Markdown of an MDX document. Code is left untouched."""
    kept: list[str] = []
    position = failures = 0
    while failures < _MOST_FAILURES:
        match = _NEXT.search(text, position)
        if match is None:
            break
        kept.append(text[position : match.start()])
        shown, position = _shown(text, match)
        kept.append(shown)
        # Something opened and not closed is text. A page full of such is not MDX, and looking on would take forever.
        failures += match.lastgroup in ("expression", "tag", "comment", "code") and position <= match.end()
    return "".join([*kept, text[position:]])


def _shown(text: str, match: re.Match[str]) -> tuple[str, int]:
    """What a reader sees of the construct found, and the position behind it."""
    if match["fence"]:
        return _until(text, match, _closing_fence(match["marks"]))
    if match["code"]:
        return _until(text, match, re.compile(rf"(?<!`){match['code']}(?!`)"), unless="\n\n")
    if match["expression"]:
        return _expression(text, match.start())
    if match["tag"]:
        return _tag(text, match.start())
    end = match.start()
    if match["comment"]:
        end = text.find("-->", end) + 3
    elif match["module"]:
        end = end_of_module_code(text, end)
    return ("", end) if end > match.end() else (match[0], match.end())


def _until(text: str, match: re.Match[str], closing: re.Pattern[str], *, unless: str = "") -> tuple[str, int]:
    """Everything up to and with `closing`, untouched; only the opening where it does not close."""
    closed = closing.search(text, match.end())
    end = closed.end() if closed else len(text)
    if unless and (closed is None or text.find(unless, match.end(), end) >= 0):
        end = match.end()
    return text[match.start() : end], end


def _closing_fence(marks: str) -> re.Pattern[str]:
    return re.compile(rf"^[ \t>]*{re.escape(marks[0])}{{{len(marks)},}}[ \t]*$", re.MULTILINE)


def _expression(text: str, start: int) -> tuple[str, int]:
    heading_id = _HEADING_ID.match(text, start)
    if heading_id:
        return f"{{#{heading_id['id']}}}", heading_id.end()
    end = end_of_expression(text, start)
    if end == NOT_CLOSED:
        return "{", start + 1
    string = _STRING.fullmatch(text, start, end)
    return (string[1] or string[2] or string[3] or "") if string else "", end


def _tag(text: str, start: int) -> tuple[str, int]:
    address = _ADDRESS.match(text, start)
    if address:
        return address[0], address.end()
    end = end_of_tag(text, start)
    name = _NAME.match(text, start)
    if end == NOT_CLOSED or name is None:
        return text[start : start + 1], start + 1
    tag = text[start:end]
    if name[1] in _SHAPED:
        return _bare(name[0], tag), end
    if name[1] in _WITHIN_A_LINE:
        return "", end
    return _on_its_own(text, start, end, _of_attributes(tag) if name[1][:1].isupper() else ""), end


def _bare(opening: str, tag: str) -> str:
    id_ = _ID.search(tag)
    return f"{opening} id={id_[1]}>" if id_ else f"{opening}>"


def _of_attributes(tag: str) -> str:
    """The label a component shows, and code it was given as an attribute."""
    code = _CODE_ATTRIBUTE.search(tag)
    label = markdown.shown_attribute(tag)
    if not label and tag.startswith("<TabItem"):
        value = _TAB_VALUE.search(tag)
        label = value[1] if value else ""
    if code is None:
        return label
    language = _LANGUAGE_ATTRIBUTE.search(tag)
    source = code[1].replace("\\`", "`").replace("\\$", "$").replace("\\\\", "\\")
    return f"{label}\n\n{fenced(source, language=language[1] if language else '')}".strip()


def _on_its_own(text: str, start: int, end: int, shown: str) -> str:
    """A replaced tag parts the text before it from the text after it, without moving either out of its list."""
    line = text[text.rfind("\n", 0, start) + 1 : start]
    indent = line if not line.strip() else ""
    before = f"\n{indent}" if not line.strip() else ""
    shown = shown.replace("\n", f"\n{indent}")
    if shown:
        return f"{before}{shown}\n\n{indent}"
    return before + ("\n" if text.startswith("\n", end) else "")


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
