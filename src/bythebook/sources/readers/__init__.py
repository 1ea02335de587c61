"""Readers: one module for each format, from a document's source to its parts.

A reader runs nothing, opens nothing and asks nobody: all it knows is the text it is given. Formats that are no text
are read by `documents`, in a process of their own.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from bythebook.sources import Unreadable
from bythebook.sources.projects import USUAL_SLUGS, Slugs, Style

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bythebook.sources.document import Draft

MARKDOWN = frozenset([".md", ".markdown", ".mdown", ".mkd"])
MDX = frozenset([".mdx"])
HTML = frozenset([".html", ".htm", ".xhtml"])
RESTRUCTURED = frozenset([".rst", ".rest"])
PLAIN = frozenset([".txt", ".text"])
ASCIIDOC = frozenset([".adoc", ".asciidoc"])
NOTEBOOK = frozenset([".ipynb"])

SUPPORTED = MARKDOWN | MDX | HTML | RESTRUCTURED | PLAIN | ASCIIDOC | NOTEBOOK


def read(text: str, *, suffix: str, style: Style, slugs: Slugs = USUAL_SLUGS) -> Draft:
    """Read a document by the ending of its file name. Raises Unreadable, and nothing else, whatever the text."""
    with understanding():
        return _read(text, suffix.lower(), style, slugs)


@contextmanager
def understanding() -> Iterator[None]:
    """Whatever a parser trips over is the document's fault, and the author's to mend: it becomes Unreadable."""
    try:
        yield
    except Unreadable:
        raise
    except RecursionError as exc:
        raise Unreadable("it is nested too deeply to be a page") from exc
    except Exception as exc:
        raise Unreadable(f"its text could not be understood ({type(exc).__name__}: {exc})") from exc


def _read(text: str, suffix: str, style: Style, slugs: Slugs) -> Draft:
    # Parsers are imported when the first page of their kind is met: a book rarely needs them all.
    if suffix in MDX or (suffix in MARKDOWN and style is Style.DOCUSAURUS):
        from bythebook.sources.readers import mdx

        return mdx.read(text, style=style)
    if suffix in MARKDOWN:
        from bythebook.sources.readers import markdown

        return markdown.read(text, style=style, slugs=slugs)
    if suffix in NOTEBOOK:
        from bythebook.sources.readers import notebook

        return notebook.read(text, style=style)
    return _read_without_style(text, suffix)


def _read_without_style(text: str, suffix: str) -> Draft:
    if suffix in HTML:
        from bythebook.sources.readers import html

        return html.read(text)
    if suffix in RESTRUCTURED:
        from bythebook.sources.readers import rst

        return rst.read(text)
    if suffix in ASCIIDOC:
        from bythebook.sources.readers import asciidoc

        return asciidoc.read(text)
    from bythebook.sources.readers import text as plain

    return plain.read(text)
