"""Links that open a page at the very words that were quoted."""

from __future__ import annotations

import re
from urllib.parse import quote as percent

# What stands at the edge of a line in our text but not on the page a browser shows.
_MARKUP = re.compile(r"^\s*(?:[-*+]\s+|\d+[.)]\s+)|^\s*(?:`{3,}|~{3,}).*$", re.MULTILINE)
_PAGE_OF_A_PDF = re.compile(r"page=([0-9]+)")
_LONGEST = 10
_EDGE = 5


def link(url: str, *, anchor: str, words: str) -> str:
    """The page's address with the section's anchor and a text fragment that finds `words` on it.

    Readers of PDFs and EPUBs know no text fragments: there the link leads to the page or the chapter.
    """
    if "#" in url:
        return url
    if _PAGE_OF_A_PDF.fullmatch(anchor):
        return f"{url}#{anchor}"
    fragment = text_fragment(words)
    directive = f":~:text={fragment}" if fragment else ""
    return f"{url}#{percent(anchor, safe='-._~!$&()*+,;=:@/?')}{directive}" if anchor or directive else url


def place(title: str, *, anchor: str) -> str:
    """A title, with the page where it is a PDF's."""
    page = _PAGE_OF_A_PDF.fullmatch(anchor)
    return f"{title}, page {page[1]}" if page else title


def text_fragment(words: str) -> str:
    """The value of a text directive for a quote, empty when nothing of it can be seen on the page.

    A short quote on one line is given whole. A longer one is given by its first and last words, because a browser
    matches a range across paragraphs, list items and cells, but a single text only within one of them.
    """
    lines = [cell.split() for cell in _visible(words)]
    lines = [line for line in lines if line]
    if not lines:
        return ""
    if len(lines) == 1 and len(lines[0]) <= _LONGEST:
        return _encoded(lines[0])
    return f"{_encoded(lines[0][:_EDGE])},{_encoded(lines[-1][-_EDGE:])}"


def _visible(words: str) -> list[str]:
    text = _MARKUP.sub("", words)
    return [
        cell for line in text.splitlines() for cell in (line.split("|") if line.lstrip().startswith("|") else [line])
    ]


def _encoded(words: list[str]) -> str:
    # A hyphen, a comma and an ampersand have a meaning of their own in a text directive.
    return percent(" ".join(words), safe="").replace("-", "%2D")
