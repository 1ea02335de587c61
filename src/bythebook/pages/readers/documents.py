"""Documents: formats that are no text, read by a process that may be ended (see `capped`).

These readers open the file they are given, and nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bythebook.pages import Unreadable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path, PurePath

    from bythebook.pages.compose import Draft

PDF = frozenset([".pdf"])
EPUB = frozenset([".epub"])
WORD = frozenset([".docx"])

SUPPORTED = PDF | EPUB | WORD


def has_chapters(file: PurePath) -> bool:
    """Whether a document of this kind holds several pages."""
    return file.suffix.lower() in EPUB


def chapters(file: Path) -> list[str]:
    """The paths of the pages inside a document, in reading order. Raises Unreadable, and nothing else."""
    try:
        from bythebook.pages.readers import epub

        return epub.chapters(file)
    except Exception as exc:
        raise _unreadable(exc) from exc


def read(file: Path, *, part: str, sign: Callable[[], object]) -> Draft:
    """Read a document by the ending of its name. Raises Unreadable, and nothing else; gives a sign for each page."""
    try:
        return _read(file, file.suffix.lower(), part, sign)
    except Exception as exc:
        raise _unreadable(exc) from exc


def _read(file: Path, suffix: str, part: str, sign: Callable[[], object]) -> Draft:
    if suffix in PDF:
        from bythebook.pages.readers import pdf

        return pdf.read(file, sign=sign)
    if suffix in EPUB:
        from bythebook.pages.readers import epub

        return epub.read(file, part=part)
    from bythebook.pages.readers import docx

    return docx.read(file)


def _unreadable(exc: Exception) -> Unreadable:
    if isinstance(exc, Unreadable):
        return exc
    if isinstance(exc, MemoryError):
        raise exc
    if isinstance(exc, RecursionError):
        return Unreadable("it is nested too deeply to be a document")
    if isinstance(exc, OSError) and exc.strerror:
        return Unreadable(f"it cannot be opened: {exc.strerror}")
    return Unreadable(f"it is damaged, or not what its name says ({type(exc).__name__}: {exc}); save it anew")
