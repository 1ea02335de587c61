"""AsciiDoc is read as Asciidoctor publishes it."""

from __future__ import annotations

import pytest

from bythebook.sources import BlockKind
from bythebook.sources.document import DocumentPart, ParsedDocument
from bythebook.sources.readers import asciidoc


def texts(source: str) -> list[str]:
    return [part.text for part in asciidoc.read(source).parts]


def test_a_document_has_a_title_sections_and_paragraphs() -> None:
    source = (
        "= The Lamp\nJane Doe <jane@example.test>\nv1.0, 2024\n:toc:\n\nIt *burns*\nall night.\n\n== Its Oil\n\nWhale."
    )

    assert asciidoc.read(source) == ParsedDocument(
        "The Lamp",
        (
            DocumentPart(BlockKind.HEADING, "The Lamp", level=1, anchor="_the_lamp"),
            DocumentPart(BlockKind.PARAGRAPH, "It burns all night."),
            DocumentPart(BlockKind.HEADING, "Its Oil", level=2, anchor="_its_oil"),
            DocumentPart(BlockKind.PARAGRAPH, "Whale."),
        ),
    )


@pytest.mark.parametrize(
    ("source", "anchor"),
    [
        pytest.param("== Its Oil & Wick!", "_its_oil_wick", id="made by Asciidoctor's rule"),
        pytest.param("== What's 1.2-3?", "_whats_1_2_3", id="dots and hyphens separate"),
        pytest.param("[#oil]\n== Its Oil", "oil", id="in a line above"),
        pytest.param("[[oil]]\n== Its Oil", "oil", id="in brackets above"),
        pytest.param("[[oil,The Oil]]\n== Its Oil", "oil", id="with words for references"),
        pytest.param("[id=oil]\n== Its Oil", "oil", id="by name"),
        pytest.param("== [[oil]]Its Oil", "oil", id="inside the title"),
        pytest.param(":idprefix:\n:idseparator: -\n\n== Its Oil", "its-oil", id="as Antora has them"),
    ],
)
def test_headings_have_the_ids_of_the_published_page(source: str, anchor: str) -> None:
    (part,) = asciidoc.read(source).parts

    assert part.anchor == anchor


def test_equal_headings_get_different_ids() -> None:
    assert [part.anchor for part in asciidoc.read("== Oil\n\n== Oil\n\n== Oil").parts] == ["_oil", "_oil_2", "_oil_3"]


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        pytest.param("*b* _i_ `m` #h# [.role]#r# H~2~O x^2^", "b i m h r H2O x2", id="marks"),
        pytest.param("a**b**c __d__e", "abc de", id="marks inside words"),
        pytest.param("2 * 3 * 4, snake_case_name, a#b", "2 * 3 * 4, snake_case_name, a#b", id="no marks"),
        pytest.param("\\*not bold*", "*not bold*", id="a mark that is none"),
        pytest.param("`+*{x}*+` +++<u>y</u>+++ pass:[*z*]", "*{x}* <u>y</u> *z*", id="as typed"),
        pytest.param("link:a.html[the *page*,window=_blank] https://x.test[X] https://y.test", "the page X https://y.test", id="links"),  # noqa: E501
        pytest.param("xref:a.adoc#b[There] and <<b>> and <<b,that one>>", "There and b and that one", id="references"),
        pytest.param("press kbd:[Ctrl+C], menu:File[Save > As] btn:[OK]", "press Ctrl+C, File › Save › As OK", id="keys"),  # noqa: E501
        pytest.param("\"`so`\" it's -- well...", "“so” it’s — well…", id="as printed"),
        pytest.param("((oil)) burns(((oil,whale))).image:a.png[x]", "oil burns.", id="what only the index has"),
        pytest.param(":v: 2\n\nVersion {v} {plus} {unknown} \\{v}", "Version 2 + {unknown} {v}", id="attributes"),
        pytest.param("one +\ntwo", "one\ntwo", id="a break on purpose"),
    ],
)  # fmt: skip
def test_removes_inline_markup(source: str, shown: str) -> None:
    assert texts(source) == [shown]


def test_footnotes_follow_their_paragraph() -> None:
    assert texts("Oil.footnote:[Of *whales*.] It burns.") == ["Oil. It burns.", "Of whales."]


