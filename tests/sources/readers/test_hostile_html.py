"""HTML built to be slow: the sandbox limits its time and memory, and the next document is read. (HARDENING S3)"""

from __future__ import annotations

import time
from contextlib import closing, suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bythebook.sources import ListedPage, Unreadable
from bythebook.sources.document import format_table
from bythebook.sources.folder import Folder
from bythebook.sources.projects import DEFAULT_SLUGS, Style
from bythebook.sources.readers import html
from bythebook.sources.readers.sandbox import Sandbox, SandboxLimits
from tests.support.site_server import Reply, SiteServer, page, paths, serving, site_of, skipped, visited, xml

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MANY = 60_000
UNCLOSED_BOLD = "<p>" + "".join(f"<b id=x{n}>" for n in range(900)) + "</p>" + "<p>x</p>" * MANY
"""The parser gives up on this page after about a second."""


@pytest.fixture(scope="module")
def impatient() -> Iterator[Sandbox]:
    sandbox = Sandbox(SandboxLimits(page_seconds=1.0))
    yield sandbox
    sandbox.stop()


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    sandbox = Sandbox()
    yield sandbox
    sandbox.stop()


def assert_reads_on(sandbox: Sandbox) -> None:
    assert [part.text for part in sandbox.read_web_page("<p>It burns.").document.parts] == ["It burns."]


@pytest.mark.parametrize(
    "hostile",
    [
        pytest.param("<div>" * 1_000_000, id="a million nested tags"),
        pytest.param("<div></span>" * MANY, id="end tags that end nothing"),
        pytest.param("<div><table><tr><td></div></table>" * MANY, id="end tags behind a table"),
        pytest.param("<b><div></b>" * MANY, id="formatting across blocks"),
        pytest.param("<span><div></span>" * MANY, id="an end tag behind a block"),
        pytest.param("<form><div></form>" * MANY, id="forms across blocks"),
        pytest.param("<svg>" + "<div/>" * MANY, id="blocks that close themselves in a drawing"),
        pytest.param("<rt>x" * MANY, id="ruby"),
        pytest.param("<p " + " ".join(f"a{n}=1" for n in range(100_000)) + ">x", id="a hundred thousand attributes"),
        pytest.param("".join(f"<body a{n}=1>" for n in range(MANY)), id="many bodies"),
    ],
)
def test_html_that_is_quadratic_for_the_parser_is_refused_at_the_time_limit(impatient: Sandbox, hostile: str) -> None:
    with pytest.raises(Unreadable, match=r"it takes too long to read \(over 1 s\)"):
        impatient.read_web_page(hostile)


@pytest.mark.parametrize(
    "hostile",
    [
        pytest.param("<svg><foreignObject>" + "<x/>" * MANY, id="HTML inside a drawing"),
        pytest.param("<svg><title>" + "<x/>" * MANY, id="HTML in the title of a drawing"),
        pytest.param(
            "<p>" + "".join(f"<b id=x{n}>" for n in range(900)) + "</p>" + "<p>x</p>" * MANY, id="bold for ever"
        ),
        pytest.param("<i></i>" * 201_000, id="too many tags"),
    ],
)
def test_costly_html_is_refused_or_read_within_the_time_limit(sandbox: Sandbox, hostile: str) -> None:
    before = time.monotonic()
    with suppress(Unreadable):
        sandbox.read_web_page(hostile)
    assert time.monotonic() - before < SandboxLimits().page_seconds + 5
    assert_reads_on(sandbox)


def test_the_page_after_one_that_was_killed_is_read_by_a_new_process() -> None:
    sandbox = Sandbox(SandboxLimits(page_seconds=8.0))
    with pytest.raises(Unreadable, match="it takes too long to read"):
        sandbox.read_web_page("<div>" * 1_000_000)
    assert_reads_on(sandbox)
    sandbox.stop()


def test_the_memory_of_a_page_is_bounded() -> None:
    sandbox = Sandbox(SandboxLimits(memory=200_000_000))
    with pytest.raises(Unreadable):
        sandbox.read_web_page("<p>x" * 2_400_000)
    assert_reads_on(sandbox)
    sandbox.stop()


