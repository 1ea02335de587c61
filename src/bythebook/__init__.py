"""By the Book: answers from a book's pages, each sentence proven with a quote."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bythebook.answers import AgentRequest, AgentResponse, Outcome, ResponseMetadata
    from bythebook.answers.events import Answered, Entered, Said, Searched, State
    from bythebook.book import Book
    from bythebook.errors import (
        BookError,
        ConfigurationError,
        ContextOverflow,
        DeadlineExceeded,
        InputError,
        NotFound,
        ProviderError,
        RateLimited,
        RetrievalError,
        Unavailable,
    )
    from bythebook.index import Filters
    from bythebook.ingest import Report
    from bythebook.retrieval import Citation, RetrievalContext, RetrievalResult
    from bythebook.settings import Settings

__all__ = [
    "AgentRequest",
    "AgentResponse",
    "Answered",
    "Book",
    "BookError",
    "Citation",
    "ConfigurationError",
    "ContextOverflow",
    "DeadlineExceeded",
    "Entered",
    "Filters",
    "InputError",
    "NotFound",
    "Outcome",
    "ProviderError",
    "RateLimited",
    "Report",
    "ResponseMetadata",
    "RetrievalContext",
    "RetrievalError",
    "RetrievalResult",
    "Said",
    "Searched",
    "Settings",
    "State",
    "Unavailable",
]

# Each name is imported when it is first asked for, so that importing the package costs nothing.
_HOMES = {
    "bythebook.answers": ("AgentRequest", "AgentResponse", "Outcome", "ResponseMetadata"),
    "bythebook.book": ("Book",),
    "bythebook.answers.events": ("Answered", "Entered", "Said", "Searched", "State"),
    "bythebook.errors": (
        "BookError",
        "ConfigurationError",
        "ContextOverflow",
        "DeadlineExceeded",
        "InputError",
        "NotFound",
        "ProviderError",
        "RateLimited",
        "RetrievalError",
        "Unavailable",
    ),
    "bythebook.ingest": ("Report",),
    "bythebook.index": ("Filters",),
    "bythebook.retrieval": ("Citation", "RetrievalContext", "RetrievalResult"),
    "bythebook.settings": ("Settings",),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module 'bythebook' has no attribute {name!r}")
