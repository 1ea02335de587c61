"""Splitting pages into chunks."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bythebook.chunking.splitter import ChunkSizes, document_id, split_page
from bythebook.embeddings.local import local_embedder
from bythebook.sources import BlockKind, Page
from bythebook.sources.document import DocumentPart, compose
from tests.support.markdown_strategies import MARKDOWN, page_of
from tests.support.word_embedder import count_words

if TYPE_CHECKING:
    from bythebook.chunking import Chunk

SIZES = ChunkSizes(limit=40, headings=20)


def chunks(page: Page, sizes: ChunkSizes = SIZES) -> list[Chunk]:
    return list(split_page(page, count=count_words, sizes=sizes))


def prose(words: int, *, word: str = "lamp") -> str:
    """Sentences of ten words each."""
    sentences = [f"{word.capitalize()} {number} " + f"{word} " * 7 + "burns." for number in range(words // 10)]
    return " ".join(sentences)


def test_a_short_page_is_one_chunk_with_its_position() -> None:
    page = page_of("# The Lamp\n\nIt burns oil.\n\nIt is lit at dusk.")
    (chunk,) = chunks(page)

    assert chunk.text == "It burns oil.\n\nIt is lit at dusk."
    assert (chunk.url, chunk.title, chunk.chunk_index) == ("https://book.example/page", "The Lamp", 0)
    assert (chunk.start, chunk.end) == (10, 10 + len(chunk.text))
    assert (chunk.heading_hierarchy, chunk.anchor, chunk.token_count) == (("The Lamp",), "", 10)
    assert chunk.embedded == "The Lamp\nIt burns oil.\n\nIt is lit at dusk."


def test_each_section_has_its_own_chunk_with_its_headings_and_anchor() -> None:
    page = page_of("# Lamp\n\nA.\n\n## Oil\n\nB.\n\n### Colza\n\nC.\n\n## Wick\n\nD.\n\n# Other\n\nE.")

    assert [(chunk.text, chunk.heading_hierarchy, chunk.anchor) for chunk in chunks(page)] == [
        ("A.", ("Lamp",), ""),
        ("B.", ("Lamp", "Oil"), "oil"),
        ("C.", ("Lamp", "Oil", "Colza"), "colza"),
        ("D.", ("Lamp", "Wick"), "wick"),
        ("E.", ("Lamp", "Other"), ""),
    ]


def test_a_heading_without_text_makes_no_chunk() -> None:
    assert [chunk.text for chunk in chunks(page_of("# Lamp\n\n## Oil\n\n### Colza\n\nC.\n\n## Wick"))] == ["C."]
    assert chunks(page_of("# Lamp")) == []


def test_the_title_is_the_first_heading_of_every_chunk() -> None:
    (chunk,) = chunks(page_of("## Oil\n\nB.", title="Keeping"))
    assert chunk.heading_hierarchy == ("Keeping", "Oil")


@pytest.mark.parametrize(
    "markdown",
    [
        pytest.param(prose(400), id="many sentences"),
        pytest.param("lamp " * 500, id="a sentence without end"),
        pytest.param("lamp-" * 500, id="a line without a space"),
        pytest.param("- " + "lamp " * 300, id="an endless list item"),
        pytest.param("```\n" + "x = lamp + 1\n" * 60 + "```", id="long code"),
        pytest.param("```\n" + "lamp;" * 300 + "\n```", id="code on one line"),
        pytest.param("| a | b |\n|---|---|\n" + "| lamp | oil |\n" * 60, id="a long table"),
        pytest.param("| a | b |\n|---|---|\n| " + "lamp " * 200 + "| x |", id="an endless cell"),
        pytest.param("# " + "Lamp " * 100 + "\n\n" + prose(100), id="an endless heading"),
        pytest.param("。" * 300, id="marks only"),
        pytest.param("\n\n".join(["Short."] * 200), id="many short paragraphs"),
    ],
)
@pytest.mark.parametrize("overlap", [0, 12], ids=["no overlap", "overlap"])
def test_no_chunk_exceeds_the_limit_and_no_text_is_lost(markdown: str, overlap: int) -> None:
    page = page_of(markdown, title="T")
    cut = chunks(page, ChunkSizes(limit=40, headings=20, overlap=overlap))

    assert max(count_words(chunk.text) for chunk in cut) <= 40
    assert_whole(page, cut)


def test_splits_a_word_over_the_limit_by_characters() -> None:
    page = page_of("x" * 1000, title="T")
    cut = list(split_page(page, count=len, sizes=ChunkSizes(limit=60, headings=20)))

    assert max(len(chunk.text) for chunk in cut) <= 60
    assert "".join(chunk.text for chunk in cut) == "x" * 1000


def test_a_long_heading_path_reduces_the_limit_by_at_most_half() -> None:
    short, long = (
        chunks(page_of(f"# {heading}\n\n{prose(200)}"), ChunkSizes(limit=40, headings=4))
        for heading in ("T", "T " * 90)
    )

    assert 20 < max(chunk.token_count for chunk in short) <= 40
    assert max(chunk.token_count for chunk in long) <= 20


CODE = "```py\n" + "\n".join(f"lamp{number} = {number}" for number in range(8)) + "\n```"
TABLE = "| a | b |\n| --- | --- |\n" + "\n".join(f"| {number} | x |" for number in range(4))


@pytest.mark.parametrize("block", [pytest.param(CODE, id="code"), pytest.param(TABLE, id="a table")])
def test_a_block_that_fits_is_not_split(block: str) -> None:
    assert count_words(block) <= 40
    page = page_of("\n\n".join(["# T", prose(30), block, prose(30), block, prose(20)]))

    assert sum(chunk.text.count(block) for chunk in chunks(page)) == 2


def test_splits_long_code_between_lines_and_keeps_its_fence() -> None:
    code = "```py\n" + "\n".join(f"lamp{number} = {number}" for number in range(40)) + "\n```"
    first, *rest = chunks(page_of(code, title="T"))

    assert first.fence == ""
    assert first.text.startswith("```py\nlamp0 = 0\n")
    assert {chunk.fence for chunk in rest} == {"```py"}
    assert all(chunk.text.startswith("lamp") for chunk in rest)


SHORT_CODE = "```py\nlamp = light(oil, wick)\nlamp.burn()\n```"


@pytest.mark.parametrize(
    "lead",
    [
        pytest.param("Light it so:", id="a sentence with a colon"),
        pytest.param('=== "Linux"\n\n    Light it so:\n', id="a tab and a sentence"),
        pytest.param('```py title="lamp.py"', id="a title"),
        pytest.param("1. Fill the lamp\n2. Light it so:", id="the last item of a list"),
    ],
)
@pytest.mark.parametrize("words", range(10, 60, 10))
def test_what_introduces_code_stays_with_it(lead: str, words: int) -> None:
    code = SHORT_CODE.replace("```py", lead, 1) if "title" in lead else f"{lead}\n\n{SHORT_CODE}"
    cut = chunks(page_of(f"# T\n\n{prose(words)}\n\n{code}\n\n{prose(30)}"))
    (found,) = (chunk.text for chunk in cut if "lamp.burn()" in chunk.text)

    assert lead.strip().split("\n")[-1].strip().removeprefix('```py title="').rstrip('"') in found
    assert "Linux" not in lead or "Linux" in found


def test_a_lead_stays_with_the_first_lines_of_what_does_not_fit() -> None:
    code = "```py\n" + "\n".join(f"lamp{number} = {number}" for number in range(40)) + "\n```"
    cut = chunks(page_of(f"# T\n\n{prose(30)}\n\nLight them so:\n\n{code}"))

    (found,) = (chunk.text for chunk in cut if "Light them so:" in chunk.text)
    assert "Light them so:\n\n```py\nlamp0 = 0" in found
    assert not any(chunk.text.strip() == "```" for chunk in cut)


def test_splits_a_long_list_between_items() -> None:
    items = [f"- Lamp {number} has this:\n  oil and a wick that burns" for number in range(20)]
    cut = chunks(page_of("# T\n\n" + "\n".join(items).replace(":\n", ":\n\n")))

    assert len(cut) > 3
    assert all(chunk.text.startswith("- Lamp") and chunk.text.endswith("burns") for chunk in cut)


def test_the_later_parts_of_a_long_table_know_its_header() -> None:
    table = "| lamp | oil |\n| --- | --- |\n" + "\n".join(f"| {number} | colza |" for number in range(40))
    first, *rest = chunks(page_of(f"# T\n\n{table}"))

    assert first.table_header == ""
    assert len(rest) > 2
    assert {chunk.table_header for chunk in rest} == {"| lamp | oil |\n| --- | --- |"}
    assert all(chunk.text.startswith("| ") and "lamp" not in chunk.text for chunk in rest)


def test_a_chunk_knows_the_inline_code_of_its_text() -> None:
    page = page_of(f"# T\n\n{prose(30)}\n\n- Run `trim()`.\n  - Then `burn --now`\n\n| a |\n| --- |\n| `oil` |")
    found = [chunk.text[start:end] for chunk in chunks(page) for start, end in chunk.inline_code]

    assert found == ["trim()", "burn --now", "oil"]
    assert "`" not in page.text


def test_splits_a_long_section_into_chunks_of_similar_size() -> None:
    sizes = [chunk.token_count for chunk in chunks(page_of("# T\n\n" + prose(440)), ChunkSizes(limit=100, headings=20))]

    assert len(sizes) == 5
    assert max(sizes) - min(sizes) <= 22


def test_overlap_repeats_whole_sentences_of_the_previous_chunk() -> None:
    page = page_of("# T\n\n" + prose(100))
    cut = chunks(page, ChunkSizes(limit=40, headings=20, overlap=13))

    assert len(cut) > 2
    for before, after in pairwise(cut):
        shared = page.text[after.start : before.end]
        assert shared.startswith("Lamp")
        assert shared.endswith("burns.")
        assert count_words(shared) == 11


def test_without_overlap_chunks_share_nothing() -> None:
    cut = chunks(page_of("# T\n\n" + prose(200)))
    assert all(before.end <= after.start for before, after in pairwise(cut))


def test_ids_are_stable_and_start_with_the_document_id() -> None:
    assert [chunk.chunk_id for chunk in chunks(page_of("# T\n\nIt burns."))] == ["ada3c040-6949-547d-9e6c-e0cd3c2cb94d"]
    page = page_of("# T\n\n" + prose(100))
    ids = [chunk.chunk_id for chunk in chunks(page)]

    assert ids == [chunk.chunk_id for chunk in chunks(page)]
    assert {chunk_id[:18] for chunk_id in ids} == {document_id(page.url)[:18]}
    other = page_of("# T\n\n" + prose(100), url="https://book.example/other")
    assert not {chunk.chunk_id for chunk in chunks(other)} & set(ids)


def test_identical_paragraphs_have_different_ids() -> None:
    page = page_of("# T\n\n" + "\n\n".join([f"## Same\n\n{prose(20)}"] * 3))
    cut = chunks(page)

    assert len({chunk.chunk_id for chunk in cut}) == 3
    assert len({chunk.content_hash for chunk in cut}) == 1


def test_an_edit_changes_only_the_ids_of_affected_chunks() -> None:
    sections = [f"## Part {number}\n\n{prose(80, word=f'w{number}')}" for number in range(6)]
    before = chunks(page_of("# T\n\n" + "\n\n".join(sections)))
    edited = [*sections[:2], sections[2].replace("W2 0", "Edited"), "## New\n\nNew.", *sections[3:]]
    after = chunks(page_of("# T\n\n" + "\n\n".join(edited)))

    gone = [chunk for chunk in before if chunk.chunk_id not in {new.chunk_id for new in after}]
    come = [chunk for chunk in after if chunk.chunk_id not in {old.chunk_id for old in before}]
    assert [chunk.text.startswith("W2 0") for chunk in gone] == [True]
    assert [chunk.text[:6] for chunk in come] == ["Edited", "New."]


def test_the_same_words_below_another_heading_are_another_chunk() -> None:
    (old,), (new,) = (chunks(page_of(f"# T\n\n## {heading}\n\nIt burns.")) for heading in ("Oil", "Gas"))
    assert old.content_hash != new.content_hash
    assert old.chunk_id != new.chunk_id


SIZE = st.builds(ChunkSizes, limit=st.integers(16, 80), overlap=st.integers(0, 40), headings=st.integers(0, 20))


@settings(max_examples=120, deadline=None)
@given(markdown=MARKDOWN, sizes=SIZE)
def test_any_page_is_split_exactly_and_completely(markdown: str, sizes: ChunkSizes) -> None:
    page = page_of(markdown)
    cut = chunks(page, sizes)

    assert_whole(page, cut)
    assert all(0 < count_words(chunk.text) <= sizes.limit for chunk in cut if not chunk.text.isspace())
    assert all(chunk.token_count >= 1 for chunk in cut)
    assert len({chunk.chunk_id for chunk in cut}) == len(cut)
    assert [chunk.chunk_index for chunk in cut] == list(range(len(cut)))
    assert chunks(page, sizes) == cut


@settings(max_examples=60, deadline=None)
@given(markdown=MARKDOWN, sizes=SIZE)
def test_a_block_that_fits_is_whole_in_one_chunk(markdown: str, sizes: ChunkSizes) -> None:
    page = page_of(markdown, title="T")
    cut = chunks(page, sizes)

    for block in page.blocks:
        whole = (
            block.kind is not BlockKind.HEADING and count_words(page.text[block.start : block.end]) <= sizes.limit // 2
        )
        assert not whole or any(chunk.start <= block.start and block.end <= chunk.end for chunk in cut)


def assert_whole(page: Page, cut: list[Chunk]) -> None:
    """Every chunk has the right offsets, and together they contain every character that is not in a heading."""
    assert all(page.text[chunk.start : chunk.end] == chunk.text for chunk in cut)
    assert all(chunk.text.strip() for chunk in cut)
    held = {place for chunk in cut for place in range(chunk.start, chunk.end)}
    said = {
        place
        for block in page.blocks
        if block.kind is not BlockKind.HEADING
        for place in range(block.start, block.end)
        if not page.text[place].isspace()
    }
    assert "".join(page.text[place] for place in sorted(said - held)) == ""


async def test_the_limit_holds_in_the_tokens_of_the_real_model(model_folder: Path) -> None:
    strange = [
        "x" * 3000,
        "lamp-" * 400,
        "中文" * 500,
        "🚀" * 300,
        "e\u0301" * 400,
        "a_b." * 300,
        "https://b/" + "a/" * 400,
    ]
    async with local_embedder(model_folder) as embedder:
        for text in strange:
            page = page_of(text, title="T")
            cut = list(split_page(page, count=embedder.count_tokens, sizes=ChunkSizes(limit=40)))
            assert max(embedder.count_tokens(chunk.text) for chunk in cut) <= 40, text[:9]
            assert_whole(page, cut)


def test_each_page_of_a_pdf_has_its_own_chunks_below_the_same_heading() -> None:
    parts = [
        DocumentPart(BlockKind.HEADING, "Lamp", level=1, anchor="page=1"),
        DocumentPart(BlockKind.PARAGRAPH, "It burns.", anchor="page=1"),
        DocumentPart(BlockKind.PARAGRAPH, "It is bright.", anchor="page=2"),
        DocumentPart(BlockKind.PARAGRAPH, "It is hot.", anchor="page=2"),
        DocumentPart(BlockKind.HEADING, "Oil", level=2, anchor="page=2"),
        DocumentPart(BlockKind.PARAGRAPH, "It is whale oil.", anchor="page=3"),
    ]
    text, blocks = compose(parts)
    page = Page(url="https://book.example/lamp.pdf", title="Lamp", text=text, blocks=blocks)

    assert [(chunk.text, chunk.heading_hierarchy, chunk.anchor) for chunk in chunks(page)] == [
        ("It burns.", ("Lamp",), "page=1"),
        ("It is bright.\n\nIt is hot.", ("Lamp",), "page=2"),
        ("It is whale oil.", ("Lamp", "Oil"), "page=3"),
    ]


def test_a_page_inserted_into_a_pdf_changes_only_anchors() -> None:
    def written(first: int) -> Page:
        text, blocks = compose(
            DocumentPart(BlockKind.PARAGRAPH, prose(80, word=word), anchor=f"page={first + number}")
            for number, word in enumerate(("lamp", "oil", "horn"))
        )
        return Page(url="https://book.example/lamp.pdf", title="Lamp", text=text, blocks=blocks)

    before, after = chunks(written(1)), chunks(written(2))
    assert [(chunk.chunk_id, chunk.content_hash) for chunk in before] == [
        (chunk.chunk_id, chunk.content_hash) for chunk in after
    ]
    assert {chunk.anchor for chunk in after} == {"page=2", "page=3", "page=4"}
