"""Rendering: an answer in Markdown as HTML that is safe to show, the same while it is written and afterwards.

Markdown is parsed with raw HTML, links and images switched off, and only then sanitised. The one kind of link there is
belongs to a citation: `[2]` leads to where citation 2 leads, and to nowhere else.

Showing: what is said, as HTML for a page, beside the text it was made of. Asked for by `Prefer: render=html`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.token import STANDARD_TYPES
from pygments.util import ClassNotFound

from bythebook.retrieval.text_fragments import link
from bythebook.server.streams import line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token
    from markdown_it.utils import EnvType
    from starlette.requests import Request

    from bythebook.server.streams import Happening


_MARKER = re.compile(r"\[(\d{1,4})\]")
_MATHS = re.compile(r"\$\$.+?\$\$|\$(?!\s)[^$\n]+?(?<![\s\\])\$(?!\d)|\\\(.+?\\\)|\\\[.+?\\\]", re.DOTALL)
_DISPLAYED = {"$$": "$$", r"\[": r"\]"}
"""How maths begins that stands on lines of its own, and how it ends."""
_LONGEST_MATHS = 2000
_LONGEST_COLOURED = 20_000
"""Code beyond this is shown without colours: looking for them could take long."""

_TAGS = set("a blockquote br code em h3 h4 h5 h6 hr li ol p pre s span strong table tbody td th thead tr ul".split())
_ATTRIBUTES = {"a": {"href"}, "ol": {"start"}, "pre": {"tabindex"}}
_CLASSES = {
    "a": {"cite"},
    "span": {"cite", "maths"} | {name for name in STANDARD_TYPES.values() if name},
    "td": {"left", "center", "right"},
    "th": {"left", "center", "right"},
}


def render(text: str, links: Mapping[int, str]) -> str:
    """The whole text as HTML. `links` says where each citation leads."""
    return _rendered(_markdown().parse(text, {"links": links}), links)


@dataclass(frozen=True, slots=True)
class Rendered:
    """A piece of an answer that is being written: keep the first `settled` blocks, and put `html` behind them."""

    settled: int
    html: str


class Rendering:
    """An answer as it comes. Blocks that nothing can change any more are not rendered again."""

    def __init__(self, links: Mapping[int, str]) -> None:
        self._links = links
        self._open = ""
        self._settled = 0

    def feed(self, text: str) -> Rendered:
        """What to show, now that `text` has come."""
        self._open += text
        before = self._settled
        tokens = _markdown().parse(self._open, {"links": self._links})
        # Whatever follows can still become part of the last block whose first line is whole, and of none before it.
        lines = self._open.split("\n")
        starts = [token.map[0] for token in tokens if token.level == 0 and token.nesting >= 0 and token.map]
        last = [start for start in starts if start < len(lines) - 1][1:]
        if last:
            self._settled += len(last)
            self._open = "\n".join(lines[last[-1] :])
        return Rendered(before, _rendered(tokens, self._links))


def _rendered(tokens: Sequence[Token], links: Mapping[int, str]) -> str:
    markdown = _markdown()
    html = markdown.renderer.render(list(tokens), markdown.options, {"links": links})
    allowed = {url for url in links.values() if _is_web(url)}

    def only_citations(tag: str, attribute: str, value: str) -> str | None:
        return None if (tag, attribute) == ("a", "href") and value not in allowed else value

    return nh3.clean(
        html,
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        allowed_classes=_CLASSES,
        attribute_filter=only_citations,
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
    return markdown


def _citation(state: StateInline, silent: bool) -> bool:
    """`[2]`, where there is a citation 2."""
    match = _MARKER.match(state.src, state.pos)
    if match is None or int(match[1]) not in state.env["links"]:
        return False
    if not silent:
        state.push("citation", "", 0).content = match[1]
    state.pos = match.end()
    return True


def _maths_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Maths on lines of its own: a minus that begins one makes no list. It ends with its mark or at an empty line."""
    closing = _DISPLAYED.get(_line(state, start)[:2])
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
    """Maths as it was written: what would be emphasis or an escape elsewhere is part of it."""
    if state.src[state.pos] not in "$\\":
        return False
    match = _MATHS.match(state.src, state.pos, state.pos + _LONGEST_MATHS)
    if match is None:
        return False
    if not silent:
        state.push("maths", "", 0).content = match[0]
    state.pos = match.end()
    return True


