"""The names a user of the library imports."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

import bythebook


def test_the_public_names_are_these() -> None:
    assert bythebook.__all__ == sorted(bythebook.__all__)
    assert set(bythebook.__all__) == {
        *("AgentRequest", "AgentResponse", "Book", "Citation", "Filters"),
        *("Outcome", "Report", "ResponseMetadata", "RetrievalContext", "RetrievalResult", "Settings"),
        *("Answered", "Entered", "Said", "Searched", "State"),
        *("BookError", "ConfigurationError", "ContextOverflow", "DeadlineExceeded", "InputError", "NotFound"),
        *("ProviderError", "RateLimited", "RetrievalError", "Unavailable"),
    }


@pytest.mark.parametrize("name", bythebook.__all__)
def test_every_public_name_can_be_imported_and_says_what_it_is(name: str) -> None:
    thing = getattr(bythebook, name)
    assert thing.__name__ == name
    assert thing.__doc__


def test_types_and_values_come_from_the_same_places() -> None:
    """What a type checker sees and what happens are written down twice; here they are compared."""
    tree = ast.parse(Path(bythebook.__file__).read_text(encoding="utf-8"))
    seen = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("bythebook.")
        for alias in node.names
    }
    assert set(seen) == set(bythebook.__all__)
    assert all(getattr(importlib.import_module(home), name) is getattr(bythebook, name) for name, home in seen.items())


def test_what_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Zebra'"):
        _ = bythebook.Zebra
