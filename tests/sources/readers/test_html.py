from __future__ import annotations

import pytest

from bythebook.sources import BlockKind
from bythebook.sources.document import DocumentPart
from bythebook.sources.readers import html


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
def test_reads_only_the_content(page: str, read: list[str]) -> None:
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
def test_a_heading_has_its_id(heading: str, anchor: str) -> None:
    assert html.read(heading).parts == (DocumentPart(BlockKind.HEADING, "A b", level=2, anchor=anchor),)


def test_only_the_first_heading_of_a_section_has_the_id_of_the_section() -> None:
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
def test_keeps_lines_and_language_of_code(page: str, code: str) -> None:
    assert html.read(page).parts == (DocumentPart(BlockKind.CODE, code),)


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
def test_keeps_the_structure_of_blocks(page: str, read: list[str]) -> None:
    assert seen(page) == read


def test_the_title_is_the_top_heading_or_the_title_element() -> None:
    assert html.read("<title>T | Site</title><h1>H</h1>").title == "H"
    assert html.read("<title> T | \n Site</title><p>a").title == "T | Site"


def test_keeps_deeply_nested_text() -> None:
    assert seen("<div>" * 500 + "<ul><li>a</ul>" + "</div>" * 500) == ["a"]


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            "<div class=tabs-container><ul role=tablist><li role=tab>npm<li role=tab>pip</ul><div>"
            "<div role=tabpanel><p>a</div><div role=tabpanel hidden><p>b</div></div></div>",
            id="docusaurus",
        ),
        pytest.param(
            "<div class=tabbed-set><input><div class=tabbed-labels><label>npm</label><label>pip</label></div>"
            "<div class=tabbed-content><div class=tabbed-block>a</div><div class=tabbed-block>b</div></div></div>",
            id="mkdocs",
        ),
        pytest.param(
            "<div class=sd-tab-set><input><label class=sd-tab-label>npm</label><div class=sd-tab-content><p>a</div>"
            "<input><label class=sd-tab-label>pip</label><div class=sd-tab-content><p>b</div></div>",
            id="sphinx",
        ),
        pytest.param(
            "<div class=vp-code-group><div class=tabs><input><label>npm</label><input><label>pip</label></div>"
            "<div class=blocks><div class='language-sh active'><p>a</div><div class=language-sh><p>b</div></div></div>",
            id="vitepress",
        ),
    ],
)
def test_a_tab_panel_follows_its_label(page: str) -> None:
    assert seen(page) == ["npm", "a", "pip", "b"]


def test_nested_tabs_have_their_own_labels() -> None:
    def tabs(one: str, other: str, *, names: str) -> str:
        labels = "".join(f"<li role=tab>{name}" for name in names)
        return (
            f"<div><ul role=tablist>{labels}</ul><div role=tabpanel>{one}</div><div role=tabpanel>{other}</div></div>"
        )

    assert seen(tabs(tabs("1", "2", names="xy"), "3", names="ab")) == ["a", "x", "1", "y", "2", "b", "3"]


FURNITURE = {
    "docusaurus": (
        "<nav class=navbar>N</nav><main><div class=theme-doc-version-banner>N</div><article>"
        "<nav class=theme-doc-breadcrumbs><ul><li>N</ul></nav><span class=theme-doc-version-badge>N</span>"
        "<div class=theme-doc-toc-mobile><button>N</button></div><div class=theme-doc-markdown>"
        "<header><h1>T</h1></header><p>a<a href=#a class=hash-link>#</a></div>"
        "<footer class=theme-doc-footer><a>N</a></footer></article>"
        "<nav class=pagination-nav>N</nav><div class=theme-doc-toc-desktop>N</div></main><footer>N</footer>"
    ),
    "material": (
        "<header class=md-header>N</header><div class=md-banner>N</div><main><div class=md-sidebar>N</div>"
        "<article class='md-content__inner'><nav class=md-tags>N</nav><a class=md-content__button>N</a><h1 id=t>T"
        "<a class=headerlink href=#t>¶</a></h1><p>a<aside class=md-source-file>N</aside>"
        "<form class=md-feedback>N</form></article></main><button class=md-top>N</button>"
        "<footer class=md-footer>N</footer><div class=md-consent>N</div>"
    ),
    "read the docs": (
        "<nav class=wy-nav-side>N</nav><section><div role=navigation><ul class=wy-breadcrumbs><li>N</ul></div>"
        "<div role=main class=document><div itemprop=articleBody><section id=t>"
        "<h1>T<a class=headerlink href=#t>¶</a></h1><p>a<div class=toctree-wrapper><ul><li>N</ul></div>"
        "</section></div></div><footer>"
        "<div class=rst-footer-buttons role=navigation>N</div></footer></section><div class=rst-versions>N</div>"
    ),
    "furo": (
        "<div class=announcement>N</div><aside class=sidebar-drawer>N</aside><div class=main><div class=content>"
        "<div class=content-icon-container>N</div><article role=main id=furo-main-content><section id=t><h1>T</h1><p>a"
        "</section></article><footer><div class=related-pages>N</div></footer></div>"
        "<aside class=toc-drawer>N</aside></div>"
    ),
    "alabaster": (
        "<div class=document><div class=documentwrapper><div class=bodywrapper><div class=body role=main><section id=t>"
        "<h1>T</h1><p>a</section></div></div></div><div class=sphinxsidebar role=navigation>N</div></div>"
        "<div class=footer>N</div>"
    ),
    "book theme": (
        "<div class=bd-header-article>N</div><main id=main-content><div class=bd-content><article class=bd-article>"
        "<section id=t><h1>T</h1><p>a</section></article></div><footer class=prev-next-footer>N</footer>"
        "<div class=bd-sidebar-secondary>N</div></main>"
    ),
    "nothing marked": (
        "<div id=header><a href=/>N</a></div><table><tr><td class=menu><a href=1>N</a><td><div class=breadcrumb>N</div>"
        f"<h1>T</h1><p>a<ul>{'<li><a href=x>N</a>' * 6}</ul></table><div class=cookie-consent>N</div>"
        "<div id=footer>N</div>"
    ),
}


@pytest.mark.parametrize("theme", FURNITURE)
def test_omits_the_navigation_of_each_theme(theme: str) -> None:
    assert [text for text in seen(FURNITURE[theme]) if text != "T"] == ["a"]
    assert html.read(FURNITURE[theme]).title == "T"


def test_the_densest_element_is_the_content_of_an_unmarked_page() -> None:
    words = "The keeper lights the lamp at dusk and trims the wick. " * 5
    menu = "".join(f"<a href={number}>Link {number}</a> " for number in range(9))
    page = (
        f"<div><div>Top</div><div><div>{menu}</div><div><p>{words}</p><p>{words}</p></div></div><div>Bottom</div></div>"
    )
    assert seen(page) == [words.strip(), words.strip()]


def test_removes_the_site_name_from_the_title_of_a_known_generator() -> None:
    generator = "<meta name=generator content='Docusaurus v3.10.2'>"
    page = html.read(f"{generator}<title>Short | Of | Site</title><main><h1>A long heading</h1></main>")
    assert page.title == "Short | Of"
