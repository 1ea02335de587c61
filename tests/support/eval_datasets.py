"""A dataset of two documents, small enough to compute its metrics by hand."""

from __future__ import annotations

import json
from pathlib import Path

LAMP = "The lamp was lit in 1823. Every keeper trims the wick at dawn. Oil is brought by boat."
HORN = "The horn sounds twice a minute. It is driven by steam. Nobody sleeps when it sounds."


def write(file: Path, *rows: object) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    return file


def signals(folder: Path) -> Path:
    """Two documents with titles, a question about each, and one that neither answers."""
    write(
        folder / "corpus.jsonl",
        {"_id": "a", "title": "Lamp", "text": LAMP},
        {"_id": "b", "title": "Horn", "text": HORN},
    )
    write(
        folder / "queries.jsonl",
        {"_id": "1", "text": "When was the lamp lit?", "answers": ["1823"]},
        {"_id": "2", "text": "What drives the horn?", "answers": ["steam"]},
        {"_id": "3", "text": "Why do cats purr at night?", "answers": [], "is_impossible": True, "context_id": "c#0"},
        {"_id": "4", "text": "What does nobody judge?", "answers": []},
    )
    (folder / "qrels.tsv").write_text("query\tdocument\tgrade\n1\ta\t1\n2\tb\t1\n", encoding="utf-8")
    return folder
