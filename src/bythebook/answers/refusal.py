"""What is said when the book does not answer: which sections come nearest, or what the question is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bythebook.passages import RetrievalResult

_NEAREST = 3
_LONGEST = 120

CLARIFY = "What would you like to know about? Please name the topic."


def nearest_sections(results: Sequence[RetrievalResult]) -> tuple[str, ...]:
    """The sections of the book that come nearest to the question, each once."""
    names = (" > ".join(result.heading_hierarchy) or result.title for result in results)
    return tuple(dict.fromkeys(name for name in names if name))[:_NEAREST]


def refusal(query: str, suggestions: Sequence[str]) -> str:
    """An honest no, with where to look instead."""
    topic = query if len(query) <= _LONGEST else query[: _LONGEST - 1].rstrip() + "…"
    text = f"I don't have information about “{topic}” in this book."
    if not suggestions:
        return text
    return "\n".join([text, "", "The nearest sections are:", *(f"- {section}" for section in suggestions)])
