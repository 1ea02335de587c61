"""Rendering: Markdown becomes HTML that is safe to show, the same while it streams and afterwards."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from bythebook.server.rendering import IncrementalRenderer, add_html, render_markdown

LINKS = {1: "https://book.example/lamp#oil:~:text=burns%20oil", 2: "file:///book/horn.md", 3: "javascript:alert(1)"}

CITED = f'<a class="cite" href="{LINKS[1]}" rel="noopener">1</a>'

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '<a href="javascript:alert(1)">x</a>',
    "[x](javascript:alert(1))",
    "[x](https://evil.example)",
    "![x](https://evil.example/a.png)",
    "<https://evil.example>",
    "[x][y]\n\n[y]: https://evil.example",
    '```"><script>alert(1)</script>\ncode\n```',
    "```html\n<svg onload=alert(1)>\n```",
    "$<img src=x onerror=alert(1)>$",
    "| <iframe src=//evil.example> |\n|---|\n| <style>*{}</style> |",
    "[1](https://evil.example)",
    "[3]",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "<math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
]

PIECES = [
    *HOSTILE,
    "\n",
    "\n\n",
    "- one",
    "1. two",
    "  ",
    "> said",
    "# Lamp",
    "*",
    "**",
    "`",
    "```",
    "$",
    "\n$$\n",
    "\\[",
    "\\]",
    "|",
    "---",
    "[1]",
    "[2]",
    "word ",
    "\t",
]


@pytest.mark.parametrize(
    ("text", "html"),
    [
        pytest.param(
            "It *burns* oil. [1]",
            f"<p>It <em>burns</em> oil. {CITED}</p>",
            id="a citation is a link",
        ),
        pytest.param("A horn. [2]", '<p>A horn. <span class="cite">2</span></p>', id="a file is not linked to"),
        pytest.param("A horn. [7]", "<p>A horn. [7]</p>", id="a number that is no citation"),
        pytest.param("# Lamp", "<h3>Lamp</h3>", id="headings stand below the page's own"),
        pytest.param("$a_1 + b_2$", '<p><span class="maths">$a_1 + b_2$</span></p>', id="maths as it was written"),
        pytest.param(r"\(x_y\) *z*", r'<p><span class="maths">\(x_y\)</span> <em>z</em></p>', id="maths in TeX's way"),
        pytest.param(
            "So:\n$$\na\n- b\n= c\n$$ [1]\nAnd *so* on.",
            f'<p>So:</p>\n<p><span class="maths">$$\na\n- b\n= c\n$$</span> {CITED}</p>\n<p>And <em>so</em> on.</p>',
            id="maths on lines of its own",
        ),
        pytest.param(
            "- Where\n  \\[\n  > a\n  \\]\n- so",
            '<ul>\n<li>Where\n<p><span class="maths">\\[\n&gt; a\n\\]</span></p>\n</li>\n<li>so</li>\n</ul>',
            id="maths in a list",
        ),
        pytest.param(
            "$$ is *much*\n\n- so", "<p>$$ is <em>much</em></p>\n<ul>\n<li>so</li>\n</ul>", id="no maths at all"
        ),
        pytest.param("from $5 to $6", "<p>from $5 to $6</p>", id="money is no maths"),
        pytest.param(
            "```\na < b\n```", '<pre tabindex="0"><code>a &lt; b\n</code></pre>', id="code without a language"
        ),
        pytest.param(
            "```python\npass\n```",
            '<pre tabindex="0"><code><span class="k">pass</span>\n</code></pre>',
            id="code with colours",
        ),
        pytest.param(
            "```no-such-language\npass\n```",
            '<pre tabindex="0"><code>pass\n</code></pre>',
            id="a language nobody knows",
        ),
        pytest.param(
            "|a|\n|-:|\n|1|",
            '<table><thead><tr><th class="right">a</th></tr></thead>'
            '<tbody><tr><td class="right">1</td></tr></tbody></table>',
            id="a table",
        ),
    ],
)
def test_renders_markdown(text: str, html: str) -> None:
    assert re.sub(r"(?<=>)\n(?=</?t)", "", render_markdown(text, LINKS).strip()) == html


@pytest.mark.parametrize(
    ("text", "html"),
    [
        pytest.param(
            r"- [Lamp > List\[T\]](https://book.example/lamp#t)",
            '<ul>\n<li><a href="https://book.example/lamp#t" rel="noopener">Lamp &gt; List[T]</a></li>\n</ul>',
            id="a suggested section is a link",
        ),
        pytest.param("[Lamp](file:///book/lamp.md)", "<p>Lamp</p>", id="a file is not linked to"),
        pytest.param("[x](https://evil.example)", "<p>[x](https://evil.example)</p>", id="any other URL is text"),
        pytest.param("[x](javascript:alert(1))", "<p>[x](javascript:alert(1))</p>", id="a script is text"),
    ],
)
def test_only_suggested_sections_are_linked(text: str, html: str) -> None:
    sections = ("https://book.example/lamp#t", "file:///book/lamp.md", "javascript:alert(1)")
    assert render_markdown(text, LINKS, sections).strip() == html


def _is_harmless(html: str) -> bool:
    tree = LexborHTMLParser(html)
    links = [node.attributes.get("href") for node in tree.css("a")]
    names = {name for node in tree.css("body *") for name in node.attributes}
    return (
        not tree.css("script, img, svg, iframe, style, math, form, object, embed, link, meta")
        and all(link == LINKS[1] for link in links)
        and names <= {"class", "href", "rel", "start", "tabindex"}
    )


@pytest.mark.parametrize("text", HOSTILE)
def test_s4_no_hostile_html_survives_however_it_is_split(text: str) -> None:
    assert _is_harmless(render_markdown(text, LINKS))
    for size in (1, 2, 3):
        rendering = IncrementalRenderer(LINKS)
        for start in range(0, len(text), size):
            assert _is_harmless(rendering.feed(text[start : start + size]).html)


@given(st.lists(st.sampled_from(PIECES), max_size=30))
def test_s4_any_mixture_of_payloads_is_harmless(pieces: list[str]) -> None:
    assert _is_harmless(render_markdown("".join(pieces), LINKS))


@given(st.lists(st.sampled_from(PIECES), max_size=30))
def test_incremental_rendering_ends_as_the_whole_text(pieces: list[str]) -> None:
    rendering = IncrementalRenderer(LINKS)
    shown: list[str] = []
    for piece in pieces:
        rendered = rendering.feed(piece)
        shown[rendered.settled :] = _blocks(rendered.html)
    assert shown == _blocks(render_markdown("".join(pieces), LINKS))


def _blocks(html: str) -> list[str]:
    body = LexborHTMLParser(f"<body>{html}</body>").body
    return [child.html or "" for child in (body.iter() if body else ())]


@pytest.mark.parametrize(
    ("quote", "html"),
    [
        pytest.param("Run:\n\n```\nx\n```", "<p>Run:</p>\n<pre><code>x\n</code></pre>\n", id="code has no fences"),
        pytest.param("| a | b |\n| --- | --- |\n| 1 | 2 |", "<p>a · b<br>\n1 · 2</p>\n", id="rows are lines"),
        pytest.param(
            "See [1] <b> [x](https://x.test)", "<p>See [1] &lt;b&gt; [x](https://x.test)</p>\n", id="no links"
        ),
        pytest.param("lamp " * 200, f"<p>{'lamp ' * 80}…</p>\n", id="only the beginning"),
    ],
)
def test_a_citation_has_a_preview_of_its_quote(quote: str, html: str) -> None:
    said = add_html(
        {"answer": "A", "citations": [{"number": 1, "url": "https://x.test", "quote": quote}]}, text="answer"
    )

    assert said["citations"][0]["html"] == html


def test_a_citation_does_not_hide_an_earlier_block() -> None:
    rendering = IncrementalRenderer(LINKS)
    first = rendering.feed("The lamp burns oil. [1]\n\nThe horn\n")
    second = rendering.feed("sounds. [2]")
    assert (first.settled, second.settled) == (0, 1)
    assert second.html == '<p>The horn\nsounds. <span class="cite">2</span></p>\n'
