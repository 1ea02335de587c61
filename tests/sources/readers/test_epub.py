"""EPUB: the chapters of a book in reading order, from an archive that need not be believed."""

from __future__ import annotations

from pathlib import Path

import pytest

from bythebook.sources import Kind, Unreadable
from bythebook.sources.document import Draft, Part
from bythebook.sources.readers import sandbox
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


def read(file: Path, part: str) -> Draft:
    return sandbox.read(file, part=part, sign=lambda: None)


def test_each_file_of_the_reading_order_is_a_page(tmp_path: Path) -> None:
    file = written(tmp_path, epub({"b.xhtml": "<h1>B</h1><p>Oil.</p>", "text/a.xhtml": "<h1>A</h1><p>Wick.</p>"}))

    assert sandbox.chapters(file) == ["OEBPS/b.xhtml", "OEBPS/text/a.xhtml"]
    assert read(file, "OEBPS/b.xhtml") == Draft(
        "B", (Part(Kind.HEADING, "B", level=1), Part(Kind.PARAGRAPH, "Oil.")), module_name="The Lamp"
    )


def test_sections_keep_their_ids_and_code_its_lines(tmp_path: Path) -> None:
    body = '<h1>A</h1><section id="wick"><h2>Wick</h2><pre>trim()\n  twice()</pre></section>'
    draft = read(written(tmp_path, epub({"a.xhtml": body})), "OEBPS/a.xhtml")

    assert draft.parts[1:] == (
        Part(Kind.HEADING, "Wick", level=2, anchor="wick"),
        Part(Kind.CODE, "```\ntrim()\n  twice()\n```"),
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
def test_the_table_of_contents_names_a_page(tmp_path: Path, body: str, nav: dict[str, str], title: str) -> None:
    assert read(written(tmp_path, epub({"a.xhtml": body}, nav=nav)), "OEBPS/a.xhtml").title == title


def test_an_older_table_of_contents_is_read_too(tmp_path: Path) -> None:
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf"><manifest><item id="a" href="a.xhtml"/>'
        '<item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/></manifest>'
        '<spine toc="ncx"><itemref idref="a"/></spine></package>'
    )
    files = {"OEBPS/book.opf": package, "OEBPS/toc.ncx": NCX}
    file = written(tmp_path, epub({"a.xhtml": "<p>x</p>"}, files=files))

    assert read(file, "OEBPS/a.xhtml").title == "Of Oil"


def test_a_file_that_goes_on_has_the_title_of_the_one_before(tmp_path: Path) -> None:
    file = written(tmp_path, epub({"a.xhtml": "<p>x</p>", "b.xhtml": "<p>y</p>"}, nav={"a.xhtml": "Of Oil"}))

    assert read(file, "OEBPS/b.xhtml").title == "Of Oil"


def test_the_cover_and_the_contents_are_no_pages(tmp_path: Path) -> None:
    file = written(tmp_path, epub({"cover.xhtml": '<img src="c.png"/>', "a.xhtml": "<p>Oil.</p>"}))

    assert sandbox.chapters(file) == ["OEBPS/a.xhtml"]


def test_elements_closed_where_they_open_do_not_swallow_the_page(tmp_path: Path) -> None:
    body = '<a id="x"/><script src="a.js"/><p>Oil<br/>and wick.</p><div/><p>Fog.</p>'
    draft = read(written(tmp_path, epub({"a.xhtml": body})), "OEBPS/a.xhtml")

    assert [part.text for part in draft.parts] == ["Oil\nand wick.", "Fog."]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
def test_a_page_is_read_in_the_encoding_it_declares(tmp_path: Path, encoding: str) -> None:
    page = xhtml("<p>Größe</p>").replace("utf-8", encoding).encode(encoding)
    file = written(tmp_path, epub({"a.xhtml": ""}, files={"OEBPS/a.xhtml": page}))

    assert read(file, "OEBPS/a.xhtml").parts == (Part(Kind.PARAGRAPH, "Größe"),)


ENTITIES = '<!DOCTYPE x [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;">]>'
EXTERNAL = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
LOCKED = '<encryption><EncryptionMethod Algorithm="http://www.w3.org/2001/04/xmlenc#aes128-cbc"/></encryption>'
OBFUSCATED = '<encryption><EncryptionMethod Algorithm="http://www.idpf.org/2008/embedding"/></encryption>'


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(b"", "it is empty", id="empty"),
        pytest.param(b"PK\x03\x04", "it is damaged, or not what its name says (no zip file)", id="no zip"),
        pytest.param(zipped({"a": "b"}), "it is no EPUB: META-INF/container.xml is missing", id="another zip"),
        pytest.param(epub({"a": "<p>x</p>"}, files={"META-INF/container.xml": "<x"}), "'META-INF/container.xml' inside it is not valid XML", id="broken XML"),  # noqa: E501
        pytest.param(epub({"a": "<p>x</p>"}, files={"OEBPS/book.opf": ENTITIES + "<x>&b;</x>"}), "'OEBPS/book.opf' inside it defines XML entities", id="entities"),  # noqa: E501
        pytest.param(epub({"a": "<p>x</p>"}, files={"OEBPS/book.opf": EXTERNAL + "<x>&a;</x>"}), "'OEBPS/book.opf' inside it defines XML entities", id="entities from a file"),  # noqa: E501
        pytest.param(epub({"a": "<p>x</p>"}, files={"META-INF/encryption.xml": LOCKED}), "it is locked to a reading program (DRM)", id="locked"),  # noqa: E501
        pytest.param(epub({}), "there is no text in it", id="no chapters"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_says_why(tmp_path: Path, data: bytes, reason: str) -> None:
    with pytest.raises(Unreadable) as caught:
        sandbox.chapters(written(tmp_path, data))

    assert str(caught.value).startswith(reason)


def test_hidden_typefaces_do_not_lock_a_book(tmp_path: Path) -> None:
    file = written(tmp_path, epub({"a.xhtml": "<p>Oil.</p>"}, files={"META-INF/encryption.xml": OBFUSCATED}))

    assert sandbox.chapters(file) == ["OEBPS/a.xhtml"]


def test_a_path_that_leads_out_of_the_archive_is_looked_for_inside_of_it(tmp_path: Path) -> None:
    (tmp_path / "secret.xhtml").write_text(xhtml("<p>Secret.</p>"))
    file = written(tmp_path, epub({"../../secret.xhtml": "<p>Oil.</p>"}))
    (part,) = sandbox.chapters(file)

    with pytest.raises(Unreadable, match=r"'../secret.xhtml' is missing inside it"):
        read(file, part)
