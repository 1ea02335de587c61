"""Renders the Markdown of answers as safe HTML, as a whole or incrementally. Requested by `Prefer: render=html`.

Markdown is parsed with raw HTML, links and images disabled, and the result is sanitised. The only links are those of
citation markers, `[2]` links to the URL of citation 2, and those to the sections that the response suggests.
"""

import json
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.token import STANDARD_TYPES
from pygments.util import ClassNotFound
from starlette.requests import Request

from bythebook.retrieval.text_fragments import build_link
from bythebook.server.streams import StreamEvent, to_json_line

_CITATION_MARKER = re.compile(r"\[(\d{1,4})\]")
_SECTION_LINK = re.compile(r"\[((?:\\.|[^\\\]\n])+)\]\(([^\s()]+)\)")
_MATHS = re.compile(r"\$\$.+?\$\$|\$(?!\s)[^$\n]+?(?<![\s\\])\$(?!\d)|\\\(.+?\\\)|\\\[.+?\\\]", re.DOTALL)
_DISPLAY_DELIMITERS = {"$$": "$$", r"\[": r"\]"}
"""The opening and closing delimiters of display maths."""
_MAX_MATHS_LENGTH = 2000
_MAX_PREVIEW_LENGTH = 400
_MARK_START, _MARK_END = "\ue000", "\ue001"
"""Private characters around marked text while it is rendered."""
_LINE_CONTENT = re.compile(r"^(?P<markup>[ \t]*(?:(?:[-*+]|\d+[.)]|#{1,6}|>)[ \t]+)*)(?P<words>.*\S)", re.MULTILINE)
_TABLE_ROW = re.compile(r"^\|(.*)\|[ \t]*$", re.MULTILINE)
_TABLE_RULE = re.compile(r"^\|[ :|-]+\|[ \t]*\n?", re.MULTILINE)
_MAX_HIGHLIGHT_LENGTH = 20_000
"""Longer code is not highlighted, because that may take long."""

_TAGS = set("a blockquote br code em h3 h4 h5 h6 hr li ol p pre s span strong table tbody td th thead tr ul".split())
_ATTRIBUTES = {"a": {"href"}, "ol": {"start"}, "pre": {"tabindex"}}
_CLASSES = {
    "a": {"cite"},
    "span": {"cite", "maths"} | {name for name in STANDARD_TYPES.values() if name},
    "td": {"left", "center", "right"},
    "th": {"left", "center", "right"},
}


def render_markdown(text: str, links: Mapping[int, str], sections: Sequence[str] = ()) -> str:
    """The whole text as HTML. `links` has the URL of each citation, `sections` those of the suggested sections."""
    urls = frozenset(sections)
    return _render_tokens(_markdown().parse(text, {"links": links, "sections": urls}), links, urls)


def render_page(text: str, quote: tuple[int, int], *, headings: Set[str]) -> str:
    """The text of a page with the characters of the quote marked. The first mark has the id `quote`."""
    start, end = quote
    text = text.replace(_MARK_START, " ").replace(_MARK_END, " ")

    def restore_headings(part: str) -> str:
        return "\n".join(f"## {line}" if line in headings else line for line in part.split("\n"))

    marked = _LINE_CONTENT.sub(_mark_line, text[start:end])
    html = render_markdown(f"{restore_headings(text[:start])}{marked}{restore_headings(text[end:])}", {})
    html = html.replace(_MARK_START, '<mark id="quote">', 1).replace(_MARK_START, "<mark>")
    return html.replace(_MARK_END, "</mark>").replace("h4>", "h2>")  # the page's title is its only h1


def _mark_line(line: re.Match[str]) -> str:
    """The line with marks around its words, or around those of each cell. Delimiters of code stay as they are."""
    if line["words"].startswith(("```", "~~~")):
        return line[0]
    cells = line["words"].split("|") if line["words"].startswith("|") else [line["words"]]
    marked = (cell if set(cell) <= set(" :-") else f"{_MARK_START}{cell.strip()}{_MARK_END}" for cell in cells)
    return line["markup"] + "|".join(marked)


@dataclass(frozen=True, slots=True)
class RenderedPiece:
    """An update of a streamed answer: keep the first `settled` blocks and replace the rest by `html`."""

    settled: int
    html: str


