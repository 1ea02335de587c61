"""What the model may learn from, and what is kept aside to try it on."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    Row = dict[str, Any]


def rows(path: Path) -> list[Row]:
    """What `gather` wrote."""
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def articles_aside(asked: Iterable[Row]) -> set[str]:
    """The articles of squad2 that no example of the training shows a sentence of: every third by title."""
    return set(sorted({row["about"] for row in asked if row["set"] == "squad2"})[::3])


def question_aside(row: Row, articles: set[str]) -> bool:
    """Whether a question is kept aside: by its article, else every second one by its words."""
    return row["about"] in articles if row["set"] == "squad2" else _every_second(row["question"])


def claim_aside(row: Row) -> bool:
    """Whether a claim is kept aside, with all others on the same page."""
    return _every_second(row["title"].split(" > ")[0] or row["evidence"])


def _every_second(text: str) -> bool:
    return hashlib.sha256(text.encode()).digest()[0] % 2 == 0
