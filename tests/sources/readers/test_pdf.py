"""PDF: from text runs with coordinates to paragraphs, headings, lists, code and tables."""

from __future__ import annotations

import io
from pathlib import Path

import pypdf
import pytest

from bythebook.sources import BlockKind, Unreadable, readers
from bythebook.sources.document import DocumentPart
from tests.support.sample_documents import Set, assembled, pdf, running, stream

FULL = "The keeper climbs the tower every night and trims the wick until it burns clear and bright"
LONG = [FULL, FULL, FULL]


def read(tmp_path: Path, data: bytes) -> tuple[str, list[DocumentPart]]:
    file = tmp_path / "a.pdf"
    file.write_bytes(data)
    draft = readers.read_file(file, part="", heartbeat=lambda: None)
    return draft.title, list(draft.parts)


def texts(parts: list[DocumentPart]) -> list[str]:
    return [part.text for part in parts]


def test_joins_lines_to_paragraphs_with_their_page(tmp_path: Path) -> None:
    first = [*running(FULL, "until morning."), *running(FULL, "and sleeps.", top=640)]
    _, parts = read(tmp_path, pdf(first, running("The next page.")))

    assert parts == [
        DocumentPart(BlockKind.PARAGRAPH, f"{FULL} until morning.", anchor="page=1"),
        DocumentPart(BlockKind.PARAGRAPH, f"{FULL} and sleeps.", anchor="page=1"),
        DocumentPart(BlockKind.PARAGRAPH, "The next page.", anchor="page=2"),
    ]


@pytest.mark.parametrize("gap", [120, 250], ids=["narrow", "usual"])
def test_finds_words_set_apart_by_their_position(tmp_path: Path, gap: int) -> None:
    _, parts = read(tmp_path, pdf([line._replace(gap=gap) for line in running(FULL, FULL, "until morning.")]))

    assert texts(parts) == [f"{FULL} {FULL} until morning."]


def test_a_page_of_long_words_gets_no_spaces(tmp_path: Path) -> None:
    words = "x" * 40 + "." + "y" * 40
    _, parts = read(tmp_path, pdf(running(words, "z" * 60)))

    assert "".join(texts(parts)).replace(" ", "") == words + "z" * 60
    assert words in texts(parts)[0]


def test_a_short_line_ends_its_paragraph(tmp_path: Path) -> None:
    _, parts = read(tmp_path, pdf(running(FULL, "and sleeps", "Bring oil", "Bring a wick", FULL, "again.")))

    assert texts(parts) == [f"{FULL} and sleeps", "Bring oil", "Bring a wick", f"{FULL} again."]


@pytest.mark.parametrize(
    ("first", "second", "elsewhere", "whole"),
    [
        pytest.param("infor-", "mation", "", "information", id="a word cut at the line's end"),
        pytest.param("infor-", "mation", "information", "information", id="one that stands elsewhere"),
        pytest.param("well-", "known", "a well-known word", "well-known", id="one that has a hyphen elsewhere"),
        pytest.param("Anglo-", "Saxon", "", "Anglo-Saxon", id="a name"),
        pytest.param("https://a.test/well-", "known", "", "https://a.test/well-known", id="an address"),
        pytest.param("1-", "2", "", "1- 2", id="no word"),
    ],
)
def test_joins_words_hyphenated_at_line_ends(
    tmp_path: Path, first: str, second: str, elsewhere: str, whole: str
) -> None:
    rest = running(f"{elsewhere} burns.", top=400) if elsewhere else []
    _, parts = read(tmp_path, pdf([*running(f"{FULL} {first}", f"{second} is here."), *rest]))

    assert parts[0].text == f"{FULL} {whole} is here."


def test_joins_a_sentence_across_pages_and_keeps_the_rest_on_its_page(tmp_path: Path) -> None:
    first = running("The keeper trims the wick every night and", top=100)
    second = [*running(FULL.lower(), "at dawn. Then he sleeps.", top=700)]
    _, parts = read(tmp_path, pdf(first, second))

    assert parts == [
        DocumentPart(
            BlockKind.PARAGRAPH, f"The keeper trims the wick every night and {FULL.lower()} at dawn.", anchor="page=1"
        ),
        DocumentPart(BlockKind.PARAGRAPH, "Then he sleeps.", anchor="page=2"),
    ]


def test_removes_headers_footers_and_page_numbers(tmp_path: Path) -> None:
    pages = [
        [
            Set("The Lamp Book", 72, 760, 8),
            Set("Chapter 1", 450, 760, 8),
            *running(f"What stands on page {word} is only there.", top=700),
            Set(f"{number}", 300, 30, 8),
            Set(f"Printed on page {number} of 4", 72, 20, 8),
        ]
        for number, word in enumerate(["one", "two", "three", "four"], start=1)
    ]
    _, parts = read(tmp_path, pdf(*pages))

    assert texts(parts) == [f"What stands on page {word} is only there." for word in ("one", "two", "three", "four")]


