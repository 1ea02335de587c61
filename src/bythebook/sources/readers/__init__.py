"""Document readers and their registry: one module for each format, from a document's source to its parts.

A reader runs no code from a document, opens no other file and makes no request. To add a format, write a module here
with a function `read` and add a row to `FORMATS`. Documents are read by a separate process, see `sandbox`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from bythebook.sources import Unreadable
from bythebook.sources.document import ParsedDocument
from bythebook.sources.projects import DEFAULT_SLUGS, SlugOptions, Style


class UrlRule(StrEnum):
    """How the URL of a published document follows from its path."""

    ROUTE = "route"
    """By the generator's rule for pages."""
    HTML_FILE = "html file"
    """By the generator's rule; without a generator, the path with the suffix `.html`."""
    UNCHANGED = "unchanged"
    """The path of the file itself."""


@dataclass(frozen=True, slots=True)
class DocumentFormat:
    """A document format and the module of this package that reads it."""

    module: str
    suffixes: tuple[str, ...]
    media_types: tuple[str, ...] = ()
    """The media types of web pages in this format. Empty: no media type was sent."""
    url_rule: UrlRule = UrlRule.ROUTE
    options: tuple[str, ...] = ()
    """The keyword arguments that the module's `read` accepts."""
    style: Style | None = None
    """The row applies only to books published in this style."""
    is_binary: bool = False
    """The reader gets the path of the file instead of its text."""
    is_collection: bool = False
    """One file holds several pages. The module has a function `list_chapters`."""
    has_front_matter: bool = False


_MARKDOWN = (".md", ".markdown", ".mdown", ".mkd")

FORMATS = (
    DocumentFormat("mdx", _MARKDOWN, style=Style.DOCUSAURUS, options=("style",), has_front_matter=True),
    DocumentFormat(
        "markdown",
        _MARKDOWN,
        media_types=("text/markdown", "text/x-markdown"),
        options=("style", "slugs"),
        has_front_matter=True,
    ),
    DocumentFormat("mdx", (".mdx",), options=("style",), has_front_matter=True),
    DocumentFormat(
        "html",
        (".html", ".htm"),
        media_types=("text/html", "application/xhtml+xml", ""),
        url_rule=UrlRule.UNCHANGED,
    ),
    DocumentFormat("html", (".xhtml",)),
    DocumentFormat("rst", (".rst", ".rest")),
    DocumentFormat("text", (".txt", ".text"), media_types=("text/plain",)),
    DocumentFormat("asciidoc", (".adoc", ".asciidoc"), url_rule=UrlRule.HTML_FILE),
    DocumentFormat("notebook", (".ipynb",), options=("style",)),
    DocumentFormat("pdf", (".pdf",), url_rule=UrlRule.UNCHANGED, options=("heartbeat",), is_binary=True),
    DocumentFormat(
        "epub", (".epub",), url_rule=UrlRule.UNCHANGED, options=("part",), is_binary=True, is_collection=True
    ),
    DocumentFormat("docx", (".docx",), url_rule=UrlRule.UNCHANGED, is_binary=True),
)
"""All supported formats. The first row that matches a file applies."""

MEDIA_TYPES = {media_type: row for row in FORMATS for media_type in row.media_types}


GARBLED = "its text could not be understood"
_DAMAGED = "it is damaged, or not what its name says"


def find_format(suffix: str, *, style: Style = Style.PLAIN) -> DocumentFormat | None:
    """The format of files with this suffix, or None if it is not supported."""
    suffix = suffix.lower()
    return next((row for row in FORMATS if suffix in row.suffixes and row.style in (None, style)), None)


def read(text: str, *, suffix: str, style: Style, slugs: SlugOptions = DEFAULT_SLUGS) -> ParsedDocument:
    """Parse the text of a document in the format of `suffix`. Raises only Unreadable."""
    with translate_errors(GARBLED):
        return _read(_require_format(suffix, style), text, style=style, slugs=slugs)


def list_chapters(file: Path) -> list[str]:
    """The paths of the pages inside a file, in reading order. Raises only Unreadable and MemoryError."""
    with translate_errors(_DAMAGED):
        return list(map(str, _load(_require_format(file.suffix)).list_chapters(file)))


def read_file(file: Path, *, part: str, heartbeat: Callable[[], object]) -> ParsedDocument:
    """Parse a binary document and call `heartbeat` after each page. Raises only Unreadable and MemoryError."""
    with translate_errors(_DAMAGED):
        return _read(_require_format(file.suffix), file, part=part, heartbeat=heartbeat)


def _read(document_format: DocumentFormat, source: object, **options: object) -> ParsedDocument:
    accepted = {name: options[name] for name in document_format.options}
    return cast("ParsedDocument", _load(document_format).read(source, **accepted))


def _load(document_format: DocumentFormat) -> Any:
    # Parsers are imported for the first document of their format: a book rarely needs all of them.
    return import_module(f"{__name__}.{document_format.module}")


def _require_format(suffix: str, style: Style = Style.PLAIN) -> DocumentFormat:
    if found := find_format(suffix, style=style):
        return found
    raise Unreadable(f"files ending in {suffix!r} are not supported")


@contextmanager
def translate_errors(reason: str) -> Iterator[None]:
    """Turn every exception of a parser into Unreadable. A MemoryError passes through: it ends the sandbox."""
    try:
        yield
    except (Unreadable, MemoryError):
        raise
    except RecursionError as exc:
        raise Unreadable("it is nested too deeply to be a document") from exc
    except Exception as exc:
        if isinstance(exc, OSError) and exc.strerror:
            raise Unreadable(f"it cannot be opened: {exc.strerror}") from exc
        raise Unreadable(f"{reason} ({type(exc).__name__}: {exc}); save it again") from exc
