"""Decoding: from a file's bytes to its text, or a reason why it has none."""

from __future__ import annotations

import codecs

from bythebook.pages import Unreadable

_MARKED = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


def decode(data: bytes) -> str:
    """The text of a file: UTF-8, or what its byte-order mark says. Raises Unreadable for anything else."""
    encoding = next((name for mark, name in _MARKED if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as exc:
        raise Unreadable(
            f"it is not {encoding.upper().removesuffix('-SIG')}: byte {exc.start} cannot be decoded. Save it as UTF-8"
        ) from exc
    if "\x00" in text:
        raise Unreadable(f"it is not text: character {text.index(chr(0))} is a NUL. Remove it or save it as UTF-8 text")
    if not text.strip():
        raise Unreadable("it is empty")
    return text.replace("\r\n", "\n").replace("\r", "\n")
