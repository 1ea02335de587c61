from __future__ import annotations

import pytest

from bythebook.pages import Kind, Unreadable
from bythebook.pages.compose import Part
from bythebook.pages.readers import html


def seen(text: str) -> list[str]:
    return [part.text for part in html.read(text).parts]


@pytest.mark.parametrize(
    ("page", "read"),
    [
        pytest.param("<nav>Menu</nav><main><p>a<aside>x</aside></main><footer>f</footer>", ["a"], id="main"),
        pytest.param("<main><div>side</div><article>a</article></main>", ["a"], id="the only article"),
        pytest.param("<main><article>a</article><article>b</article></main>", ["a", "b"], id="many articles"),
        pytest.param("<div>x</div><div role=main>a</div>", ["a"], id="by role"),
        pytest.param("<header><h1>T</h1><a>Login</a></header><p>a", ["T", "a"], id="the heading of a header"),
        pytest.param("<p>a<script>x</script><style>y</style><template>z</template>", ["a"], id="what is not text"),
        pytest.param("<p hidden>x</p><p style='display: none'>y</p>a", ["a"], id="hidden"),
        pytest.param(
            "<p style='color:#fff; font-size: 0px'>x</p><p style='font-size:0.9em'>a</p>", ["a"], id="too small"
        ),
        pytest.param("<div role=tabpanel hidden>a</div>", ["a"], id="a tab behind another"),
        pytest.param("<aside class='admonition tip'><p>Tip<p>a</aside>", ["Tip", "a"], id="an admonition"),
        pytest.param("<p>a<sup><a class='footnote-ref' href='#1'>1</a></sup>.", ["a."], id="a footnote's mark"),
    ],
)
def test_only_the_content_is_read(page: str, read: list[str]) -> None:
    assert seen(page) == read


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        pytest.param("<h2 id=a>A b<a class=hash-link href=#a>\u200b</a></h2>", "a", id="docusaurus"),
        pytest.param("<h2 id=a>A b<a class=headerlink href=#a>¶</a></h2>", "a", id="mkdocs"),
        pytest.param("<section id=a><h2>A b<a href=#a>¶</a></h2></section>", "a", id="sphinx"),
        pytest.param("<div class=section id=a><h2>A b</h2></div>", "a", id="older sphinx"),
        pytest.param("<h2><a id=a></a>A b</h2>", "a", id="inside it"),
        pytest.param("<h2 id=a><a class=header href=#a>A b</a></h2>", "a", id="mdbook"),
        pytest.param("<section id=a><p></p><div><h2>A b</h2></div></section>", "", id="none"),
    ],
)
def test_a_heading_has_its_real_id(heading: str, anchor: str) -> None:
    assert html.read(heading).parts == (Part(Kind.HEADING, "A b", level=2, anchor=anchor),)


def test_only_the_first_heading_of_a_section_has_the_sections_id() -> None:
    parts = html.read("<section id=a><h2>A</h2><h2>B</h2></section>").parts

    assert [part.anchor for part in parts] == ["a", ""]


@pytest.mark.parametrize(
    ("page", "code"),
    [
        pytest.param(
            "<pre class='language-py'><code><span class=token-line>a = 1<br></span>"
            "<span class=token-line>  b<br></span></code></pre>",
            "```py\na = 1\n  b\n```",
            id="docusaurus",
        ),
        pytest.param(
            "<div class='language-py highlight'><table class=highlighttable><tr><td class=linenos><pre>1</pre></td>"
            "<td class=code><pre><span></span><code>a\n<span>b</span></code></pre></td></tr></table></div>",
            "```py\na\nb\n```",
            id="mkdocs with line numbers",
        ),
        pytest.param(
            "<div class='highlight-python notranslate'><div class=highlight>"
            "<pre><span class=linenos>1</span>a\n</pre></div></div>",
            "```python\na\n```",
            id="sphinx with line numbers",
        ),
        pytest.param("<pre>a &lt; b</pre>", "```\na < b\n```", id="by hand"),
    ],
)
def test_code_keeps_its_lines_and_language(page: str, code: str) -> None:
    assert html.read(page).parts == (Part(Kind.CODE, code),)


@pytest.mark.parametrize(
    ("page", "read"),
    [
        pytest.param("<ul><li>a<ol start=3><li>b<li>c</ol><li><p>d</ul>", ["- a\n  3. b\n  4. c\n- d"], id="lists"),
        pytest.param("<ul><li>a<pre>x</pre>b</ul>", ["- a", "```\nx\n```", "b"], id="code in a list"),
        pytest.param(
            "<table><tr><th>a<th>b<tr><td>1<br>2<td>x|y</table>",
            ["| a | b |\n| --- | --- |\n| 1 2 | x\\|y |"],
            id="table",
        ),
        pytest.param("<dl><dt>a<dd>b</dl>", ["a", "b"], id="definitions"),
        pytest.param("a\n  <b>b</b><br>c<p>d", ["a b\nc", "d"], id="paragraphs"),
        pytest.param("<details><summary>s</summary>a</details>", ["s", "a"], id="details"),
        pytest.param("<p>a<img alt=x> &nbsp; b &amp;", ["a b &"], id="images and entities"),
    ],
)
def test_blocks_keep_their_shape(page: str, read: list[str]) -> None:
    assert seen(page) == read


def test_the_title_is_the_top_heading_or_the_pages_own() -> None:
    assert html.read("<title>T | Site</title><h1>H</h1>").title == "H"
    assert html.read("<title> T | \n Site</title><p>a").title == "T | Site"


def test_a_tree_too_deep_to_parse_is_refused() -> None:
    with pytest.raises(Unreadable, match="more than 1000 elements are open"):
        html.read("<div>" * 100_000)


def test_text_below_many_elements_is_kept() -> None:
    assert seen("<div>" * 500 + "<ul><li>a</ul>" + "</div>" * 500) == ["a"]