def test_keeps_chapter_headings_at_the_top_of_a_page(tmp_path: Path) -> None:
    pages = [
        [*running(f"Chapter {number}", size=20, top=740), *running(f"{FULL} {word}", f"in {word} lamps.", top=700)]
        for number, word in enumerate(("old", "new", "red", "tall"), start=1)
    ]
    _, parts = read(tmp_path, pdf(*pages))

    assert [part.text for part in parts if part.kind is BlockKind.HEADING] == [f"Chapter {n}" for n in (1, 2, 3, 4)]


def test_a_word_at_the_edge_of_a_page_is_not_a_roman_number(tmp_path: Path) -> None:
    _, parts = read(tmp_path, pdf([*running(*LONG, "burns."), Set("Civil", y=100), Set("xiv", 300, 20)]))

    assert texts(parts)[1:] == ["Civil"]


def test_joins_lines_by_the_edge_of_their_column(tmp_path: Path) -> None:
    left = running("The keeper climbs the tower every", "night.", "Then he", top=700)
    right = running("sleeps until the morning comes and", "the lamp is put out.", top=700, x=320)
    _, parts = read(tmp_path, pdf([*left, *right]))

    assert texts(parts) == [
        "The keeper climbs the tower every night.",
        "Then he sleeps until the morning comes and the lamp is put out.",
    ]


def test_recognises_headings_by_size_and_weight(tmp_path: Path) -> None:
    page = [
        *running("The Lamp", top=740, size=20),
        *running("Its oil", top=700, size=14),
        *running(*LONG, "burns.", top=670),
        *running("Whale oil", top=600, font="bold"),
        *running(*LONG, "burns.", top=580),
        *running("Its wick", top=500, size=14),
        *running("It is cotton.", top=480),
    ]
    title, parts = read(tmp_path, pdf(page))

    assert title == "The Lamp"
    assert [(part.text, part.level, part.anchor) for part in parts if part.kind is BlockKind.HEADING] == [
        ("The Lamp", 1, "page=1"),
        ("Its oil", 2, "page=1"),
        ("Whale oil", 3, "page=1"),
        ("Its wick", 2, "page=1"),
    ]


def test_the_outline_determines_headings_and_levels(tmp_path: Path) -> None:
    page = [
        *running("1. The Lamp", top=740, size=14),
        *running(*LONG, "burns.", top=710),
        *running("1.1 Its oil", top=640),
        *running("It is whale oil.", top=610),
        *running("2. The Horn", top=560, size=14),
        *running("It is loud.", top=530),
    ]
    title, parts = read(
        tmp_path, pdf(page, title="Light", outline=[("The Lamp", 1, 1), ("Its Oil", 1, 2), ("The Horn", 1, 1)])
    )

    assert title == "Light"
    assert [(part.text, part.level) for part in parts if part.kind is BlockKind.HEADING] == [
        ("1. The Lamp", 1),
        ("1.1 Its oil", 2),
        ("2. The Horn", 1),
    ]


def test_joins_a_heading_of_two_lines(tmp_path: Path) -> None:
    page = [*running("How the lamp of the tower is", "lit at dusk", size=20, top=740), *running(FULL, "so.", top=600)]
    _, parts = read(tmp_path, pdf(page))

    assert parts[0] == DocumentPart(
        BlockKind.HEADING, "How the lamp of the tower is lit at dusk", level=1, anchor="page=1"
    )


def test_keeps_lines_and_indentation_of_code(tmp_path: Path) -> None:
    code = [Set("def light():", 72, 640, font="mono"), Set("return lamp", 96, 628, font="mono")]
    more = [Set("light()", 72, 604, font="mono")]
    _, parts = read(tmp_path, pdf([*running(*LONG, "so:", top=700), *code, *more]))

    assert parts[-1] == DocumentPart(
        BlockKind.CODE, "```\ndef light():\n    return lamp\n\nlight()\n```", anchor="page=1"
    )


def test_reads_rows_and_columns_of_a_table(tmp_path: Path) -> None:
    rows = [("Lamp", "Reach", "Colour"), ("Fixed", "ten miles", "white"), ("Turning", "nine miles", "red")]
    cells = [
        Set(text, 72 + 150 * column, 600 - 14 * row)
        for row, texts_of_row in enumerate(rows)
        for column, text in enumerate(texts_of_row)
    ]
    _, parts = read(tmp_path, pdf([*running(*LONG, "so:", top=700), *cells]))

    assert parts[-1].kind is BlockKind.TABLE
    assert parts[-1].text == (
        "| Lamp | Reach | Colour |\n| --- | --- | --- |\n| Fixed | ten miles | white |\n| Turning | nine miles | red |"
    )


