"""Coverage: how much of each source the last look at it could read, for `status` to show."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bythebook.sources import Coverage, LeftOut, Skipped

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_FILE = "coverage.json"


def remember_coverage(folder: Path, seen: Mapping[str, Coverage]) -> None:
    """Write down what was seen now, beside what is known of other sources."""
    known = recall_coverage(folder) | dict(seen)
    new = folder / f"{_FILE}.new"
    new.write_text(json.dumps({name: asdict(coverage) for name, coverage in known.items()}), encoding="utf-8")
    new.replace(folder / _FILE)


def recall_coverage(folder: Path) -> dict[str, Coverage]:
    """What is known of each source; empty when the file is lost or damaged, until the next ingest."""
    try:
        return as_coverage(json.loads((folder / _FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def as_coverage(data: Mapping[str, Any]) -> dict[str, Coverage]:
    """What was written down, as it was."""
    return {name: _coverage(row) for name, row in data.items()}


def _coverage(row: Mapping[str, Any]) -> Coverage:
    skipped = [Skipped(**entry) for entry in row["skipped"]]
    return Coverage(row["listed"], skipped, [LeftOut(**entry) for entry in row.get("left_out", [])])