class IncrementalRenderer:
    """Renders a streamed answer. Blocks that later text cannot change are not rendered again."""

    def __init__(self, links: Mapping[int, str]) -> None:
        self._links = links
        self._open = ""
        self._settled = 0

    def feed(self, text: str) -> RenderedPiece:
        """The update after this text."""
        self._open += text
        settled_before = self._settled
        tokens = _markdown().parse(self._open, {"links": self._links})
        # Later text can only extend the last block whose first line is complete.
        lines = self._open.split("\n")
        starts = [token.map[0] for token in tokens if token.level == 0 and token.nesting >= 0 and token.map]
        last = [start for start in starts if start < len(lines) - 1][1:]
        if last:
            self._settled += len(last)
            self._open = "\n".join(lines[last[-1] :])
        return RenderedPiece(settled_before, _render_tokens(tokens, self._links))


def _render_tokens(tokens: Sequence[Token], links: Mapping[int, str], sections: Set[str] = frozenset()) -> str:
    markdown = _markdown()
    html = markdown.renderer.render(list(tokens), markdown.options, {"links": links})
    allowed = {url for url in links.values() if _is_web(url)} | set(filter(_is_web, sections))

    def only_known_links(tag: str, attribute: str, value: str) -> str | None:
        return None if (tag, attribute) == ("a", "href") and value not in allowed else value

    return nh3.clean(
        html,
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        allowed_classes=_CLASSES,
        attribute_filter=only_known_links,
        url_schemes={"http", "https"},
        link_rel="noopener",
    )


def _is_web(url: str) -> bool:
    return url.startswith(("https://", "http://"))


@cache
def _markdown() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Html)
    markdown.enable(["table", "strikethrough"])
    markdown.disable(["link", "image", "autolink", "reference", "html_block", "html_inline"])
    markdown.block.ruler.before("fence", "maths", _maths_block, {"alt": ["paragraph", "blockquote", "list"]})
    markdown.inline.ruler.before("escape", "maths", _maths)
    markdown.inline.ruler.before("link", "citation", _citation)
    markdown.inline.ruler.before("link", "section", _section)
    return markdown


def _citation(state: StateInline, silent: bool) -> bool:
    """The marker `[2]`, if there is a citation 2."""
    match = _CITATION_MARKER.match(state.src, state.pos)
    if match is None or int(match[1]) not in state.env["links"]:
        return False
    if not silent:
        state.push("citation", "", 0).content = match[1]
    state.pos = match.end()
    return True


def _section(state: StateInline, silent: bool) -> bool:
    """A link to a section that the response suggests. A `file:` URL opens nothing in a browser: its title is text."""
    match = _SECTION_LINK.match(state.src, state.pos)
    if match is None or match[2] not in state.env.get("sections", ()):
        return False
    if not silent:
        token = state.push("section", "", 0)
        token.content, token.meta = re.sub(r"\\([\[\]])", r"\1", match[1]), {"url": match[2]}
    state.pos = match.end()
    return True


