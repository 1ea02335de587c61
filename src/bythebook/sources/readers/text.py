"""Plain text: paragraphs between blank lines."""

import re

from bythebook.sources.document import DocumentWriter, ParsedDocument

MAX_TITLE_LENGTH = 80


def read(text: str) -> ParsedDocument:
    """The paragraphs of a text. A short first line followed by a blank line is the title."""
    paragraphs = re.split(r"\n[ \t]*(?:\n[ \t]*)+", text.strip())
    first = paragraphs[0].strip()
    has_title = (
        len(paragraphs) > 1 and "\n" not in first and len(first) <= MAX_TITLE_LENGTH and not first.endswith((".", ":"))
    )
    writer = DocumentWriter()
    if has_title:
        writer.heading(first, level=1)
    for paragraph in paragraphs[1 if has_title else 0 :]:
        writer.paragraph(_unwrap_lines(paragraph))
    parts = writer.finish()
    return ParsedDocument(parts[0].text if has_title and parts else "", parts)


def _unwrap_lines(paragraph: str) -> str:
    """Join the lines of is_wrapped prose. Line breaks of lists and short lines are kept."""
    lines = [line.strip() for line in paragraph.split("\n")]
    is_wrapped = all(len(line) >= 50 for line in lines[:-1]) and not any(
        re.match(r"[-*•]|\d+[.)]", line) for line in lines
    )
    return (" " if is_wrapped else "\n").join(lines)
