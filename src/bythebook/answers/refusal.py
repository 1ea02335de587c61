"""The text of refusals and of questions back, and links to sections as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bythebook.answers import NO_INFORMATION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bythebook.answers import SectionLink

CLARIFY = "What would you like to know about? Please name the topic."
_LONGEST = 120


def is_unanswered(answer: str) -> bool:
    """True for the text of a refusal or of a question back."""
    return answer == CLARIFY or NO_INFORMATION in answer


def format_links(links: Sequence[SectionLink]) -> str:
    """The links as a Markdown list."""
    titles = (link.title.replace("[", r"\[").replace("]", r"\]") for link in links)
    return "\n".join(f"- [{title}]({link.url})" for title, link in zip(titles, links, strict=True))


def format_refusal(query: str, suggestions: Sequence[SectionLink]) -> str:
    """The text of a refusal, with links to the nearest sections."""
    topic = query if len(query) <= _LONGEST else query[: _LONGEST - 1].rstrip() + "…"
    text = f"{NO_INFORMATION} “{topic}” in this book."
    return f"{text}\n\nThe nearest sections are:\n{format_links(suggestions)}" if suggestions else text
