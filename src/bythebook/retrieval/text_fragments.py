"""Builds links with text fragments, which open a page at the quoted words."""

import re
from urllib.parse import quote as percent

# Markup at the start of a line in our text that is not text on the rendered page.
_MARKUP = re.compile(r"^[^\S\n]*+(?:(?:[-*+]|\d++[.)])\s+|(?:`{3,}|~{3,}).*$)", re.MULTILINE)
_PDF_PAGE = re.compile(r"page=([0-9]+)")
_MAX_WORDS = 10
_EDGE_WORDS = 5


def build_link(url: str, *, anchor: str, words: str) -> str:
    """The URL of the page with the section's anchor and a text fragment that matches `words`.

    PDF and EPUB viewers do not support text fragments: there the link opens the page or the chapter.
    """
    if "#" in url:
        return url
    if _PDF_PAGE.fullmatch(anchor):
        return f"{url}#{anchor}"
    fragment = build_text_fragment(words)
    directive = f":~:text={fragment}" if fragment else ""
    return f"{url}#{percent(anchor, safe='-._~!$&()*+,;=:@/?')}{directive}" if anchor or directive else url


def title_with_page(title: str, *, anchor: str) -> str:
    """The title, with the page number if the anchor is a page of a PDF."""
    page = _PDF_PAGE.fullmatch(anchor)
    return f"{title}, page {page[1]}" if page else title


def build_text_fragment(words: str) -> str:
    """The value of a text directive for a quote, empty if none of it is visible on the page.

    A short quote on one line is given as a whole. A longer one is given by its first and last words, because a browser
    matches a range across paragraphs, list items and cells, but a single text only within one of them.
    """
    lines = [cell.split() for cell in _visible_cells(words)]
    lines = [line for line in lines if line]
    if not lines:
        return ""
    if len(lines) == 1 and len(lines[0]) <= _MAX_WORDS:
        return _encode(lines[0])
    return f"{_encode(lines[0][:_EDGE_WORDS])},{_encode(lines[-1][-_EDGE_WORDS:])}"


def _visible_cells(words: str) -> list[str]:
    text = _MARKUP.sub("", words)
    return [
        cell for line in text.splitlines() for cell in (line.split("|") if line.lstrip().startswith("|") else [line])
    ]


def _encode(words: list[str]) -> str:
    # Hyphen, comma and ampersand have a special meaning in a text directive.
    return percent(" ".join(words), safe="").replace("-", "%2D")
