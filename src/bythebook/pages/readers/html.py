"""HTML: a page as its generator published it, or a piece of one inside Markdown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from selectolax.lexbor import LexborHTMLParser

from bythebook.pages.compose import Writer

if TYPE_CHECKING:
    pass


def write(fragment: str, writer: Writer) -> None:
    """Write what a piece of HTML shows."""
    tree = LexborHTMLParser(fragment)
    if tree.body:
        writer.paragraph(re.sub(r"\s+", " ", tree.body.text()))
