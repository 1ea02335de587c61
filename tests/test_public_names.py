"""The public names of the package."""

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
        *("Outcome", "IngestReport", "ResponseMetadata", "RetrievalContext", "RetrievalResult", "Settings"),
        *("AnswerCompleted", "SourcesFound", "State", "StateChanged", "TextDelta"),
        *("BookError", "ConfigurationError", "ContextOverflow", "DeadlineExceeded", "InputError", "NotFound"),
        *("ProviderError", "RateLimited", "RetrievalError", "Unavailable"),
    }


@pytest.mark.parametrize("name", bythebook.__all__)
def test_every_public_name_is_importable_and_documented(name: str) -> None:
    thing = getattr(bythebook, name)
    assert thing.__name__ == name
    assert thing.__doc__


def test_type_checking_imports_match_lazy_imports() -> None:
    """The imports for type checkers and the lazy imports are written twice. This test compares them."""
    tree = ast.parse(Path(bythebook.__file__).read_text(encoding="utf-8"))
    seen = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("bythebook.")
        for alias in node.names
    }
    assert set(seen) == set(bythebook.__all__)
    assert all(getattr(importlib.import_module(home), name) is getattr(bythebook, name) for name, home in seen.items())


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Zebra'"):
        _ = bythebook.Zebra
