"""`bythebook eval`: its JSON has the documented keys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bench import quality
from bythebook.cli.app import app
from bythebook.errors import InputError
from tests.support.eval_datasets import signals, write


@pytest.fixture
def measure(model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs the command with `--json` in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BYTHEBOOK_MODEL_FOLDER", str(model_folder))

    def run(*arguments: object) -> dict[str, Any]:
        done = CliRunner().invoke(app, ["eval", *map(str, arguments), "--json"], catch_exceptions=True)
        if done.exception and not isinstance(done.exception, SystemExit):
            raise done.exception
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    return run


def test_each_suite_has_the_documented_keys(measure: Any, tmp_path: Path) -> None:
    folder = signals(tmp_path / "signals")
    ranks = {"ndcg_at_10", "recall_at_5", "recall_at_10", "mrr"}
    found = measure("retrieval", folder, "--html", tmp_path / "report.html")
    assert ranks <= found.keys()
    assert ranks == found["hybrid"].keys() == found["bm25"].keys() == found["dense"].keys()
    assert (found["ndcg_at_10"], found["questions"], found["documents"]) == (1.0, 2, 2)
    assert (tmp_path / "report.html").read_text(encoding="utf-8").count("<svg") == 3

    answers = measure("answers", folder)
    assert {"hit_at_1", "hit_at_2", "hit_at_3", "quotes_exact"} <= answers.keys()
    assert (answers["hit_at_3"], answers["quotes_exact"]) == (1.0, 1.0)
    assert answers["checking"]["milliseconds"] > 0

    told = {"auroc", "kept", "refused", "precision", "recall", "f1"}
    near, out = measure("refusal", folder), measure("refusal", folder, "--out-of-book")
    assert told <= near.keys() & out.keys()
    assert (near["questions"], out["questions"]) == ({"covered": 2, "foreign": 1}, {"covered": 1, "foreign": 1})
    assert near["auroc"] == 1.0


def test_the_followups_suite_has_the_documented_keys(measure: Any, tmp_path: Path) -> None:
    folder = signals(tmp_path / "talks")
    said = "|user|: What is the horn?\n|user|: What drives it?"
    row = {"_id": "2", "text": "|user|: What drives it?", "rewrite": "What drives the horn?", "history_questions": said}
    write(folder / "queries.jsonl", row)
    found = measure("followups", folder)
    assert all(found[name]["ndcg_at_10"] > 0 for name in ("last_turn", "ours", "rewrite"))
    assert found["share_of_the_way"] is None or found["share_of_the_way"] <= 1


def test_the_proof_suite_has_the_documented_keys(measure: Any, tmp_path: Path) -> None:
    evidence = ["The lamp was lit in 1823.", "It stands on the north cliff."]
    claims = [("The lamp was lit in 1823.", "supported"), ("The lamp was lit in 1901.", "not_supported")]
    rows = [{"claim": claim, "evidence": evidence, "label": label} for claim, label in claims]
    found = measure("proof", write(tmp_path / "lamp" / "pairs.jsonl", *rows))
    assert (found["auroc"], found["balanced_accuracy"], found["dataset"]) == (1.0, 1.0, "lamp")
    assert found["milliseconds_per_claim"] > 0


def test_quality_measures_existing_datasets_and_reports_missing_ones(
    measure: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    signals(tmp_path / "all" / "scifact")
    assert quality.main([str(tmp_path / "all"), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    verdicts = {one["name"]: one["verdict"] for one in found["metrics"]}
    assert verdicts.pop("retrieval scifact: ndcg_at_10") == "goal"
    assert set(verdicts.values()) == {"not measured"}
    assert [one["dataset"] for one in found["results"]] == ["scifact"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["retrieval", "nowhere"], "there is no 'nowhere'"),
        (["refusal", ".", "--out-of-book", "--foreign", "."], "use one of --out-of-book and --foreign"),
        (["golden", "nowhere.yaml"], "'bythebook eval suggest --out nowhere.yaml' drafts one"),
    ],
    ids=["no collection", "two ways", "no questions"],
)
def test_unusable_input_is_an_error(measure: Any, arguments: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        measure(*arguments)
