"""PDF, EPUB, Word and notebook files in a folder: their pages, URLs and citations."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bythebook.chunking.splitter import ChunkSizes, split_page
from bythebook.sources import ListedPage, Page, SkippedPage, Unreadable, readers
from bythebook.sources.document import compose
from bythebook.sources.folder import Folder
from tests.support.sample_documents import Set, docx, epub, notebook, para, pdf, running
from tests.support.word_embedder import count_words

SITE = "https://book.example.test"
SENTENCE = "The keeper climbs the tower every night and trims the wick until it burns clear and bright"


async def listing(folder: Folder) -> list[ListedPage | SkippedPage]:
    return [item async for item in folder.listing()]


async def pages(folder: Folder) -> list[Page]:
    return [await folder.read(item) for item in await listing(folder) if isinstance(item, ListedPage)]


async def test_every_binary_format_is_listed_with_its_url(tmp_path: Path) -> None:
    (tmp_path / "manuals").mkdir()
    (tmp_path / "manuals" / "lamp.pdf").write_bytes(pdf(running("It burns."), title="The Lamp"))
    (tmp_path / "horn.docx").write_bytes(docx(para("It is loud.")))
    (tmp_path / "fog.ipynb").write_text(notebook({"cell_type": "markdown", "source": "# Fog\n\nIt is thick."}))
    (tmp_path / "oil.adoc").write_text("= Oil\n\nIt burns.")

    found = await pages(Folder(tmp_path, site_url=SITE))

    assert [(page.url, page.title, page.module_name, page.chapter_id) for page in found] == [
        (f"{SITE}/fog", "Fog", "", "fog"),
        (f"{SITE}/horn.docx", "Horn", "", "horn"),
        (f"{SITE}/manuals/lamp.pdf", "The Lamp", "Manuals", "manuals/lamp"),
        (f"{SITE}/oil.html", "Oil", "", "oil"),
    ]


@pytest.mark.parametrize("alone", [False, True], ids=["in a folder", "on its own"])
async def test_each_chapter_of_an_epub_is_a_page(tmp_path: Path, alone: bool) -> None:
    file = tmp_path / "lamp book.epub"
    file.write_bytes(
        epub(
            {"a.xhtml": "<h1>Oil</h1><p>It burns.</p>", "sub/b c.xhtml": "<p>It is cotton.</p>"},
            nav={"sub/b c.xhtml": "Wick"},
        )
    )
    folder = Folder(file if alone else tmp_path, site_url=SITE)

    assert [item.path for item in await listing(folder)] == [
        "lamp book.epub/OEBPS/a.xhtml",
        "lamp book.epub/OEBPS/sub/b c.xhtml",
    ]
    assert [(page.url, page.title, page.module_name, page.text) for page in await pages(folder)] == [
        (f"{SITE}/lamp%20book.epub#OEBPS/a.xhtml", "Oil", "The Lamp", "Oil\n\nIt burns."),
        (f"{SITE}/lamp%20book.epub#OEBPS/sub/b%20c.xhtml", "Wick", "The Lamp", "It is cotton."),
    ]


async def test_reports_an_unreadable_document_and_reads_the_others(tmp_path: Path) -> None:
    (tmp_path / "a.epub").write_bytes(b"PK")
    (tmp_path / "b.pdf").write_bytes(b"%PDF-1.4")
    (tmp_path / "c.pdf").write_bytes(pdf(running("It burns.")))
    folder = Folder(tmp_path)
    skipped, broken, good = await listing(folder)

    assert skipped == SkippedPage("a.epub", "it is damaged, or not what its name says (no zip file); save it again")
    assert isinstance(broken, ListedPage)
    assert isinstance(good, ListedPage)
    with pytest.raises(Unreadable, match="it is damaged, or not a PDF"):
        await folder.read(broken)
    assert (await folder.read(good)).text == "It burns."


async def test_opens_an_epub_again_only_if_it_has_changed(tmp_path: Path) -> None:
    file = tmp_path / "a.epub"
    file.write_bytes(epub({"a.xhtml": "<p>It burns.</p>"}))
    folder = Folder(tmp_path)
    before = await listing(folder)
    # Opening it again would fail.
    stat = file.stat()
    file.write_bytes(b"x" * stat.st_size)
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))

    assert await listing(folder) == before
    file.write_bytes(epub({"b.xhtml": "<p>It burns.</p>"}))
    assert [item.path for item in await listing(folder)] == ["a.epub/OEBPS/b.xhtml"]


async def test_an_epub_itself_is_not_a_page(tmp_path: Path) -> None:
    (tmp_path / "a.epub").write_bytes(epub({"a.xhtml": "<p>It burns.</p>"}))

    with pytest.raises(Unreadable, match="its chapters are pages"):
        await Folder(tmp_path).read(ListedPage("", "a.epub", ""))


async def test_the_size_limit_of_binary_documents_is_higher(tmp_path: Path) -> None:
    file = tmp_path / "a.pdf"
    file.write_bytes(pdf(running("It burns.")))
    os.truncate(file, 200_000_001)

    assert await listing(Folder(tmp_path)) == [
        SkippedPage("a.pdf", "it has 200 MB; a page has at most 200 MB. Split it"),
    ]


TEXTS = st.lists(
    st.sampled_from(
        [*SENTENCE.split(), "infor-", "mation", "- oil", "1. wick", "Lamp.", "(so)", "a|b", "\\", "", "x" * 80]
    ),
    max_size=12,
).map(" ".join)
SETS = st.builds(
    Set,
    text=TEXTS,
    x=st.sampled_from([72.0, 90.0, 320.0]),
    y=st.integers(2, 64).map(lambda line: line * 12.0),
    size=st.sampled_from([8.0, 10.0, 10.0, 10.0, 14.0, 20.0]),
    font=st.sampled_from(["plain", "plain", "bold", "mono"]),
    upwards=st.booleans() | st.just(False),
)  # fmt: skip
PDFS = st.lists(st.lists(SETS, max_size=12), min_size=1, max_size=4).map(lambda written: ("a.pdf", pdf(*written)))
WORDS = st.lists(
    st.builds(para, TEXTS, style=st.sampled_from(["", "H", "C"]))
    | TEXTS.map(lambda text: f"<w:tbl><w:tr><w:tc>{para(text)}</w:tc><w:tc>{para('b')}</w:tc></w:tr></w:tbl>"),
    max_size=8,
).map(
    lambda body: (
        "a.docx",
        docx(
            "".join(body),
            styles='<w:style w:styleId="H"><w:name w:val="heading 2"/></w:style>'
            '<w:style w:styleId="C"><w:name w:val="code"/></w:style>',
        ),
    )
)


@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(made=PDFS | WORDS)
def test_every_chunk_occurs_at_its_offsets_in_its_page(tmp_path: Path, made: tuple[str, bytes]) -> None:
    name, data = made
    file = tmp_path / name
    file.write_bytes(data)
    try:
        draft = readers.read_file(file, part="", heartbeat=lambda: None)
    except Unreadable as exc:
        if str(exc) != "it has no text, only pictures of it; run OCR first":
            raise
        return
    text, blocks = compose(draft.parts)
    page = Page(url="https://book.example/a", title=draft.title or "A", text=text, blocks=blocks)

    assert text == "\n\n".join(text[block.start : block.end] for block in blocks)
    for chunk in split_page(page, count=count_words, sizes=ChunkSizes(limit=40, headings=20)):
        assert page.text[chunk.start : chunk.end] == chunk.text
        inside = {block.anchor for block in blocks if block.start < chunk.end and block.end > chunk.start}
        assert inside == {chunk.anchor}
