"""EPUB: the chapters of a book in reading order, from an untrusted archive."""

from __future__ import annotations

from pathlib import Path

import pytest

from bythebook.sources import BlockKind, Unreadable, readers
from bythebook.sources.document import DocumentPart, ParsedDocument
from tests.support.sample_documents import epub, xhtml, zipped

NCX = (
    '<!DOCTYPE ncx PUBLIC "-//NISO//DTD ncx 2005-1//EN" "http://www.daisy.org/z3986/2005/ncx-2005-1.dtd">'
    '<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/"><navMap><navPoint><navLabel><text>Of Oil</text></navLabel>'
    '<content src="a.xhtml"/></navPoint></navMap></ncx>'
)


def written(tmp_path: Path, data: bytes) -> Path:
    file = tmp_path / "book.epub"
    file.write_bytes(data)
    return file


def read(file: Path, part: str) -> ParsedDocument:
    return readers.read_file(file, part=part, heartbeat=lambda: None)


def test_each_file_in_the_reading_order_is_a_page(tmp_path: Path) -> None:
    file = written(tmp_path, epub({"b.xhtml": "<h1>B</h1><p>Oil.</p>", "text/a.xhtml": "<h1>A</h1><p>Wick.</p>"}))

    assert readers.list_chapters(file) == ["OEBPS/b.xhtml", "OEBPS/text/a.xhtml"]
    assert read(file, "OEBPS/b.xhtml") == ParsedDocument(
        "B",
        (DocumentPart(BlockKind.HEADING, "B", level=1), DocumentPart(BlockKind.PARAGRAPH, "Oil.")),
        module_name="The Lamp",
    )


def test_keeps_section_ids_and_lines_of_code(tmp_path: Path) -> None:
    body = '<h1>A</h1><section id="wick"><h2>Wick</h2><pre>trim()\n  twice()</pre></section>'
    draft = read(written(tmp_path, epub({"a.xhtml": body})), "OEBPS/a.xhtml")

    assert draft.parts[1:] == (
        DocumentPart(BlockKind.HEADING, "Wick", level=2, anchor="wick"),
        DocumentPart(BlockKind.CODE, "```\ntrim()\n  twice()\n```"),
    )


@pytest.mark.parametrize(
    ("body", "nav", "title"),
    [
        pytest.param("<h1>Oil</h1><p>x</p>", {"a.xhtml": "1. Oil"}, "Oil", id="a heading the contents only number"),
        pytest.param("<h1>I</h1><p>x</p>", {"a.xhtml": "Of Oil"}, "Of Oil", id="the contents say more"),
        pytest.param(
            "<p>x</p>", {"a.xhtml#x": "Of Oil", "a.xhtml#y": "Of More"}, "Of Oil", id="the first entry counts"
        ),
        pytest.param("<h2>Oil</h2><p>x</p>", {}, "Oil", id="no contents"),
        pytest.param("<p>x</p>", {"../evil.xhtml": "Evil"}, "", id="contents that lead elsewhere"),
    ],
)
def test_the_title_comes_from_the_table_of_contents(tmp_path: Path, body: str, nav: dict[str, str], title: str) -> None:
    assert read(written(tmp_path, epub({"a.xhtml": body}, nav=nav)), "OEBPS/a.xhtml").title == title


def test_reads_an_ncx_table_of_contents(tmp_path: Path) -> None:
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf"><manifest><item id="a" href="a.xhtml"/>'
        '<item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/></manifest>'
        '<spine toc="ncx"><itemref idref="a"/></spine></package>'
    )
    files = {"OEBPS/book.opf": package, "OEBPS/toc.ncx": NCX}
    file = written(tmp_path, epub({"a.xhtml": "<p>x</p>"}, files=files))

    assert read(file, "OEBPS/a.xhtml").title == "Of Oil"


def test_a_continuation_file_has_the_title_of_the_file_before(tmp_path: Path) -> None:
    file = written(tmp_path, epub({"a.xhtml": "<p>x</p>", "b.xhtml": "<p>y</p>"}, nav={"a.xhtml": "Of Oil"}))

    assert read(file, "OEBPS/b.xhtml").title == "Of Oil"


