"""Reads the files inside a zipped document one at a time, in memory, with limits on number and size."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from xml.etree.ElementTree import Element, ParseError

from defusedxml import ElementTree
from defusedxml.common import DefusedXmlException

from bythebook.sources import Unreadable

MAX_FILE_BYTES = 50_000_000
"""Maximum size of one file after decompression."""
MAX_FILES = 20_000
_READ_SIZE = 1 << 20
_OLE_SIGNATURE = b"\xd0\xcf\x11\xe0"


class ZipArchive:
    """An open zip file. Its files are never written to disk, so file names in it cannot cause path traversal."""

    def __init__(self, file: Path) -> None:
        try:
            self._zip = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, NotImplementedError) as exc:
            raise Unreadable(_explain_not_a_zip(file)) from exc
        names = self._zip.namelist()
        if len(names) > MAX_FILES:
            self._zip.close()
            raise Unreadable(f"there are more than {MAX_FILES} files in it; no document needs so many")
        self._names = frozenset(names)

    def __enter__(self) -> ZipArchive:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def content(self, name: str) -> bytes:
        """The content of a file. The size is counted while reading; the declared size is ignored."""
        with self._open(name) as stream:
            return b"".join(_read_with_limit(stream, name))

    def head(self, name: str, size: int) -> bytes:
        """The first `size` bytes of a file."""
        with self._open(name) as stream:
            return stream.read(size)

    def xml(self, name: str) -> Element:
        """Parse an XML file. Entity definitions are rejected, because entities can expand without limit."""
        try:
            return ElementTree.fromstring(self.content(name))
        except ParseError as exc:
            raise Unreadable(f"{name!r} inside it is not valid XML ({exc}); save it again") from exc
        except DefusedXmlException as exc:
            raise Unreadable(f"{name!r} inside it defines XML entities, which no document needs") from exc

    @contextmanager
    def _open(self, name: str) -> Iterator[IO[bytes]]:
        """Open a file for reading. Every error of the zip library becomes Unreadable."""
        if name not in self._names:
            raise Unreadable(f"{name!r} is missing inside it; save it again")
        try:
            with self._zip.open(name) as stream:
                yield stream
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError) as exc:
            raise Unreadable(f"{name!r} inside it is damaged ({exc}); save it again") from exc
        except RuntimeError as exc:  # zipfile raises this if a password is needed
            raise Unreadable(f"{name!r} inside it is encrypted; save it without a password") from exc


def _read_with_limit(stream: IO[bytes], name: str) -> Iterator[bytes]:
    size = 0
    while piece := stream.read(_READ_SIZE):
        size += len(piece)
        if size > MAX_FILE_BYTES:
            raise Unreadable(f"{name!r} inside it unpacks to more than {MAX_FILE_BYTES // 1_000_000} MB")
        yield piece


def _explain_not_a_zip(file: Path) -> str:
    with file.open("rb") as stream:
        start = stream.read(4)
    if not start:
        return "it is empty"
    if start == _OLE_SIGNATURE:
        return "it is encrypted, or an old Word file; save it as .docx without a password"
    return "it is damaged, or not what its name says (no zip file); save it again"