def _maths_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Display maths, in which a leading minus is not a list. It ends at its delimiter or at an empty line."""
    closing = _DISPLAY_DELIMITERS.get(_line(state, start)[:2])
    if closing is None or closing in _line(state, start)[2:] or state.is_code_block(start):
        return False
    if silent:
        return True
    after = start + 1
    while after < end and not state.isEmpty(after) and state.sCount[after] >= state.blkIndent:
        after += 1
        if closing in _line(state, after - 1):
            break
    state.line = after
    state.push("displayed_open", "p", 1).map = [start, after]
    inline = state.push("inline", "", 0)
    inline.content = state.getLines(start, after, state.blkIndent, False).strip()
    inline.map, inline.children = [start, after], []
    state.push("displayed_close", "p", -1)
    return True


def _line(state: StateBlock, number: int) -> str:
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]]


def _maths(state: StateInline, silent: bool) -> bool:
    """Inline maths, unchanged: emphasis and escapes are not interpreted."""
    if state.src[state.pos] not in "$\\":
        return False
    match = _MATHS.match(state.src, state.pos, state.pos + _MAX_MATHS_LENGTH)
    if match is None:
        return False
    if not silent:
        state.push("maths", "", 0).content = match[0]
    state.pos = match.end()
    return True


class _Html(RendererHTML):
    """Rendering of the tokens that differ from CommonMark."""

    def citation(self, tokens: Sequence[Token], index: int, _options: object, env: EnvType) -> str:
        number = tokens[index].content
        url = env["links"][int(number)]
        if not _is_web(url):
            return f'<span class="cite">{number}</span>'
        return f'<a class="cite" href="{_escape_html(url)}">{number}</a>'

    def section(self, tokens: Sequence[Token], index: int, _options: object, _env: object) -> str:
        title, url = _escape_html(tokens[index].content), tokens[index].meta["url"]
        return f'<a href="{_escape_html(url)}">{title}</a>' if _is_web(url) else title

    def maths(self, tokens: Sequence[Token], index: int, _options: object, _env: object) -> str:
        return f'<span class="maths">{_escape_html(tokens[index].content)}</span>'

    def fence(self, tokens: Sequence[Token], idx: int, _options: object, _env: object) -> str:
        return _render_code(tokens[idx])

    def code_block(self, tokens: Sequence[Token], idx: int, _options: object, _env: object) -> str:
        return _render_code(tokens[idx])

    def heading_open(self, tokens: Sequence[Token], index: int, _options: object, _env: object) -> str:
        """Headings are two levels lower, below those of the page that shows the answer."""
        return f"<h{_heading_level(tokens[index])}>"

    def heading_close(self, tokens: Sequence[Token], index: int, _options: object, _env: object) -> str:
        return f"</h{_heading_level(tokens[index])}>\n"

    def td_open(self, tokens: Sequence[Token], index: int, _options: object, _env: object) -> str:
        token = tokens[index]
        side = str(token.attrGet("style") or "").removeprefix("text-align:")
        return f'<{token.tag} class="{side}">' if side else f"<{token.tag}>"

    th_open = td_open


def _heading_level(heading: Token) -> int:
    return min(6, int(heading.tag[1]) + 2)


def _render_code(token: Token) -> str:
    """A code block that can be focused and scrolled by keyboard."""
    language = token.info.split()
    return f'<pre tabindex="0"><code>{_highlight_code(token.content, language[0] if language else "")}</code></pre>\n'


def _highlight_code(code: str, language: str) -> str:
    """The code with a CSS class for each highlighted token."""
    if not language or len(code) > _MAX_HIGHLIGHT_LENGTH:
        return _escape_html(code)
    try:
        lexer = get_lexer_by_name(language, stripnl=False)
    except ClassNotFound:
        return _escape_html(code)
    return str(highlight(code, lexer, HtmlFormatter(nowrap=True)))


def _escape_html(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def wants_html(request: Request) -> bool:
    """Whether the request has the preference `render=html`."""
    preferred = ",".join(request.headers.getlist("prefer"))
    return "render=html" in (part.strip() for part in preferred.split(","))


def add_html(said: Mapping[str, Any], *, text: str) -> dict[str, Any]:
    """A response or message with `html`, rendered from its field `text`, with the links of citations and suggestions.

    Each citation has `html` as well: the beginning of its quote.
    """
    citations = [{**citation, "html": _render_preview(citation["quote"])} for citation in said["citations"]]
    suggested = said.get("suggestions") or said.get("metadata", {}).get("suggestions") or ()
    sections = [section["url"] for section in suggested]
    html = render_markdown(said[text], _map_citation_urls(citations), sections)
    return {**said, "citations": citations, "html": html}


def _render_preview(quote: str) -> str:
    """The beginning of a quote without links. A code block that is cut is closed, and table rows are one line each."""
    if len(quote) > _MAX_PREVIEW_LENGTH:
        quote = quote[:_MAX_PREVIEW_LENGTH].rpartition(" ")[0] + " …"
    if "```" not in quote:
        quote = _TABLE_ROW.sub(lambda row: row[1].strip().replace(" | ", " · ") + "  ", _TABLE_RULE.sub("", quote))
    # A preview does not scroll, so its code needs no keyboard focus.
    return render_markdown(quote, {}).replace('<pre tabindex="0">', "<pre>")


class HtmlEvents:
    """Adds HTML to the events of one stream."""

    def __init__(self) -> None:
        self._links: dict[int, str] = {}
        self._renderer = IncrementalRenderer({})

    def tell(self, happening: StreamEvent) -> str:
        """The data of the event, with HTML where it has text."""
        match happening.name:
            case "sources":
                self._found(json.loads(happening.data)["sources"])
            case "state" if json.loads(happening.data)["state"] == "generating":
                # The first or a further attempt at an answer begins.
                self._renderer = IncrementalRenderer(self._links)
            case "delta":
                return self._more(json.loads(happening.data)["text"])
            case "answer":
                return to_json_line(add_html(json.loads(happening.data), text="answer"))
        return happening.data

    def _found(self, sources: Sequence[Mapping[str, Any]]) -> None:
        """Link the numbers of a streamed answer, which are those of the passages until it is verified."""
        for source in sources:
            self._links[source["position"]] = build_link(source["url"], anchor=source["anchor"], words="")

    def _more(self, text: str) -> str:
        rendered = self._renderer.feed(text)
        return to_json_line({"text": text, "html": rendered.html, "settled": rendered.settled})


def _map_citation_urls(citations: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    return {citation["number"]: citation["url"] for citation in citations}
