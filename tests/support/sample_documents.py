"""PDF, EPUB, Word and notebook files, written by hand for tests: as small as their formats allow."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

Files = Mapping[str, str | bytes]

FONTS = {"plain": "Helvetica", "bold": "Helvetica-Bold", "mono": "Courier"}


class Set(NamedTuple):
    """Text set on a page at one place, in points from the lower left corner."""

    text: str
    x: float = 72.0
    y: float = 700.0
    size: float = 10.0
    font: str = "plain"
    upwards: bool = False
    gap: int = 0
    """The thousandths of the size by which words are apart, if they are set without spaces."""


def running(*texts: str, top: float = 700.0, x: float = 72.0, size: float = 10.0, font: str = "plain") -> list[Set]:
    """Lines below each other, as close as in a paragraph."""
    return [Set(text, x, top - number * 1.2 * size, size, font) for number, text in enumerate(texts)]


def pdf(
    *pages: Iterable[Set], title: str = "", outline: Sequence[tuple[str, int, int]] = (), packed: bool = False
) -> bytes:
    """A PDF. The outline is (title, page from 1, level from 1)."""
    objects: list[bytes] = []

    def add(content: str | bytes) -> int:
        objects.append(content.encode("latin-1") if isinstance(content, str) else content)
        return len(objects)

    catalog, tree, info = add(""), add(""), add(f"<< /Title {_string(title)} >>" if title else "<< >>")
    ligatures = add("<< /Type /Encoding /BaseEncoding /WinAnsiEncoding /Differences [1 /fi /fl] >>")
    fonts = " ".join(
        f"/{name} {add(f'<< /Type /Font /Subtype /Type1 /BaseFont /{face} /Encoding {ligatures} 0 R >>')} 0 R"
        for name, face in FONTS.items()
    )
    numbers = []
    for page in pages:
        content = add(_stream("\n".join(map(_drawn, page)).encode("latin-1"), packed=packed))
        numbers.append(
            add(
                f"<< /Type /Page /Parent {tree} 0 R /MediaBox [0 0 612 792] /Contents {content} 0 R "
                f"/Resources << /Font << {fonts} >> >> >>"
            )
        )
    kids = " ".join(f"{number} 0 R" for number in numbers)
    objects[tree - 1] = f"<< /Type /Pages /Count {len(numbers)} /Kids [{kids}] >>".encode()
    root = _add_outline(add, objects, numbers, outline)
    objects[catalog - 1] = f"<< /Type /Catalog /Pages {tree} 0 R {root} >>".encode()
    return assembled(objects, root=catalog, info=info)


def assembled(objects: Sequence[bytes], *, root: int = 1, info: int = 0) -> bytes:
    """A file of these objects, numbered from 1."""
    out = io.BytesIO()
    out.write(b"%PDF-1.4\n")
    places = []
    for number, content in enumerate(objects, start=1):
        places.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, content))
    start = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    out.writelines(b"%010d 00000 n \n" % place for place in places)
    about = b"/Info %d 0 R " % info if info else b""
    out.write(b"trailer\n<< /Size %d /Root %d 0 R %s>>\nstartxref\n%d\n%%%%EOF" % (len(places) + 1, root, about, start))
    return out.getvalue()


def stream(data: bytes) -> bytes:
    """A compressed stream, as an object of a PDF."""
    return _stream(data, packed=True)


def _stream(data: bytes, *, packed: bool) -> bytes:
    if packed:
        data = zlib.compress(data, 9)
    how = b" /Filter /FlateDecode" if packed else b""
    return b"<< /Length %d%s >>\nstream\n%s\nendstream" % (len(data), how, data)


def _drawn(text: Set) -> str:
    place = f"0 1 -1 0 {text.x} {text.y} Tm" if text.upwards else f"1 0 0 1 {text.x} {text.y} Tm"
    said = text.text.replace("fi", "\x01").replace("fl", "\x02") if text.font == "plain" else text.text
    if text.gap:
        words = f" {-text.gap} ".join(map(_string, said.split(" ")))
        return f"BT /{text.font} {text.size} Tf {place} [{words}] TJ ET"
    return f"BT /{text.font} {text.size} Tf {place} {_string(said)} Tj ET"


def _string(text: str) -> str:
    return "(" + text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)") + ")"


def _add_outline(add, objects, numbers, outline) -> str:  # type: ignore[no-untyped-def]
    if not outline:
        return ""
    top = add("")
    ids = [add("") for _ in outline]
    above: list[tuple[int, int]] = [(0, top)]
    children: dict[int, list[int]] = {}
    parents = {}
    for number, (_, _, level) in zip(ids, outline, strict=True):
        above = [entry for entry in above if entry[0] < level]
        parents[number] = above[-1][1]
        children.setdefault(above[-1][1], []).append(number)
        above.append((level, number))
    for number, (title, page, _) in zip(ids, outline, strict=True):
        mine, siblings = children.get(number), children[parents[number]]
        at = siblings.index(number)
        following = f"/Next {siblings[at + 1]} 0 R" if at + 1 < len(siblings) else ""
        below = f"/First {mine[0]} 0 R /Last {mine[-1]} 0 R /Count {len(mine)}" if mine else ""
        objects[number - 1] = (
            f"<< /Title {_string(title)} /Parent {parents[number]} 0 R {following} {below} "
            f"/Dest [{numbers[page - 1]} 0 R /XYZ 0 700 0] >>"
        ).encode("latin-1")
    first = children[top]
    objects[top - 1] = f"<< /Type /Outlines /First {first[0]} 0 R /Last {first[-1]} 0 R /Count 1 >>".encode()
    return f"/Outlines {top} 0 R"


def zipped(files: Files) -> bytes:
    """An archive with these files in it."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def epub(
    chapters: Mapping[str, str],
    *,
    title: str = "The Lamp",
    nav: Mapping[str, str] | None = None,
    files: Files | None = None,
) -> bytes:
    """A book of these files, with a table of contents of paths and titles. `files` replaces or adds whole ones."""
    items = "".join(
        f'<item id="c{number}" href="{path}" media-type="application/xhtml+xml"/>'
        for number, path in enumerate(chapters)
    )
    spine = "".join(f'<itemref idref="c{number}"/>' for number in range(len(chapters)))
    links = "".join(f'<li><a href="{path}">{name}</a></li>' for path, name in (nav or {}).items())
    written: dict[str, str | bytes] = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
        '<rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>',
        "OEBPS/book.opf": '<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf">'
        f'<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{title}</dc:title></metadata>'
        f'<manifest>{items}<item id="nav" href="nav.xhtml" properties="nav" media-type="application/xhtml+xml"/>'
        f'</manifest><spine><itemref idref="nav"/>{spine}</spine></package>',
        "OEBPS/nav.xhtml": f'<html><body><nav epub:type="toc"><ol>{links}</ol></nav></body></html>',
        **{f"OEBPS/{path}": xhtml(body) for path, body in chapters.items()},
    }
    return zipped(written | dict(files or {}))


def xhtml(body: str) -> str:
    return (
        '<?xml version="1.0" encoding="utf-8"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title/></head>'
        f"<body>{body}</body></html>"
    )


WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def docx(body: str, *, styles: str = "", numbering: str = "", files: Files | None = None) -> bytes:
    """A Word file with this body; `files` replaces or adds whole ones."""
    written: dict[str, str | bytes] = {
        "word/document.xml": f"<w:document {WORD}><w:body>{body}</w:body></w:document>",
        "word/styles.xml": f"<w:styles {WORD}>{styles}</w:styles>",
        "word/numbering.xml": f"<w:numbering {WORD}>{numbering}</w:numbering>",
    }
    return zipped(written | dict(files or {}))


def para(text: str, *, style: str = "", inside: str = "") -> str:
    """A paragraph of a Word file."""
    about = (f'<w:pStyle w:val="{style}"/>' if style else "") + inside
    return f'<w:p><w:pPr>{about}</w:pPr><w:r><w:t xml:space="preserve">{text}</w:t></w:r></w:p>'


def notebook(*cells: Mapping[str, object], **metadata: object) -> str:
    """A Jupyter notebook."""
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": cells})
