"""Follow-up questions rewritten by the rule, compared with a person's: python -m bench.rewrite_terms COLLECTION

COLLECTION is a folder of conversations without documents, as CANARD or CAsT has them. The index terms of the question
as it was put and of our text are compared with those of the person's rewrite.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean

from bythebook.conversations.followups import Exchange
from bythebook.conversations.followups.rules import make_standalone
from bythebook.evals import Metrics
from bythebook.evals.datasets import has_file, read_rows
from bythebook.evals.metrics import mean_intervals
from bythebook.index.terms import Bm25Terms

Turn = tuple[str, str, list[Exchange]]
"""A question, its human rewrite, and the history."""


def compare_terms(asked: Iterable[Turn]) -> tuple[Metrics, dict[str, list[float]]]:
    """Compare our text with the human rewrite by their index terms. Also return each F1."""
    words = Bm25Terms(100.0)
    overlaps: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    self_contained: list[bool] = []
    dependent: list[bool] = []
    for question, rewrite, history in asked:
        text, expected = make_standalone(question, history).text, words.terms(rewrite)
        overlaps["last_turn"].append(term_overlap(words.terms(question), expected))
        overlaps["ours"].append(term_overlap(words.terms(text), expected))
        complete = expected <= words.terms(question)
        (self_contained if complete else dependent).append((text == question) is complete)
    metrics = {
        name: dict(zip(("precision", "recall", "f1"), _column_means(o), strict=True)) for name, o in overlaps.items()
    }
    result: Metrics = {
        "questions": len(self_contained) + len(dependent),
        **metrics,
        "self_contained": {"questions": len(self_contained), "left_alone": _fraction(self_contained)},
        "dependent": {"questions": len(dependent), "added_to": _fraction(dependent)},
    }
    return result, {name: [f1 for *_, f1 in values] for name, values in overlaps.items()}


def read_turns(folder: Path) -> Iterable[Turn]:
    """Read conversations without a corpus: examples.jsonl in the layout of CANARD, or turns.jsonl in that of CAsT."""
    if has_file(folder, "examples"):
        for row in read_rows(folder, "examples", needs=("history", "question", "rewrite")):
            title, section, *said = row["history"]
            # The asker was shown the article and its section, so they are treated as a first question.
            yield row["question"], row["rewrite"], [Exchange(f"{title}, {section}"), *_to_exchanges(said, step=2)]
        return
    for row in read_rows(folder, "turns", needs=("_id", "history", "question", "rewrite")):
        number = int(row["_id"].rsplit("_", 1)[1])
        # Only some years of CAsT contain the answers between the questions.
        step = 2 if len(row["history"]) > number - 1 else 1
        yield row["question"], row["rewrite"], _to_exchanges(row["history"], step=step)


def _to_exchanges(said: Sequence[str], *, step: int) -> list[Exchange]:
    answers = [*said[1::step], ""] if step == 2 else [""] * len(said)
    return [Exchange(question, answer) for question, answer in zip(said[::step], answers, strict=False)]


def _fraction(right: Sequence[bool]) -> float | None:
    return round(fmean(right), 4) if right else None


def term_overlap(found: frozenset[int], expected: frozenset[int]) -> tuple[float, float, float]:
    """Precision, recall and their harmonic mean."""
    both = len(found & expected)
    precision = both / len(found) if found else float(not expected)
    recall = both / len(expected) if expected else 1.0
    f1 = 2 * precision * recall / (precision + recall) if both else float(not found and not expected)
    return precision, recall, f1


def _column_means(values: Sequence[tuple[float, float, float]]) -> list[float]:
    return [round(fmean(column), 4) for column in zip(*values, strict=True)]


if __name__ == "__main__":
    figures, columns = compare_terms(turn for turn in read_turns(Path(sys.argv[1])) if turn[2])
    print(json.dumps({**figures, "intervals": mean_intervals(columns, seed=1)}, indent=2))
