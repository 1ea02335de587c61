"""The figures of the proof are what they say they are."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from answers.letters import Letters
from bythebook.evals.proof import Pairs, auroc, balanced_accuracy, measure


def test_auroc_counts_pairs_in_the_right_order_and_ties_half() -> None:
    truth = np.array([1.0, 1.0, 0.0, 0.0])
    assert auroc(truth, np.array([0.9, 0.4, 0.4, 0.1])) == pytest.approx(0.875)


def test_balanced_accuracy_weighs_both_answers_the_same() -> None:
    assert balanced_accuracy(np.array([1.0, 0.0, 0.0, 0.0]), np.array([True, True, False, False])) == pytest.approx(
        5 / 6
    )


async def test_claims_are_measured_from_a_file(tmp_path: Path) -> None:
    evidence = ["The lamp was lit in 1823.", "It stands on the north cliff."]
    sections = [{"section_header": "Lamp", "text": "The lamp was lit in 1823."}]
    rows = [
        {"claim": "The lamp was lit in 1823.", "evidence": evidence, "label": "supported"},
        {"claim": "The lamp was lit in 1901.", "evidence": evidence, "label": "not_supported"},
        {"claim": "Oysters sing at dawn.", "gold_evidence": sections, "label": "REFUTES"},
    ]
    file = tmp_path / "pairs.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    figures = await measure(Pairs(file), Letters(), progress=lambda *_: None)
    assert (figures["claims"], figures["auroc"], figures["balanced_accuracy"]) == (3, 1.0, 1.0)
