"""The follow-up evaluation, on a conversation small enough to count by hand."""

from __future__ import annotations

import json
from pathlib import Path

from bench.rewrite_terms import compare_terms, read_turns


def test_added_terms_are_compared_with_a_human_rewrite(tmp_path: Path) -> None:
    said = ["What is throat cancer?", "Is it treatable?"]
    rows = [
        {"_id": "1_1", "history": [], "question": said[0], "rewrite": said[0]},
        {"_id": "1_2", "history": said[:1], "question": said[1], "rewrite": "Is throat cancer treatable?"},
        {"_id": "1_3", "history": said, "question": "What is anemia?", "rewrite": "What is anemia?"},
    ]
    (tmp_path / "turns.jsonl").write_text("\n".join(map(json.dumps, rows)))
    figures, each = compare_terms(turn for turn in read_turns(tmp_path) if turn[2])
    assert each == {"last_turn": [0.5, 1.0], "ours": [1.0, 1.0]}
    assert figures == {
        "questions": 2,
        "last_turn": {"precision": 1.0, "recall": 0.6667, "f1": 0.75},
        "ours": {"precision": 1.0, "recall": 1.0, "f1": 1.0},
        "self_contained": {"questions": 1, "left_alone": 1.0},
        "dependent": {"questions": 1, "added_to": 1.0},
    }


def test_the_article_title_is_the_subject_of_an_example(tmp_path: Path) -> None:
    row = {
        "history": ["Frank Zappa", "Disbandment", "Who left?", "Zappa."],
        "question": "Why?",
        "rewrite": "Why, Zappa?",
    }
    (tmp_path / "examples.jsonl").write_text(json.dumps(row))
    [(question, rewrite, history)] = read_turns(tmp_path)
    assert (question, rewrite) == ("Why?", "Why, Zappa?")
    assert [(e.question, e.answer) for e in history] == [("Frank Zappa, Disbandment", ""), ("Who left?", "Zappa.")]
