"""The coverage file: how much of each source the last ingest could read. `bythebook status` shows it."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bythebook.sources import Coverage, ExcludedPage, SkippedPage

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_FILE = "coverage.json"


def save_coverage(folder: Path, coverage: Mapping[str, Coverage]) -> None:
    """Write the coverage of these sources. The entries of other sources stay."""
    merged = load_coverage(folder) | dict(coverage)
    new = folder / f"{_FILE}.new"
    new.write_text(json.dumps({name: asdict(entry) for name, entry in merged.items()}), encoding="utf-8")
    new.replace(folder / _FILE)


def load_coverage(folder: Path) -> dict[str, Coverage]:
    """The coverage of each source. Empty if the file is missing or damaged: the next ingest writes it."""
    try:
        return parse_coverage(json.loads((folder / _FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def parse_coverage(data: Mapping[str, Any]) -> dict[str, Coverage]:
    return {name: _parse_entry(entry) for name, entry in data.items()}


def _parse_entry(entry: Mapping[str, Any]) -> Coverage:
    skipped = [SkippedPage(**page) for page in entry["skipped"]]
    return Coverage(entry["listed"], skipped, [ExcludedPage(**page) for page in entry.get("left_out", [])])
