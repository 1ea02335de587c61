"""The workflow of docs/continuous.md is valid YAML with existing commands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from bythebook.cli.app import app

MANUAL = (Path(__file__).parents[1] / "docs" / "continuous.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```yaml\n(.*?)```", MANUAL, re.DOTALL)
CONSOLE = re.findall(r"^\$ (bythebook .*)$|`(bythebook [^`]*)`", MANUAL, re.MULTILINE)


def steps() -> list[dict[str, Any]]:
    workflow = yaml.safe_load(EXAMPLES[0])
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def commands() -> list[str]:
    runs = [step["run"] for step in (*steps(), *yaml.safe_load(EXAMPLES[1])) if "run" in step]
    ours = [
        line.partition("||")[0].strip() for run in runs for line in run.splitlines() if line.startswith("bythebook")
    ]
    return list(dict.fromkeys([*ours, *("".join(found) for found in CONSOLE)]))


def test_the_workflow_ingests_before_golden_questions() -> None:
    runs = [step["run"].split()[:3] for step in steps() if "run" in step]
    assert [run[1] for run in runs if run[0] == "bythebook"] == ["ingest", "eval"]
    # YAML parses the key "on" as a boolean.
    assert set(yaml.safe_load(EXAMPLES[0])[True]) == {"push", "pull_request"}


@pytest.mark.parametrize("command", commands())
def test_every_command_of_the_manual_exists(command: str) -> None:
    found: Any = typer.main.get_command(app)
    words = shlex.split(command)[1:]
    while words and words[0] in getattr(found, "commands", {}):
        found = found.commands[words.pop(0)]
    assert found.name != "bythebook", f"there is no command {words[0]!r}"
    known = {name for parameter in found.params for name in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= known
