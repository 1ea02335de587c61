"""MDX: Markdown with JSX components. The text inside components is kept; what components compute is unknown.

JSX expressions and tags are delimited by counting brackets and quotes. No JavaScript is run.
"""

import re
from functools import cache

from markdown_it import MarkdownIt

from bythebook.sources.document import ParsedDocument, format_code_block
from bythebook.sources.projects import Style
from bythebook.sources.readers import front_matter, markdown

_CONSTRUCT = re.compile(
    r"(?P<fence>^[ \t>]*(?:(?:[-*+]|\d+[.)])[ \t]+)*(?P<marks>`{3,}|~{3,}))"
    r"|(?P<code>`+)|(?P<escaped>\\.)|(?P<comment><!--)|(?P<expression>\{)|(?P<tag></?(?:[A-Za-z]|>))"
    r"|(?P<module>^(?:import|export)\b)",
    re.MULTILINE,
)
_HEADING_ID = re.compile(r"\{\s*(?:/\*\s*)?#(?P<id>[^\s{}*]+)\s*(?:\*/\s*)?\}")
_STRING = re.compile(r"\{\s*(?:'([^'\n]*)'|\"([^\"\n]*)\"|`([^`$]*)`)\s*\}")
_AUTOLINK = re.compile(r"<(?:[A-Za-z][A-Za-z0-9+.-]*:[^\s<>]*|[\w.+-]+@[\w.-]+)>")
_NAME = re.compile(r"</?([\w.:-]*)")
_ID = re.compile(r"\bid=(\"[^\"]*\"|'[^']*')")
_CODE_ATTRIBUTE = re.compile(r"\bcode=\{`((?:\\.|[^`\\])*)`\}", re.DOTALL)
_TAB_VALUE = re.compile(r"\bvalue=[\"']([^\"']+)[\"']")
_LANGUAGE_ATTRIBUTE = re.compile(r"\blang(?:uage)?=[\"']([\w+#-]+)[\"']")

# The HTML reader handles these elements. Of all other elements only the content is kept.
_STRUCTURAL_TAGS = frozenset(
    """
    table thead tbody tfoot tr td th ul ol li dl dt dd pre br h1 h2 h3 h4 h5 h6
    """.split()
)
_INLINE_TAGS = frozenset(
    ["a", "abbr", "b", "code", "em", "i", "kbd", "mark", "s", "small", "span", "strong", "sub", "sup", "u"]
)
_MAX_FAILURES = 50


def read(text: str, *, style: Style) -> ParsedDocument:
    """Parse the document as Markdown, without imports, tags, comments and expressions."""
    matter, body = front_matter.parse_front_matter(text)
    return markdown.parse_body(strip_jsx(body), style=style, title=matter.title, parser=_parser())


@cache
def _parser() -> MarkdownIt:
    # Text inside a component is often indented. MDX has no indented code blocks.
    return markdown.build_parser().disable("code")


def strip_jsx(text: str) -> str:
    """Convert MDX to Markdown. Code is unchanged."""
    kept: list[str] = []
    position = failures = 0
    while failures < _MAX_FAILURES:
        match = _CONSTRUCT.search(text, position)
        if match is None:
            break
        kept.append(text[position : match.start()])
        shown, position = _replace_construct(text, match)
        kept.append(shown)
        # An unclosed construct is text. The limit bounds the time for a page full of them, which is not MDX.
        failures += match.lastgroup in ("expression", "tag", "comment", "code") and position <= match.end()
    return "".join([*kept, text[position:]])


def _replace_construct(text: str, match: re.Match[str]) -> tuple[str, int]:
    """The visible text of a construct, and the position after it."""
    if match["fence"]:
        shown, end = _copy_until(text, match, _closing_fence(match["marks"]))
        opening, _, rest = shown.partition("\n")
        # Such a block is MDX, fenced so that other programs do not show its tags.
        is_mdx = opening.endswith("mdx-code-block")
        return (strip_jsx(rest.rpartition("\n")[0] + "\n") if is_mdx else shown), end
    if match["code"]:
        return _copy_until(text, match, re.compile(rf"(?<!`){match['code']}(?!`)"), unless="\n\n")
    if match["expression"]:
        return _replace_expression(text, match.start())
    if match["tag"]:
        return _replace_tag(text, match.start())
    end = match.start()
    if match["comment"]:
        end = text.find("-->", end) + 3
    elif match["module"]:
        end = find_esm_end(text, end)
    return ("", end) if end > match.end() else (match[0], match.end())


def _copy_until(text: str, match: re.Match[str], closing: re.Pattern[str], *, unless: str = "") -> tuple[str, int]:
    """The text up to and including `closing`, or only the opening if it is not closed."""
    closed = closing.search(text, match.end())
    end = closed.end() if closed else len(text)
    if unless and (closed is None or text.find(unless, match.end(), end) >= 0):
        end = match.end()
    return text[match.start() : end], end


def _closing_fence(marks: str) -> re.Pattern[str]:
    return re.compile(rf"^[ \t>]*{re.escape(marks[0])}{{{len(marks)},}}[ \t]*$", re.MULTILINE)