def test_reads_items_as_a_list(tmp_path: Path) -> None:
    page = [*running(*LONG, "so:", top=700), *running("\u2022 oil", "\u2022 a wick that is", top=640)]
    page = [text._replace(text=text.text.replace("\u2022", "-")) for text in page]
    numbered = running("1. Climb.", "2. Light it.", top=560)
    _, parts = read(tmp_path, pdf([*page, *running("Then:", top=590), *numbered]))

    assert [part.text for part in parts if part.kind is BlockKind.LIST] == [
        "- oil\n- a wick that is",
        "1. Climb.\n2. Light it.",
    ]


def test_reads_two_columns_one_after_the_other(tmp_path: Path) -> None:
    half = "The keeper climbs the tower and trims"
    left = running(*[f"{half} {word}" for word in "abcdefghij"], top=700)
    right = running(*[f"{half} {word}" for word in "klmnopqrst"], top=700, x=320)
    _, parts = read(tmp_path, pdf([line for pair in zip(left, right, strict=True) for line in pair]))

    assert " ".join(texts(parts)) == " ".join(f"{half} {word}" for word in "abcdefghijklmnopqrst")


def test_replaces_ligatures(tmp_path: Path) -> None:
    _, parts = read(tmp_path, pdf(running("The five flames of the first fire.")))

    assert texts(parts) == ["The five flames of the first fire."]


def test_omits_a_rotated_stamp(tmp_path: Path) -> None:
    _, parts = read(tmp_path, pdf([*running(FULL, "so."), Set("DRAFT of 1901", 20, 300, 20, upwards=True)]))

    assert texts(parts) == [f"{FULL} so."]


def test_reads_a_rotated_page(tmp_path: Path) -> None:
    lying = [Set("It lies", 100, 100, upwards=True), Set("on its side.", 112, 100, upwards=True)]
    _, parts = read(tmp_path, pdf(lying))

    assert texts(parts) == ["It lies on its side."] or texts(parts) == ["It lies", "on its side."]


@pytest.mark.parametrize(
    ("said", "title"),
    [
        pytest.param("The Lamp Book", "The Lamp Book", id="as it says"),
        pytest.param("Microsoft Word - lamp.doc", "", id="not what a program says"),
        pytest.param("lamp_v2.indd", "", id="not a file's name"),
        pytest.param("untitled", "", id="not untitled"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_the_title_comes_from_the_metadata(tmp_path: Path, said: str, title: str) -> None:
    assert read(tmp_path, pdf(running("It burns."), title=said))[0] == title


@pytest.mark.parametrize("algorithm", ["RC4-128", "AES-256"])
def test_reads_an_encrypted_file_without_a_password(tmp_path: Path, algorithm: str) -> None:
    assert texts(read(tmp_path, _encrypted("", algorithm))[1]) == ["It burns."]


def test_reports_a_file_with_a_password(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match=r"^it is encrypted; save a copy without a password$"):
        read(tmp_path, _encrypted("secret", "AES-256"))


def _encrypted(password: str, algorithm: str) -> bytes:
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(pdf(running("It burns."))))
    writer.encrypt(password, owner_password="owner", algorithm=algorithm)  # noqa: S106 - of a test
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def _picture_only() -> bytes:
    return pdf([])


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(b"", "it is empty", id="empty"),
        pytest.param(_picture_only(), "it has no text, only pictures of it; run OCR first", id="scanned"),
        pytest.param(b"lamp", "it is damaged, or not a PDF", id="no PDF"),
        pytest.param(b"%PDF-1.7\n" + b"\x00" * 500, "it is damaged, or not a PDF", id="only its beginning"),
        pytest.param(
            assembled([b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [2 0 R] /Count 1 >>"]),
            "it is damaged, or not",
            id="a tree of pages that holds itself",
        ),
    ],
)
def test_reports_why_a_file_cannot_be_read(tmp_path: Path, data: bytes, reason: str) -> None:
    with pytest.raises(Unreadable) as caught:
        read(tmp_path, data)

    assert str(caught.value).startswith(reason)


def test_rejects_or_truncates_a_decompression_bomb(tmp_path: Path) -> None:
    bomb = stream(b"0 " * 50_000_000)
    data = assembled(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            b"<< /Type /Page /Parent 2 0 R /Contents 4 0 R /MediaBox [0 0 9 9] >>",
            bomb,
        ]
    )
    assert len(data) < 200_000
    with pytest.raises(Unreadable):
        read(tmp_path, data)