@pytest.mark.parametrize(
    ("source", "code"),
    [
        pytest.param("[source,python]\n----\nlight()\n----", "```python\nlight()\n```", id="with a language"),
        pytest.param("[,ruby]\n----\nx\n----", "```ruby\nx\n```", id="with nothing but a language"),
        pytest.param(":source-language: go\n\n[source]\n----\nx\n----", "```go\nx\n```", id="of the document"),
        pytest.param("```rust\nfn x()\n```", "```rust\nfn x()\n```", id="as in Markdown"),
        pytest.param("....\n*x*\n....", "```\n*x*\n```", id="literal"),
        pytest.param(" a\n   b", "```\na\n  b\n```", id="indented"),
        pytest.param("[source,sh]\nls -l", "```sh\nls -l\n```", id="a paragraph"),
        pytest.param("----\n:a: b\n// c\nifdef::x[]\n----", "```\n:a: b\n// c\n```", id="attributes are code there"),
        pytest.param("----\na # <1>\nb <2>\nc <!--3-->\n----", "```\na\nb\nc\n```", id="without marks of notes"),
    ],
)
def test_keeps_code(source: str, code: str) -> None:
    assert texts(source) == [code]


def test_admonitions_begin_with_their_kind() -> None:
    assert texts("NOTE: Hot.\n\n[WARNING]\n====\nVery hot.\n\nReally.\n====\n\n[TIP]\nWait.") == [
        *("Note", "Hot.", "Warning", "Very hot.", "Really.", "Tip", "Wait."),
    ]


def test_lists_are_nested_and_contain_attached_blocks() -> None:
    source = (
        "* oil\n** whale\n* wick\n+\nof cotton\n\n. one\n. two\n.. deep\n\nThen.\n\nTerm:: Meaning\nOther::\n  below"
    )

    assert texts(source) == [
        "- oil\n  - whale\n- wick\n  of cotton\n  1. one\n  2. two\n     1. deep",
        "Then.",
        "- Term\n  Meaning\n- Other\n  below",
    ]


def test_code_attached_to_an_item_is_a_code_part() -> None:
    assert texts("* a\n+\n[source,sh]\n----\nls\n----\n* b") == ["- a", "```sh\nls\n```", "- b"]


def test_callouts_are_a_list() -> None:
    assert texts("----\nx <1>\n----\n<1> first\n<2> second") == ["```\nx\n```", "1. first\n2. second"]


@pytest.mark.parametrize(
    ("source", "table"),
    [
        pytest.param("|===\n|A |B\n\n|1 |2\n|===", "| A | B |\n| --- | --- |\n| 1 | 2 |", id="a row a line"),
        pytest.param('[cols="1,1"]\n|===\n|A\n|B\n|1\n|2\n|===', "| A | B |\n| --- | --- |\n| 1 | 2 |", id="a cell a line"),  # noqa: E501
        pytest.param("[cols=2*]\n|===\n2+|A\na|1\n|*2*\n|===", "| A | |\n| --- | --- |\n| 1 | 2 |", id="cells with a say"),  # noqa: E501
        pytest.param("|===\n|a\\|b |c\n|===", "| a\\|b | c |\n| --- | --- |", id="a bar inside"),
        pytest.param(",===\nA,B\n1,2\n,===", "| A | B |\n| --- | --- |\n| 1 | 2 |", id="with commas"),
    ],
)  # fmt: skip
def test_tables_have_rows_and_cells(source: str, table: str) -> None:
    assert texts(source) == [table]


def test_omits_invisible_content() -> None:
    source = (
        "// a\n\n////\nb\n////\n\ninclude::/etc/passwd[]\n\nifdef::x[]\nc\nendif::[]\n\nifndef::x[]\nshown\n"
        "endif::[]\n\nifdef::toc[d]\nifndef::toc[also]\n\n++++\n<b>e</b>\n++++\n\nimage::a.png[f]\n\n'''\n\n--\nopen\n--"
    )

    assert texts(source) == ["shown", "also", "open"]


def test_keeps_the_attribution_of_a_quote() -> None:
    assert texts(".Of light\n[quote, A Keeper, Diary]\n____\nIt *burns*.\n____") == [
        "Of light",
        "It burns.",
        "— A Keeper, Diary",
    ]
