"""What publishes the project: workflows, forms, the composite action with its own shell steps, and one version."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
LIGHTHOUSE = Path(__file__).parent / "books" / "lighthouse"
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
FILES = sorted((ROOT / ".github").rglob("*.yml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_workflow_and_form_is_valid_and_uses_existing_targets(path: Path) -> None:
    read: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    runs = [step["run"] for job in read.get("jobs", {}).values() for step in job["steps"] if "run" in step]
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert {target for run in runs for target in re.findall(r"make ([a-z]+)", run)} <= targets
    assert read


def test_ci_runs_every_supported_version() -> None:
    ci = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    supported = [name.rpartition(" ")[2] for name in project["classifiers"] if "Python :: 3." in name]
    assert ci["jobs"]["test"]["strategy"]["matrix"]["python"] == supported


@pytest.mark.parametrize(
    ("question", "passes"),
    [
        pytest.param(
            "- question: How often does the horn sound?\n  words: every ninety seconds\n", True, id="answered"
        ),
        pytest.param("- question: How often does the horn sound?\n  words: every year\n", False, id="broken"),
    ],
)
def test_the_action_runs_its_own_steps(model_folder: Path, tmp_path: Path, question: str, passes: bool) -> None:
    (tmp_path / "questions.yaml").write_text(question, encoding="utf-8")
    inputs = {name: given.get("default", "") for name, given in ACTION["inputs"].items()}
    inputs |= {"sources": str(LIGHTHOUSE), "questions": "questions.yaml"}
    environment = {
        "HOME": str(tmp_path),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}/usr/bin:/bin",
        "BYTHEBOOK_MODEL_FOLDER": str(model_folder),
        "GITHUB_ACTION_PATH": str(ROOT),
    }
    codes = []
    for step in ACTION["runs"]["steps"]:
        given = {
            name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: inputs[found[1]], value)
            for name, value in step.get("env", {}).items()
        }
        done = subprocess.run(
            ["/bin/bash", "-eo", "pipefail", "-c", step["run"]],
            cwd=tmp_path, env=environment | given, capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
        codes.append(done.returncode)
    assert codes == [0, 0, 0 if passes else 1]


def test_the_version_is_said_once() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    places = [path for path in (ROOT / "src").rglob("*.py") if f'"{version}"' in path.read_text(encoding="utf-8")]
    assert places == []
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