def _replace_expression(text: str, start: int) -> tuple[str, int]:
    heading_id = _HEADING_ID.match(text, start)
    if heading_id:
        return f"{{#{heading_id['id']}}}", heading_id.end()
    end = _find_closing_bracket(text, start)
    if end == NOT_FOUND:
        return "{", start + 1
    string = _STRING.fullmatch(text, start, end)
    return (string[1] or string[2] or string[3] or "") if string else "", end


def _replace_tag(text: str, start: int) -> tuple[str, int]:
    address = _AUTOLINK.match(text, start)
    if address:
        return address[0], address.end()
    end = find_tag_end(text, start)
    name = _NAME.match(text, start)
    if end == NOT_FOUND or name is None:
        return text[start : start + 1], start + 1
    tag = text[start:end]
    if name[1] in _STRUCTURAL_TAGS:
        return _strip_attributes(name[0], tag), end
    if name[1] in _INLINE_TAGS:
        return "", end
    return _place_on_own_line(text, start, end, _attributes_as_text(tag) if name[1][:1].isupper() else ""), end


def _strip_attributes(opening: str, tag: str) -> str:
    id_ = _ID.search(tag)
    return f"{opening} id={id_[1]}>" if id_ else f"{opening}>"


def _attributes_as_text(tag: str) -> str:
    """The label of a component, and the code in its attributes."""
    code = _CODE_ATTRIBUTE.search(tag)
    label = markdown.find_visible_attribute(tag)
    if not label and tag.startswith("<TabItem"):
        value = _TAB_VALUE.search(tag)
        label = value[1] if value else ""
    if code is None:
        return label
    language = _LANGUAGE_ATTRIBUTE.search(tag)
    source = code[1].replace("\\`", "`").replace("\\$", "$").replace("\\\\", "\\")
    return f"{label}\n\n{format_code_block(source, language=language[1] if language else '')}".strip()


def _place_on_own_line(text: str, start: int, end: int, shown: str) -> str:
    """Separate the text before and after a replaced tag, and keep both inside their list item."""
    line = text[text.rfind("\n", 0, start) + 1 : start]
    indent = line if not line.strip() else ""
    before = f"\n{indent}" if not line.strip() else ""
    shown = shown.replace("\n", f"\n{indent}")
    if shown:
        return f"{before}{shown}\n\n{indent}"
    return before + ("\n" if text.startswith("\n", end) else "")


_STRING_OR_COMMENT = r"""'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|/\*(?:.*?\*/)?|//[^\n]*"""
_BRACES = re.compile(rf"{_STRING_OR_COMMENT}|[`{{}}]", re.DOTALL)
_BRACKETS = re.compile(rf"{_STRING_OR_COMMENT}|[`{{}}()\[\]]", re.DOTALL)
_IN_TAG = re.compile(r"""["'{>]""")
_IN_TEMPLATE = re.compile(r"\\.|`|\$\{", re.DOTALL)
_ESM = re.compile(
    r"import[ \t]+(?:[\w*{][^;'\"]*?\bfrom[ \t]+)?['\"][^'\"\n]*['\"][^\n]*"
    r"|export[ \t]+(?:default|const|let|var|function|async|class|type|interface|\{|\*)"
)
_OPEN_BRACKET = re.compile(r"[{(\[]")
_BLANK_LINE = re.compile(r"\n[ \t]*(?:\n|$)")

NOT_FOUND = -1
MAX_CONSTRUCT_LENGTH = 50_000
"""Maximum length of a tag or an expression."""


def _find_closing_bracket(text: str, start: int, brackets: re.Pattern[str] = _BRACES) -> int:
    """The position after the bracket that closes the one at `start`, or NOT_FOUND."""
    open_brackets = ["{"]
    position = start + 1
    while open_brackets:
        in_template = open_brackets[-1] == "`"
        match = (_IN_TEMPLATE if in_template else brackets).search(text, position, start + MAX_CONSTRUCT_LENGTH)
        if match is None or match[0] == "/*":  # The comment is not closed.
            return NOT_FOUND
        if match[0] in ("{", "${", "(", "["):
            open_brackets.append("{")
        elif match[0] in ("}", ")", "]") or (match[0] == "`" and in_template):
            open_brackets.pop()
        elif match[0] == "`":
            open_brackets.append("`")
        position = match.end()
    return position


def find_tag_end(text: str, start: int) -> int:
    """The position after the tag that begins at `start`, or NOT_FOUND."""
    position = start + 1
    while True:
        match = _IN_TAG.search(text, position, start + MAX_CONSTRUCT_LENGTH)
        if match is None:
            return NOT_FOUND
        if match[0] == ">":
            return match.end()
        quote = match[0] != "{"
        position = text.find(match[0], match.end()) + 1 if quote else _find_closing_bracket(text, match.start())
        if position <= 0:
            return NOT_FOUND


def find_esm_end(text: str, start: int) -> int:
    """The position after the `import` or `export` at `start`. Returns `start` if it is an English word."""
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
        position = _find_closing_bracket(text, bracket.start(), _BRACKETS)
        if position == NOT_FOUND:
            return end