class _Html(RendererHTML):
    """What becomes of each kind of token that is shown in another way than Markdown's usual one."""

    def citation(self, tokens: Sequence[Token], index: int, _options: object, env: EnvType) -> str:
        number = tokens[index].content
        url = env["links"][int(number)]
        if not _is_web(url):
            return f'<span class="cite">{number}</span>'
        return f'<a class="cite" href="{_escaped(url)}">{number}</a>'

    def maths(self, tokens: Sequence[Token], index: int, _options: object, _env: object) -> str:
        return f'<span class="maths">{_escaped(tokens[index].content)}</span>'

    def fence(self, tokens: Sequence[Token], idx: int, _options: object, _env: object) -> str:
        return _code(tokens[idx])

    def code_block(self, tokens: Sequence[Token], idx: int, _options: object, _env: object) -> str:
        return _code(tokens[idx])

    def heading_open(self, tokens: Sequence[Token], index: int, _options: object, _env: object) -> str:
        """Headings begin below those of the page they are shown on."""
        return f"<h{_level(tokens[index])}>"

    def heading_close(self, tokens: Sequence[Token], index: int, _options: object, _env: object) -> str:
        return f"</h{_level(tokens[index])}>\n"

    def td_open(self, tokens: Sequence[Token], index: int, _options: object, _env: object) -> str:
        token = tokens[index]
        side = str(token.attrGet("style") or "").removeprefix("text-align:")
        return f'<{token.tag} class="{side}">' if side else f"<{token.tag}>"

    th_open = td_open


def _level(heading: Token) -> int:
    return min(6, int(heading.tag[1]) + 2)


def _code(token: Token) -> str:
    """Code, which can be reached and scrolled by keyboard."""
    language = token.info.split()
    return f'<pre tabindex="0"><code>{_coloured(token.content, language[0] if language else "")}</code></pre>\n'


def _coloured(code: str, language: str) -> str:
    """The code with a class on each word that has a colour."""
    if not language or len(code) > _LONGEST_COLOURED:
        return _escaped(code)
    try:
        lexer = get_lexer_by_name(language, stripnl=False)
    except ClassNotFound:
        return _escaped(code)
    return str(highlight(code, lexer, HtmlFormatter(nowrap=True)))


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def wants_html(request: Request) -> bool:
    """Whether the caller shows answers on a page."""
    preferred = ",".join(request.headers.getlist("prefer"))
    return "render=html" in (part.strip() for part in preferred.split(","))


def shown(said: Mapping[str, Any], *, text: str) -> dict[str, Any]:
    """What was said, with `html` made of its `text` and leading where its citations lead."""
    return {**said, "html": render(said[text], _leading(said["citations"]))}


class Showing:
    """Follows one stream, and adds to its events what a page shows of them."""

    def __init__(self) -> None:
        self._links: dict[int, str] = {}
        self._rendering = Rendering({})

    def tell(self, happening: Happening) -> str:
        """The event's data, with HTML wherever there is something to show."""
        match happening.name:
            case "sources":
                self._found(json.loads(happening.data)["sources"])
            case "state" if json.loads(happening.data)["state"] == "generating":
                # An answer begins, perhaps anew.
                self._rendering = Rendering(self._links)
            case "delta":
                return self._more(json.loads(happening.data)["text"])
            case "answer":
                return line(shown(json.loads(happening.data), text="answer"))
        return happening.data

    def _found(self, sources: Sequence[Mapping[str, Any]]) -> None:
        """Until an answer is proven its numbers are those of the passages."""
        for source in sources:
            self._links[source["position"]] = link(source["url"], anchor=source["anchor"], words="")

    def _more(self, text: str) -> str:
        rendered = self._rendering.feed(text)
        return line({"text": text, "html": rendered.html, "settled": rendered.settled})


def _leading(citations: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    return {citation["number"]: citation["url"] for citation in citations}
