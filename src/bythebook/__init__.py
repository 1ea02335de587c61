"""By the Book answers questions from the pages of a book and proves each sentence with a quote."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bythebook.answers import (
        AgentRequest,
        AgentResponse,
        AnswerCompleted,
        Outcome,
        ResponseMetadata,
        SourcesFound,
        State,
        StateChanged,
        TextDelta,
    )
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
    from bythebook.ingest import IngestReport
    from bythebook.retrieval import Citation, RetrievalContext, RetrievalResult
    from bythebook.settings import Settings

__all__ = [
    "AgentRequest",
    "AgentResponse",
    "AnswerCompleted",
    "Book",
    "BookError",
    "Citation",
    "ConfigurationError",
    "ContextOverflow",
    "DeadlineExceeded",
    "Filters",
    "IngestReport",
    "InputError",
    "NotFound",
    "Outcome",
    "ProviderError",
    "RateLimited",
    "ResponseMetadata",
    "RetrievalContext",
    "RetrievalError",
    "RetrievalResult",
    "Settings",
    "SourcesFound",
    "State",
    "StateChanged",
    "TextDelta",
    "Unavailable",
]

# Lazy imports: a name is imported on first use, so that importing the package is cheap. Cheap modules come first.
_MODULES = ("errors", "index", "retrieval", "answers", "ingest", "settings", "book")


def __getattr__(name: str) -> Any:
    for module in _MODULES if name in __all__ else ():
        home = import_module(f"bythebook.{module}")
        if hasattr(home, name):
            return getattr(home, name)
    raise AttributeError(f"module 'bythebook' has no attribute {name!r}")
