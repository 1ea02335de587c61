"""Links with text fragments."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bythebook.retrieval.text_fragments import build_link, build_text_fragment, title_with_page

PAGE = "https://book.example/lamp"


@pytest.mark.parametrize(
    ("words", "fragment"),
    [
        pytest.param("It burns.", "It%20burns.", id="short"),
        pytest.param("One two three four five six seven eight nine ten", "One%20two%20three%20four%20five%20six%20seven%20eight%20nine%20ten", id="ten words"),  # noqa: E501
        pytest.param("1 2 3 4 5 6 7 8 9 10 11", "1%202%203%204%205,7%208%209%2010%2011", id="long: both ends"),
        pytest.param("Oil, wick", "Oil%2C%20wick", id="a comma"),
        pytest.param("Twenty-one", "Twenty%2Done", id="a hyphen"),
        pytest.param("R&D", "R%26D", id="an ampersand"),
        pytest.param("100% of #1", "100%25%20of%20%231", id="a percent sign and a hash"),
        pytest.param("Größe 中文", "Gr%C3%B6%C3%9Fe%20%E4%B8%AD%E6%96%87", id="other alphabets"),
        pytest.param("A  wide\tspace", "A%20wide%20space", id="white space as a browser shows it"),
        pytest.param("Bring:\n- oil\n- a wick", "Bring%3A,a%20wick", id="a list without its marks"),
        pytest.param("1. oil", "oil", id="a numbered item"),
        pytest.param("| Red | Danger |", "Red,Danger", id="a table row"),
        pytest.param("| Flag | Is |\n| --- | --- |\n| Red | Bad |", "Flag,Bad", id="a table"),
        pytest.param("| | |", "", id="an empty row"),
        pytest.param("```py\nx = 1\n```", "x%20%3D%201", id="code without its fences"),
        pytest.param("```py\nx = 1\ny = 2\n```", "x%20%3D%201,y%20%3D%202", id="code of two lines"),
        pytest.param("First line\nsecond line", "First%20line,second%20line", id="two lines"),
        pytest.param("```\n```", "", id="fences only"),
        pytest.param("", "", id="nothing"),
    ],
)  # fmt: skip
def test_build_text_fragment(words: str, fragment: str) -> None:
    assert build_text_fragment(words) == fragment


@pytest.mark.parametrize(
    ("anchor", "words", "url"),
    [
        pytest.param("oil", "Burn it.", f"{PAGE}#oil:~:text=Burn%20it.", id="anchor and words"),
        pytest.param("", "Burn it.", f"{PAGE}#:~:text=Burn%20it.", id="words only"),
        pytest.param("oil", "", f"{PAGE}#oil", id="anchor only"),
        pytest.param("", "", PAGE, id="neither"),
        pytest.param("größe-1", "", f"{PAGE}#gr%C3%B6%C3%9Fe-1", id="an anchor in another alphabet"),
    ],
)
def test_build_link(anchor: str, words: str, url: str) -> None:
    assert build_link(PAGE, anchor=anchor, words=words) == url


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=120), st.text(alphabet="abcß-_.中", max_size=10))
def test_any_quote_makes_a_link_that_parses_back(words: str, anchor: str) -> None:
    made = build_link(PAGE, anchor=anchor, words=words)
    fragment, _, directive = urlsplit(made).fragment.partition(":~:text=")

    assert unquote(fragment) == anchor
    assert made.isascii()
    assert not set(made) & set(" \n\"'<>")
    assert directive.count(",") <= 1
    assert "-" not in directive
    for part in directive.split(","):
        assert set(unquote(part).replace("|", " ").split()) <= set(words.replace("|", " ").split())


@pytest.mark.parametrize(
    ("url", "anchor", "whole"),
    [
        pytest.param("https://a.test/b.pdf", "page=12", "https://a.test/b.pdf#page=12", id="the page of a PDF"),
        pytest.param(
            "https://a.test/b.epub#c.xhtml", "oil", "https://a.test/b.epub#c.xhtml", id="the chapter of an EPUB"
        ),
    ],
)
def test_a_link_to_a_document_opens_its_page_or_chapter(url: str, anchor: str, whole: str) -> None:
    assert build_link(url, anchor=anchor, words="It burns.") == whole


def test_the_title_of_a_citation_names_the_page_of_a_pdf() -> None:
    assert title_with_page("The Lamp", anchor="page=12") == "The Lamp, page 12"
    assert title_with_page("The Lamp", anchor="page-12") == "The Lamp"