def test_the_cover_and_the_contents_are_not_pages(tmp_path: Path) -> None:
    file = written(tmp_path, epub({"cover.xhtml": '<img src="c.png"/>', "a.xhtml": "<p>Oil.</p>"}))

    assert readers.list_chapters(file) == ["OEBPS/a.xhtml"]


def test_self_closing_elements_do_not_contain_the_rest_of_the_page(tmp_path: Path) -> None:
    body = '<a id="x"/><script src="a.js"/><p>Oil<br/>and wick.</p><div/><p>Fog.</p>'
    draft = read(written(tmp_path, epub({"a.xhtml": body})), "OEBPS/a.xhtml")

    assert [part.text for part in draft.parts] == ["Oil\nand wick.", "Fog."]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
def test_decodes_a_page_by_its_declared_encoding(tmp_path: Path, encoding: str) -> None:
    page = xhtml("<p>Größe</p>").replace("utf-8", encoding).encode(encoding)
    file = written(tmp_path, epub({"a.xhtml": ""}, files={"OEBPS/a.xhtml": page}))

    assert read(file, "OEBPS/a.xhtml").parts == (DocumentPart(BlockKind.PARAGRAPH, "Größe"),)


ENTITIES = '<!DOCTYPE x [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;">]>'
EXTERNAL = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
LOCKED = '<encryption><EncryptionMethod Algorithm="http://www.w3.org/2001/04/xmlenc#aes128-cbc"/></encryption>'
OBFUSCATED = '<encryption><EncryptionMethod Algorithm="http://www.idpf.org/2008/embedding"/></encryption>'


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(b"", "it is empty", id="empty"),
        pytest.param(b"PK\x03\x04", "it is damaged, or not what its name says (no zip file)", id="no zip"),
        pytest.param(zipped({"a": "b"}), "it is not an EPUB: META-INF/container.xml is missing", id="another zip"),
        pytest.param(epub({"a": "<p>x</p>"}, files={"META-INF/container.xml": "<x"}), "'META-INF/container.xml' inside it is not valid XML", id="broken XML"),  # noqa: E501
        pytest.param(epub({"a": "<p>x</p>"}, files={"OEBPS/book.opf": ENTITIES + "<x>&b;</x>"}), "'OEBPS/book.opf' inside it defines XML entities", id="entities"),  # noqa: E501
        pytest.param(epub({"a": "<p>x</p>"}, files={"OEBPS/book.opf": EXTERNAL + "<x>&a;</x>"}), "'OEBPS/book.opf' inside it defines XML entities", id="entities from a file"),  # noqa: E501
        pytest.param(epub({"a": "<p>x</p>"}, files={"META-INF/encryption.xml": LOCKED}), "it is locked to a reading program (DRM)", id="locked"),  # noqa: E501
        pytest.param(epub({}), "there is no text in it", id="no chapters"),
    ],
)  # fmt: skip
def test_reports_why_a_file_cannot_be_read(tmp_path: Path, data: bytes, reason: str) -> None:
    with pytest.raises(Unreadable) as caught:
        readers.list_chapters(written(tmp_path, data))

    assert str(caught.value).startswith(reason)


def test_obfuscated_fonts_do_not_make_a_book_unreadable(tmp_path: Path) -> None:
    file = written(tmp_path, epub({"a.xhtml": "<p>Oil.</p>"}, files={"META-INF/encryption.xml": OBFUSCATED}))

    assert readers.list_chapters(file) == ["OEBPS/a.xhtml"]


def test_resolves_a_path_that_leaves_the_archive_inside_of_it(tmp_path: Path) -> None:
    (tmp_path / "secret.xhtml").write_text(xhtml("<p>Secret.</p>"))
    file = written(tmp_path, epub({"../../secret.xhtml": "<p>Oil.</p>"}))
    (part,) = readers.list_chapters(file)

    with pytest.raises(Unreadable, match=r"'../secret.xhtml' is missing inside it"):
        read(file, part)
