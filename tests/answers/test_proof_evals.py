"""The metrics of the proof evaluation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bythebook.errors import InputError
from bythebook.evals.proof import ClaimSet, compute_metrics

EVIDENCE = ["The lamp was lit in 1823.", "It stands on the north cliff."]


def _file(tmp_path: Path, *rows: dict[str, object]) -> Path:
    file = tmp_path / "pairs.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return file


def test_claims_are_read_from_a_file(tmp_path: Path) -> None:
    sections = [{"section_header": "Lamp", "text": "The lamp was lit in 1823."}]
    pairs = ClaimSet(
        _file(
            tmp_path,
            {"claim": "The lamp was lit in 1823.", "evidence": EVIDENCE, "label": "supported"},
            {"claim": "Oysters sing at dawn.", "gold_evidence": sections, "label": "REFUTES"},
        )
    )
    assert [claim.supported for claim in pairs.claims] == [True, False]
    assert pairs.claims[0].passages[0].text == " ".join(EVIDENCE)
    assert pairs.claims[1].passages[0].heading_hierarchy == ("Lamp",)


def test_claims_with_one_label_cannot_be_evaluated(tmp_path: Path) -> None:
    row: dict[str, object] = {"claim": "The lamp was lit in 1823.", "evidence": EVIDENCE, "label": "supported"}
    with pytest.raises(InputError, match="claims that are supported and claims that are not"):
        ClaimSet(_file(tmp_path, row))


def test_a_row_without_a_claim_is_reported_by_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"pairs.jsonl, line 1: needs an object with claim\."):
        ClaimSet(_file(tmp_path, {"label": "supported"}))


def test_metrics_weigh_both_labels_equally() -> None:
    confidence = (0.9, 0.4, 0.7, 0.4, 0.1, 0.1)
    rows = [{"confidence": sure, "kept": sure >= 0.5, "milliseconds": 2.0} for sure in confidence]
    figures, plots = compute_metrics([True, True, False, False, False, False], rows, seed=1)
    # Of eight pairs, six are in the right order and one is a tie. One of two and one of four are accepted.
    assert (figures["auroc"], figures["balanced_accuracy"]) == (0.8125, 0.625)
    assert (figures["claims"], figures["milliseconds_per_claim"]) == (6, 2.0)
    assert figures["accepted"] == {"supported": 0.5, "others": 0.25}
    assert (figures["false_keeps"], figures["false_removals"]) == (0.25, 0.5)
    assert len(plots) == 2


def test_a_folder_of_labelled_claims_is_read_with_the_kind_of_each(tmp_path: Path) -> None:
    claims = [
        {"text": "The lamp was lit in 1823.", "label": True, "kind": "close"},
        {"text": "The lamp was lit in 1832.", "label": False, "kind": "number"},
    ]
    (tmp_path / "claims.jsonl").write_text(json.dumps({"evidence": EVIDENCE, "claims": claims}), encoding="utf-8")
    read = ClaimSet(tmp_path).claims
    assert [(claim.kind, claim.supported) for claim in read] == [("close", True), ("number", False)]
    assert {claim.passages[0].text for claim in read} == {" ".join(EVIDENCE)}
