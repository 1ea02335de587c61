"""The public names of the package."""

from __future__ import annotations

from importlib.metadata import version

import pytest

import bythebook


def test_everything_that_the_documents_name_is_importable() -> None:
    """Integrator: the types of the five documents, the settings and the errors."""
    assert {
        *("AgentConfig", "AgentRequest", "AgentResponse", "Book", "Citation", "Conversation", "ConversationTurn"),
        *("ErrorResponse", "Feedback", "Filters", "Message", "ResponseMetadata", "RetrievalContext", "RetrievalResult"),
        *("RetrievalToolResponse", "Settings", "State", "SyncBook", "ToolCall"),
        *("ConfigurationError", "QdrantConnectionError", "CohereAPIError"),
    } <= set(bythebook.__all__)
    assert set(bythebook.__all__) <= set(dir(bythebook))
    assert bythebook.__version__ == version("bythebook")


@pytest.mark.parametrize("name", bythebook.__all__)
def test_every_public_name_is_importable_and_documented(name: str) -> None:
    thing = getattr(bythebook, name)
    assert thing.__name__ == name
    assert thing.__doc__


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Zebra'"):
        _ = bythebook.Zebra  # type: ignore[attr-defined]
