"""Word: headings, lists, tables, code and footnotes of a .docx file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from bythebook.sources import BlockKind, Unreadable, readers
from bythebook.sources.document import DocumentPart, ParsedDocument
from tests.support.sample_documents import WORD, docx, para, zipped

STYLES = (
    '<w:style w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style>'
    '<w:style w:styleId="H2"><w:name w:val="heading 2"/></w:style>'
    '<w:style w:styleId="Mine"><w:name w:val="My Heading"/><w:basedOn w:val="H2"/></w:style>'
    '<w:style w:styleId="T"><w:name w:val="Title"/></w:style>'
    '<w:style w:styleId="Outlined"><w:name w:val="x"/><w:pPr><w:outlineLvl w:val="2"/></w:pPr></w:style>'
    '<w:style w:styleId="C"><w:name w:val="Source Code"/></w:style>'
    '<w:style w:styleId="TOC1"><w:name w:val="toc 1"/></w:style>'
    '<w:style w:styleId="Loop"><w:name w:val="loop"/><w:basedOn w:val="Loop"/></w:style>'
)
NUMBERING = (
    '<w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/></w:lvl>'
    '<w:lvl w:ilvl="1"><w:numFmt w:val="decimal"/></w:lvl></w:abstractNum>'
    '<w:abstractNum w:abstractNumId="1"><w:lvl w:ilvl="0"><w:numFmt w:val="decimal"/></w:lvl></w:abstractNum>'
    '<w:num w:numId="5"><w:abstractNumId w:val="0"/></w:num><w:num w:numId="6"><w:abstractNumId w:val="1"/></w:num>'
)


def read(tmp_path: Path, data: bytes) -> ParsedDocument:
    file = tmp_path / "a.docx"
    file.write_bytes(data)
    return readers.read_file(file, part="", heartbeat=lambda: None)


def parts(tmp_path: Path, body: str, files: Mapping[str, str | bytes] | None = None) -> tuple[DocumentPart, ...]:
    return read(tmp_path, docx(body, styles=STYLES, numbering=NUMBERING, files=files)).parts


def item(text: str, *, of: int, depth: int = 0) -> str:
    return para(text, inside=f'<w:numPr><w:ilvl w:val="{depth}"/><w:numId w:val="{of}"/></w:numPr>')


def run(inside: str, *, about: str = "") -> str:
    return f"<w:r><w:rPr>{about}</w:rPr>{inside}</w:r>"


def test_recognises_headings_by_style_in_any_language(tmp_path: Path) -> None:
    body = (
        para("The Lamp", style="berschrift1")
        + para("Its oil", style="Mine")
        + para("Whale oil", style="Outlined")
        + para("It burns.", style="Loop")
        + para("By hand", inside='<w:outlineLvl w:val="1"/>')
    )

    assert read(tmp_path, docx(body, styles=STYLES)) == ParsedDocument(
        "The Lamp",
        (
            DocumentPart(BlockKind.HEADING, "The Lamp", level=1),
            DocumentPart(BlockKind.HEADING, "Its oil", level=2),
            DocumentPart(BlockKind.HEADING, "Whale oil", level=3),
            DocumentPart(BlockKind.PARAGRAPH, "It burns."),
            DocumentPart(BlockKind.HEADING, "By hand", level=2),
        ),
    )


@pytest.mark.parametrize(
    ("body", "said", "title"),
    [
        pytest.param(para("Light", style="T") + para("Lamp", style="berschrift1"), "Core", "Light", id="its title"),
        pytest.param(para("Lamp", style="berschrift1"), "Core", "Lamp", id="its first heading"),
        pytest.param(para("x"), "Core", "Core", id="what the file says"),
        pytest.param(para("x"), "Document1", "", id="not what a program says"),
    ],
)
def test_prefers_the_title_closest_to_the_text(tmp_path: Path, body: str, said: str, title: str) -> None:
    core = f'<c xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{said}</dc:title></c>'

    assert read(tmp_path, docx(body, styles=STYLES, files={"docProps/core.xml": core})).title == title


def test_lists_are_numbered_and_nested(tmp_path: Path) -> None:
    body = (
        item("oil", of=5)
        + item("first", of=5, depth=1)
        + item("second", of=5, depth=1)
        + item("wick", of=5)
        + para("Then:")
        + item("Climb.", of=6)
        + item("Light it.", of=6)
    )

    assert [part.text for part in parts(tmp_path, body)] == [
        "- oil\n  1. first\n  2. second\n- wick",
        "Then:",
        "1. Climb.\n2. Light it.",
    ]


def test_recognises_code_by_style_or_font(tmp_path: Path) -> None:
    typed = '<w:rFonts w:ascii="Courier New"/>'
    body = (
        para("def light():", style="C")
        + para("    return lamp", style="C")
        + para("And:")
        + f"<w:p>{run('<w:t>ls -l</w:t>', about=typed)}</w:p>"
        + f"<w:p>{run('<w:t>Run </w:t>')}{run('<w:t>ls</w:t>', about=typed)}</w:p>"
    )

    assert parts(tmp_path, body) == (
        DocumentPart(BlockKind.CODE, "```\ndef light():\n    return lamp\n```"),
        DocumentPart(BlockKind.PARAGRAPH, "And:"),
        DocumentPart(BlockKind.CODE, "```\nls -l\n```"),
        DocumentPart(BlockKind.PARAGRAPH, "Run ls"),
    )


def test_reads_tables_and_treats_nested_ones_as_layout(tmp_path: Path) -> None:
    def table(*rows: list[str]) -> str:
        cells = ("".join(f"<w:tc>{cell}</w:tc>" for cell in row) for row in rows)
        return "<w:tbl>" + "".join(f"<w:tr>{row}</w:tr>" for row in cells) + "</w:tbl>"

    inner = table([para("Lamp"), para("Reach")], [para("Fixed"), para("ten") + para("miles")])

    assert parts(tmp_path, inner) == (
        DocumentPart(BlockKind.TABLE, "| Lamp | Reach |\n| --- | --- |\n| Fixed | ten miles |"),
    )
    assert [part.kind for part in parts(tmp_path, table([inner, para("beside")]))] == [
        BlockKind.TABLE,
        BlockKind.PARAGRAPH,
    ]


def test_omits_invisible_text(tmp_path: Path) -> None:
    body = (
        para("Contents ... 1", style="TOC1")
        + "<w:p><w:r><w:t>It </w:t></w:r><w:del><w:r><w:delText>never </w:delText></w:r></w:del>"
        + run("<w:t>secretly </w:t>", about="<w:vanish/>")
        + "<w:ins><w:r><w:t>always </w:t></w:r></w:ins><w:r><w:instrText>PAGE</w:instrText></w:r>"
        + "<w:hyperlink><w:r><w:t>burns</w:t></w:r></w:hyperlink><w:r><w:t>.</w:t><w:br/><w:t>Well.</w:t></w:r></w:p>"
    )

    assert parts(tmp_path, body) == (DocumentPart(BlockKind.PARAGRAPH, "It always burns.\nWell."),)


def test_notes_and_text_boxes_follow_their_paragraph(tmp_path: Path) -> None:
    notes = f'<w:footnotes {WORD}><w:footnote w:type="separator" w:id="0">{para("---")}</w:footnote><w:footnote w:id="2">{para("Of whales.")}</w:footnote></w:footnotes>'  # noqa: E501
    mc = 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    box = f"<w:txbxContent>{para('Beside it.')}</w:txbxContent>"
    body = (
        '<w:p><w:r><w:t>Oil</w:t><w:footnoteReference w:id="2"/><w:t>.</w:t></w:r>'
        f"<w:r><mc:AlternateContent {mc}><mc:Choice>{box}</mc:Choice><mc:Fallback>{box}</mc:Fallback>"
        "</mc:AlternateContent></w:r></w:p>"
    )

    assert [part.text for part in parts(tmp_path, body, files={"word/footnotes.xml": notes})] == [
        "Oil.",
        "Of whales.",
        "Beside it.",
    ]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(b"\xd0\xcf\x11\xe0" + b"\0" * 99, "it is encrypted, or an old Word file", id="encrypted"),
        pytest.param(zipped({"a": "b"}), "it is not a Word file: word/document.xml is missing", id="another zip"),
        pytest.param(docx("<w:p>"), "'word/document.xml' inside it is not valid XML", id="broken XML"),
        pytest.param(docx("<w:sdt>" * 5_000 + "</w:sdt>" * 5_000), "it is nested too deeply", id="nested"),
    ],
)
def test_reports_why_a_file_cannot_be_read(tmp_path: Path, data: bytes, reason: str) -> None:
    with pytest.raises(Unreadable) as caught:
        read(tmp_path, data)

    assert str(caught.value).startswith(reason)
