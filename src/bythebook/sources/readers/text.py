"""Plain text: paragraphs between blank lines."""

from __future__ import annotations

import re

from bythebook.sources.document import Draft, Writer

LONGEST_TITLE = 80


def read(text: str) -> Draft:
    """The paragraphs of a text. A short first line that stands alone is its title."""
    paragraphs = re.split(r"\n[ \t]*(?:\n[ \t]*)+", text.strip())
    first = paragraphs[0].strip()
    titled = (
        len(paragraphs) > 1 and "\n" not in first and len(first) <= LONGEST_TITLE and not first.endswith((".", ":"))
    )
    writer = Writer()
    if titled:
        writer.heading(first, level=1)
    for paragraph in paragraphs[1 if titled else 0 :]:
        writer.paragraph(_flowing(paragraph))
    parts = writer.finish()
    return Draft(parts[0].text if titled and parts else "", parts)


def _flowing(paragraph: str) -> str:
    """Wrapped prose on one line; lines that were broken on purpose stay."""
    lines = [line.strip() for line in paragraph.split("\n")]
    wrapped = all(len(line) >= 50 for line in lines[:-1]) and not any(
        re.match(r"[-*•]|\d+[.)]", line) for line in lines
    )
    return (" " if wrapped else "\n").join(lines)
