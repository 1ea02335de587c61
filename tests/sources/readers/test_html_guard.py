"""HTML that was made to be slow is refused before it is parsed, and real pages are not. (HARDENING S3)"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.sources import Unreadable
from bythebook.sources.document import piped
from bythebook.sources.readers.html import parse, read
from bythebook.sources.readers.html_guard import FEW_TAGS, MOST_OPEN, check, examine

MANY = 60_000


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
        pytest.param("<svg><foreignObject>" + "<x/>" * MANY, id="HTML inside a drawing"),
        pytest.param("<svg><title>" + "<x/>" * MANY, id="HTML in the title of a drawing"),
        pytest.param("<rt>x" * MANY, id="ruby"),
        pytest.param(
            "<p>" + "".join(f"<b id=x{n}>" for n in range(900)) + "</p>" + "<p>x</p>" * MANY, id="bold for ever"
        ),
        pytest.param("<p " + " ".join(f"a{n}=1" for n in range(100_000)) + ">x", id="a hundred thousand attributes"),
        pytest.param("".join(f"<body a{n}=1>" for n in range(MANY)), id="many bodies"),
        pytest.param("<i></i>" * 201_000, id="too many tags"),
    ],
)
def test_what_was_made_to_be_slow_is_refused(hostile: str) -> None:
    with pytest.raises(Unreadable):
        check(hostile)


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
def test_what_is_only_odd_is_read(odd: str) -> None:
    read(odd)


@pytest.mark.parametrize(
    "tags",
    [
        pytest.param("<div>" * FEW_TAGS, id="nested"),
        pytest.param(
            "".join(f"<b id={n}>" for n in range(FEW_TAGS // 3)) + "<p></p>" * (FEW_TAGS // 3), id="bold for ever"
        ),
        pytest.param("<table>" * FEW_TAGS, id="tables"),
    ],
)
def test_few_tags_are_read_whatever_they_are(tags: str) -> None:
    assert [part.text for part in read(tags + "text").parts][-1:] == ["text"]


def test_one_endless_row_does_not_make_all_rows_endless() -> None:
    assert len(piped([["x"] * 20_000, *([["y"]] * 20_000)])) < 1_000_000


def test_real_pages_are_let_through() -> None:
    drawing = "<svg><g><path d=x /><circle/></g><title>t</title></svg>"
    row = "<tr><td><p>a<p>b<ul><li>c<li>d</ul><tr><th>e"
    page = f"<div><table>{row * 500}</table>{drawing * 2000}<dl>{'<dt>a<dd>b' * 2000}</dl></div>" + "<p><b>x</b>" * 5000
    check(page)


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
def test_the_guard_never_counts_less_than_the_parser_opens(tags: list[str]) -> None:
    """The same tags over and over: if the tree grows deeper and deeper, the guard has refused it."""
    text = "".join(f"<{tag}>" for tag in tags)
    again = text * (8_000 // max(len(text), 1))
    try:
        examine(again)
    except Unreadable:
        return
    # A list, a table and a cell each open elements that nobody wrote.
    assert _depth(again) <= 6 * MOST_OPEN


def _depth(text: str) -> int:
    deepest, waiting = 0, [(parse(text).root, 1)]
    while waiting:
        node, depth = waiting.pop()
        deepest = max(deepest, depth)
        if node is not None:
            waiting.extend((child, depth + 1) for child in node.iter(include_text=False))
    return deepest
