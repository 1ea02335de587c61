"""The figures of the proof are what they say they are."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bythebook.errors import InputError
from bythebook.evals.proof import Pairs, told

EVIDENCE = ["The lamp was lit in 1823.", "It stands on the north cliff."]


def _file(tmp_path: Path, *rows: dict[str, object]) -> Path:
    file = tmp_path / "pairs.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return file


def test_claims_are_read_from_a_file(tmp_path: Path) -> None:
    sections = [{"section_header": "Lamp", "text": "The lamp was lit in 1823."}]
    pairs = Pairs(
        _file(
            tmp_path,
            {"claim": "The lamp was lit in 1823.", "evidence": EVIDENCE, "label": "supported"},
            {"claim": "Oysters sing at dawn.", "gold_evidence": sections, "label": "REFUTES"},
        )
    )
    assert pairs.labels.tolist() == [1.0, 0.0]
    assert pairs.claims[0].passages[0].text == "\n".join(EVIDENCE)
    assert pairs.claims[1].passages[0].heading_hierarchy == ("Lamp",)


def test_claims_of_one_kind_cannot_be_told_apart(tmp_path: Path) -> None:
    row: dict[str, object] = {"claim": "The lamp was lit in 1823.", "evidence": EVIDENCE, "label": "supported"}
    with pytest.raises(InputError, match="claims that are supported and claims that are not"):
        Pairs(_file(tmp_path, row))


def test_a_row_without_a_claim_is_named_by_its_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"pairs.jsonl, line 1: needs an object with claim\."):
        Pairs(_file(tmp_path, {"label": "supported"}))


def test_the_figures_are_of_both_kinds_alike() -> None:
    rows = [{"confidence": sure, "milliseconds": 2.0} for sure in (0.9, 0.4, 0.7, 0.4, 0.1, 0.1)]
    figures, plots = told(np.array([1.0, 1.0, 0.0, 0.0, 0.0, 0.0]), rows, seed=1)
    # Of eight pairs six are in the right order and one is a tie; one of two is accepted, one of four others is.
    assert (figures["auroc"], figures["balanced_accuracy"]) == (0.8125, 0.625)
    assert (figures["claims"], figures["milliseconds_per_claim"]) == (6, 2.0)
    assert figures["accepted"] == {"supported": 0.5, "others": 0.25}
    assert len(plots) == 2
