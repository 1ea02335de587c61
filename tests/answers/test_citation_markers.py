"""Citation markers of every style become passage numbers, and other links are removed."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from bythebook.answers.citation_markers import CitationResolver, render_numbers
from bythebook.answers.sanitizer import AnswerPreview, sanitize
from tests.support.retrieval_results import found

RESULTS = found("Nodes talk.", "Topics carry messages.", "Isaac Sim is a simulator.")
BOOK = "https://book.example/docs"


def cleaned(text: str) -> str:
    return render_numbers(sanitize(text, CitationResolver(RESULTS, aliases=text)))


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        pytest.param("So [1].", "So [1].", id="a number in brackets"),
        pytest.param("So[1].", "So[1].", id="without a space"),
        pytest.param("So [1][2].", "So [1] [2].", id="two beside each other"),
        pytest.param("So [1, 2].", "So [1][2].", id="a list"),
        pytest.param("So [1-3].", "So [1][2][3].", id="a range"),
        pytest.param("So [9].", "So.", id="a passage never shown is not cited"),
        pytest.param("So [2, 9].", "So [2].", id="of several, those that were shown"),
        pytest.param("So (1).", "So [1].", id="in parentheses at the end"),
        pytest.param("So ([1], [2]).", "So [1][2].", id="brackets in parentheses"),
        pytest.param("It began (2019). f(1) too", "It began (2019). f(1) too", id="a year and a call are no citations"),
        pytest.param("So【1】.", "So[1].", id="lenticular"),
        pytest.param("So【2†source】.", "So[2].", id="lenticular with a dagger"),
        pytest.param("So【2:0†source】.", "So[2].", id="lenticular with a place"),
        pytest.param("So [^1].", "So [1].", id="a footnote by number"),
        pytest.param(f"So [^a].\n\n[^a]: Topics, {BOOK}/p2.html", "So [2].\n\n", id="a footnote by address"),
        pytest.param("So [^1].\n\n[^1]: Isaac Sim", "So [3].\n\n", id="a footnote by title"),
        pytest.param("So [^z].\n\n[^z]: A blog", "So.\n\n", id="a footnote of something else"),
        pytest.param(f"So [Source: Topics]({BOOK}/p2.html).", "So [2].", id="our own style"),
        pytest.param(f"The [guide]({BOOK}/p1.html#start) says.", "The guide[1] says.", id="a link to a passage"),
        pytest.param("So [Source: Topics](https://evil.example).", "So [2].", id="the title right, the address not"),
        pytest.param("So [Source: A blog](https://evil.example).", "So.", id="a source never shown"),
        pytest.param("So.\nSource: Isaac Sim\nMore.", "So.\n[3]\nMore.", id="a line that names its source"),
        pytest.param("So (Source: Topics).", "So [2].", id="a source in parentheses"),
        pytest.param(f"See {BOOK}/p3.html.", "See [3].", id="a bare address of a passage"),
        pytest.param(f"See <{BOOK}/p3.html>.", "See [3].", id="an autolink of a passage"),
        pytest.param("So <cite>1</cite>.", "So [1].", id="a tag for citing"),
        pytest.param("So<sup>2</sup>.", "So[2].", id="raised by a tag"),
        pytest.param("A node talks.¹ Topics² too", "A node talks.[1] Topics[2] too", id="raised digits"),
        pytest.param("9 m² and x³ stay", "9 m² and x³ stay", id="powers are no citations"),
        pytest.param("So [Source 2].", "So [2].", id="source and number"),
        pytest.param(
            "So [1].\n\n**Sources:**\n- [1] ROS 2 Basics\n- https://x.example", "So [1].\n\n", id="sources below"
        ),
        pytest.param(f"So [1].\n\n## References\n1. {BOOK}/p2.html", "So [2].\n\n", id="numbers of its own below"),
        pytest.param(
            "## References\n\nA reference points.", "## References\n\nA reference points.", id="a real section"
        ),
        pytest.param("Sources: [1], [3]", "[1][3]\n", id="sources on one line"),
    ],
)
def test_citation_markers_are_resolved(said: str, shown: str) -> None:
    assert cleaned(said) == shown


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        pytest.param("A [link](https://evil.example/a(b)c) here.", "A link here.", id="inline"),
        pytest.param("A [link][x].\n\n[x]: https://evil.example", "A link.\n\n", id="by reference"),
        pytest.param("![alt](https://evil.example/x.png)So.", "So.", id="image"),
        pytest.param("[![alt](a.png)](b)So.", "So.", id="image in a link"),
        pytest.param("Visit https://evil.example/?q=secret now.", "Visit now.", id="bare"),
        pytest.param("Visit www.evil.example.", "Visit.", id="without a scheme"),
        pytest.param("Go <https://evil.example>.", "Go.", id="autolink"),
        pytest.param(
            "Open http://localhost:8000/docs.", "Open `http://localhost:8000/docs`.", id="the reader's machine"
        ),
        pytest.param("Mail a@evil.example.", "Mail a`@evil.example`.", id="mail"),
        pytest.param("<img src=x onerror=alert(1)>So.", "So.", id="tag"),
        pytest.param("<script>alert(1)</script>So.", "So.", id="script with what it holds"),
        pytest.param('<a href="https://evil.example">So</a>.', "So.", id="anchor"),
        pytest.param("So<!-- [a](b) -->.", "So.", id="comment"),
        pytest.param("<img src=x", "< img src=x", id="unfinished tag"),
        pytest.param("[a](b", "[a] (b", id="unfinished link"),
        pytest.param("Use <folder> if a < b.", "Use `<folder>` if a < b.", id="a placeholder stays, as code"),
        pytest.param("`[a](b)` and x[0]", "`[a](b)` and x[0]", id="code stays"),
        pytest.param("```\n[a](b) [1]\n```\n", "```\n[a](b) [1]\n```\n", id="a code block stays"),
        pytest.param("| `a | [b](c)` |", "| a | b |", id="a cell ends code"),
        pytest.param("- [ ] do\n- [x] done", "- [ ] do\n- [x] done", id="boxes to tick stay"),
        pytest.param("a\u200bb\U000f0001c", "abc", id="characters nobody sees"),
    ],
)
def test_links_that_are_not_citations_are_removed(said: str, shown: str) -> None:
    assert cleaned(said) == shown


PIECES = [
    "[", "]", "(", ")", "<", ">", "!", "`", "``", "```", "~~~", "\n", "\n\n", "    ", "   ", " ", "- ", "1. ", "> ",
    "|", "\\", "http://evil.example/x", "https://book.example/docs/p1.html", "www.evil.example", "a@b.co",
    "[a](http://e.example)", "![i](http://e.example)", "[1]", "[^1]", "[^1]: x", "[r]: http://e.example", "[a][r]",
    "<img src=x>", "<a href='", "'>", "</a>", "<!--", "-->", "<script>", "</script>", "<cite>1</cite>", "<sup>",
    "word", "Word. ", "*", "**", "_", "¹", "【1†s】", "【", "】", "Sources:\n", "Source: Topics", "(1)", "(see ", ":",
    "&lt;", "javascript:", "\t", "#", "\u200b", "=", '"', "'", "\r", "`a | b`", "` |", "|---|---|\n", "| a | b |\n",
    "An", "ht", "tp", "s://e.example", "ww", "w.evil.example", "mail", "to:a@b.co", "é", "@b.co", "@b>", "<=",
]  # fmt: skip
texts = st.lists(st.sampled_from(PIECES), max_size=14).map("".join) | st.text(max_size=40)


@settings(max_examples=400, deadline=None)
@example(text="\\a@b.co`</a>` |")
@example(text="\\a@b.co`![i](http://e.example)`")
@example(text="\\www.evil.example``[a](http://e.example)``")
@example(text="[][^1]: x\n【1†s】")
@example(text="<=@b.co>")
@example(text="<=`x`@b>")
@example(text="<=``@b>``")
@example(text="<=@b>https://book.example/docs/p1.html")
@example(text="~~~`a | b`<script>Sources:\n|---|---|\n")
@example(text="```|<cite>1</cite>Sources:\n|---|---|\n")
@given(text=texts)
def test_sanitized_text_renders_without_links_images_or_tags(text: str) -> None:
    shown = AnswerPreview(RESULTS)
    tokens = MarkdownIt("commonmark").enable("table").parse(shown.feed(text) + shown.end())
    kinds = {token.type for token in tokens} | {inner.type for token in tokens for inner in token.children or ()}
    assert not kinds & {"link_open", "image", "html_inline", "html_block"}


@settings(max_examples=300, deadline=None)
@given(text=texts, cuts=st.lists(st.integers(0, 200), max_size=6))
def test_the_result_does_not_depend_on_how_the_text_is_split(text: str, cuts: list[int]) -> None:
    whole, pieces = AnswerPreview(RESULTS), AnswerPreview(RESULTS)
    edges = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    parts = [pieces.feed(text[start:end]) for start, end in pairwise(edges)]
    assert "".join([*parts, pieces.end()]) == whole.feed(text) + whole.end()


def test_an_unfinished_link_is_held_back() -> None:
    preview = AnswerPreview(RESULTS)
    shown = [
        preview.feed(delta) for delta in ["See [the", " guide](https://ev", "il.example) and", " [", "1", "]", ". "]
    ]
    assert [*shown, preview.end()] == ["See", "", " the guide and", "", "", "", " [1].", ""]


def test_a_word_is_released_unless_it_may_become_a_url() -> None:
    preview = AnswerPreview(RESULTS)
    shown = [preview.feed(delta) for delta in ["An", "swer", " ht", "ml", " https", "://evil.example", " a", "@b.co"]]
    assert [*shown, preview.end()] == ["An", "swer", "", " html", "", "", " a", "", "`@b.co`"]


def test_unclosed_brackets_are_scanned_in_bounded_time() -> None:
    assert cleaned("[" * 5000) == "[" * 5000
