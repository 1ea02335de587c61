"""Archive: the files inside a zipped document, unpacked one at a time, in memory, and never more than is sensible."""

from __future__ import annotations

import zipfile
import zlib
from typing import IO, TYPE_CHECKING
from xml.etree.ElementTree import ParseError

from defusedxml import ElementTree
from defusedxml.common import DefusedXmlException

from bythebook.sources import Unreadable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path
    from xml.etree.ElementTree import Element

LARGEST = 50_000_000
"""Bytes one file of an archive may unpack to."""
MOST_FILES = 20_000
_AT_ONCE = 1 << 20
_OFFICE_2003 = b"\xd0\xcf\x11\xe0"


class Archive:
    """An open zip file. Nothing of it is ever written to a disk, so that no name in it can lead anywhere."""

    def __init__(self, file: Path) -> None:
        try:
            self._zip = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, NotImplementedError) as exc:
            raise Unreadable(_why_no_zip(file)) from exc
        names = self._zip.namelist()
        if len(names) > MOST_FILES:
            self._zip.close()
            raise Unreadable(f"there are more than {MOST_FILES} files in it; no document needs so many")
        self._names = frozenset(names)

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def content(self, name: str) -> bytes:
        """A file of the archive. What it says about its size is not believed."""
        with self._opened(name) as stream:
            return b"".join(_pieces(stream, name))

    def head(self, name: str, size: int) -> bytes:
        """The beginning of a file."""
        with self._opened(name) as stream:
            return stream.read(size)

    def xml(self, name: str) -> Element:
        """A file as a tree. One that defines entities is refused: they can unpack to anything."""
        try:
            return ElementTree.fromstring(self.content(name))
        except ParseError as exc:
            raise Unreadable(f"{name!r} inside it is not valid XML ({exc}); save it anew") from exc
        except DefusedXmlException as exc:
            raise Unreadable(f"{name!r} inside it defines XML entities, which no document needs") from exc

    def _opened(self, name: str) -> AbstractContextManager[IO[bytes]]:
        if name not in self._names:
            raise Unreadable(f"{name!r} is missing inside it; save it anew")
        return _Opened(self._zip, name)


class _Opened:
    """A file of an archive while it is read. Whatever is wrong with it is a reason not to read the document."""

    def __init__(self, archive: zipfile.ZipFile, name: str) -> None:
        self._archive, self._name = archive, name
        self._stream: IO[bytes] | None = None

    def __enter__(self) -> IO[bytes]:
        try:
            stream = self._archive.open(self._name)
        except RuntimeError as exc:  # so says zipfile that a password is needed
            raise Unreadable(f"{self._name!r} inside it is encrypted; save it without a password") from exc
        except (zipfile.BadZipFile, NotImplementedError, ValueError) as exc:
            raise Unreadable(f"{self._name!r} inside it is damaged ({exc}); save it anew") from exc
        self._stream = stream
        return stream

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, _: object) -> None:
        if self._stream:
            self._stream.close()
        if isinstance(exc, zipfile.BadZipFile | zlib.error | EOFError):
            raise Unreadable(f"{self._name!r} inside it is damaged ({exc}); save it anew") from exc


def _pieces(stream: IO[bytes], name: str) -> Iterator[bytes]:
    size = 0
    while piece := stream.read(_AT_ONCE):
        size += len(piece)
        if size > LARGEST:
            raise Unreadable(f"{name!r} inside it unpacks to more than {LARGEST // 1_000_000} MB")
        yield piece


def _why_no_zip(file: Path) -> str:
    with file.open("rb") as stream:
        start = stream.read(4)
    if not start:
        return "it is empty"
    if start == _OFFICE_2003:
        return "it is encrypted, or an old Word file; save it as .docx without a password"
    return "it is damaged, or not what its name says (no zip file); save it anew"