@pytest.mark.parametrize("name", ["bold.html", "bold.md", "bold.ipynb"])
async def test_a_folder_reports_a_hostile_document_and_reads_the_others(tmp_path: Path, name: str) -> None:
    source = (
        f'{{"cells": [{{"cell_type": "markdown", "source": "{UNCLOSED_BOLD}"}}]}}'
        if ".ipynb" in name
        else UNCLOSED_BOLD
    )
    (tmp_path / name).write_text(source)
    (tmp_path / "good.html").write_text("<p>It burns.")
    folder = Folder(tmp_path)
    listed = {item.path: item async for item in folder.listing() if isinstance(item, ListedPage)}

    with pytest.raises(Unreadable, match="could not be understood"):
        await folder.read(listed[name])
    assert (await folder.read(listed["good.html"])).text == "It burns."


@pytest.mark.parametrize("media_type", ["text/html", "text/markdown"])
async def test_a_crawl_reports_a_hostile_page_and_continues(media_type: str) -> None:
    async with serving(SiteServer({"/": page("Home"), "/good": page("Good", "It burns.")})) as server:
        server.shown["/bold"] = Reply(UNCLOSED_BOLD.encode(), headers={"Content-Type": media_type})
        locations = "".join(f"<url><loc>{server.url}{path}</loc></url>" for path in ("/", "/bold", "/good"))
        server.shown["/sitemap.xml"] = xml(f"<urlset>{locations}</urlset>")
        with closing(site_of(server)) as site:
            entries = await visited(site)

    assert paths(entries, server) == ["/", "/good"]
    assert "could not be understood" in skipped(entries, server)["/bold"]


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param("<a " * 300_000, id="a tag that never ends"),
        pytest.param('<a "' * 200_000, id="quotes that never end"),
        pytest.param("<a x='" * 200_000, id="values that never end"),
        pytest.param("<" * 500_000, id="signs"),
        pytest.param("<!--" * 200_000, id="comments that never end"),
        pytest.param("&amp;&#x41;&notit;" * 50_000, id="entities"),
        pytest.param("<p title='" + "x" * 2_000_000 + "'>x", id="a huge attribute"),
        pytest.param("<script>" + "<div>" * 100_000 + "</script>x", id="markup inside a script"),
        pytest.param("<y><table><tr><td>" + "<x>" * 900 + "</y>" * 40_000, id="end tags without effect"),
        pytest.param("<section id=a>" + "<p>x" * 10_000 + "<h2>y</h2>" * 10_000, id="headings far from their section"),
    ],
)
def test_unusual_html_is_read(sandbox: Sandbox, odd: str) -> None:
    assert sandbox.read_web_page(odd).document == html.read(odd)


def test_a_very_long_row_does_not_widen_the_other_rows_of_a_table() -> None:
    assert len(format_table([["x"] * 20_000, *([["y"]] * 20_000)])) < 1_000_000


def test_a_large_page_is_read_in_the_sandbox(sandbox: Sandbox) -> None:
    drawing = "<svg><g><path d=x /><circle/></g><title>t</title></svg>"
    row = "<tr><td><p>a<p>b<ul><li>c<li>d</ul><tr><th>e"
    page = f"<div><table>{row * 500}</table>{drawing * 2000}<dl>{'<dt>a<dd>b' * 2000}</dl></div>" + "<p><b>x</b>" * 5000
    document = sandbox.read_text(page, suffix=".html", style=Style.PLAIN, slugs=DEFAULT_SLUGS)
    assert document == html.read(page)
    assert [part.text for part in document.parts][-5000:] == ["x"] * 5000


@settings(deadline=None, max_examples=50)
@given(
    st.lists(
        st.sampled_from(
            [
                *"div span b i a p li ul table tr td svg path form h2 section x select option button em".split(),
                *"/div /span /b /i /a /p /li /ul /table /tr /td /svg /form /h2 /section /x /select /button /em".split(),
                *("path/", "div/", "br", "template", "/template", "foreignObject", "object", "/object"),
            ]
        ),
        max_size=60,
    )
)
def test_any_html_with_few_tags_is_parsed_quickly(tags: list[str]) -> None:
    text = "".join(f"<{tag}>" for tag in tags)
    repeated = text * (3_000 // max(len(tags), 1))
    before = time.process_time()
    html.read(repeated)
    assert time.process_time() - before < 5
