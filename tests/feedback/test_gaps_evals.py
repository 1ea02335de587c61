"""Measuring how well unanswered questions come together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.gap_topics import group_questions
from bythebook.book import Book
from bythebook.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

ROWS = [
    {"text": "How do I signal a ship by radio?", "context_id": "Radio#0"},
    {"text": "How is a ship called by radio?", "context_id": "Radio#0"},
    {"text": "Is a ship called by radio at night?", "context_id": "Radio#1"},
    {"text": "Why do cats purr?", "context_id": "Cats#0"},
]


async def test_purity_is_the_share_of_questions_with_the_majority_topic_of_their_cluster(
    shelved: Path, model_folder: Path
) -> None:
    async with Book.open(Settings(data_dir=shelved, model_folder=model_folder)) as book, book.snapshot() as snapshot:
        figures = await group_questions(snapshot, book.embedder, ROWS, progress=lambda *_: None)
        nothing = await group_questions(snapshot, book.embedder, ROWS[3:], progress=lambda *_: None)
    assert figures == {
        "questions": 4,
        "groups": 2,
        "alone": 0.25,
        "purity_by_article": 1.0,
        "purity_by_paragraph": 0.75,
        "purity_by_article_together": 1.0,
    }
    assert (nothing["alone"], nothing["purity_by_article_together"]) == (1.0, 0.0)
