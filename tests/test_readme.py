"""What the README and the manual show works: every block of the README is run, every command and link exists."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer

from bythebook.cli.app import app

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
COMMANDS = [
    line.removeprefix("$ ").partition("#")[0].strip()
    for kind, block in BLOCKS
    if kind == "console"
    for line in block.splitlines()
]
SHELL = {
    "make demo": ["make", "--dry-run", "demo"],
    "make test": ["make", "--dry-run", "test"],
    "pipx install .": [sys.executable, "-m", "pip", "install", "--dry-run", "--no-deps", "--no-build-isolation", "."],
}
"""Commands that set a machine up are not run to the end."""


def run(command: list[str], folder: Path, model_folder: Path, *, home: Path | None = None) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env={"HOME": str(home or folder), "BYTHEBOOK_MODEL_FOLDER": str(model_folder), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_block_of_the_readme_runs(model_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for name in ("ingesting.md", "concepts.md", "asking.md"):
        (tmp_path / "docs" / name).write_bytes((ROOT / "docs" / name).read_bytes())
    printed = ""
    for command in COMMANDS:
        if command in SHELL:
            run(SHELL[command], ROOT, model_folder, home=tmp_path)
        elif command != "bythebook serve":  # the journeys of `serve` start it
            printed += run([sys.executable, "-m", *shlex.split(command)], tmp_path, model_folder)
    (sample,) = (block for kind, block in BLOCKS if kind == "text")
    assert " ".join(sample.split()) in re.sub(r"See also:.*?(?=\[1\])", "", " ".join(printed.split()))
    (program,) = (block for kind, block in BLOCKS if kind == "python")
    assert "nothing is lost" in run([sys.executable, "-c", program], tmp_path, model_folder)


def test_the_readme_has_no_kinds_of_blocks_that_are_not_run() -> None:
    assert {kind for kind, _ in BLOCKS} == {"console", "text", "python"}
    assert {command.split()[0] for command in COMMANDS} == {"make", "pipx", "bythebook"}


def shown_commands() -> list[Any]:
    found = {
        (command, path.name)
        for path in PAGES
        if "transcripts" not in path.parts
        for command in re.findall(r"^\$ (bythebook .*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    return [pytest.param(command, id=f"{page}: {command[:60]}") for command, page in sorted(found)]


@pytest.mark.parametrize("command", shown_commands())
def test_every_command_of_the_manual_has_existing_options(command: str) -> None:
    found: Any = typer.main.get_command(app)
    words = shlex.split(re.split(r" [|>&]| \\$|<", command)[0], comments=True)[1:]
    while words and words[0] in getattr(found, "commands", {}):
        found = found.commands[words.pop(0)]
    known = {name for parameter in found.params for name in parameter.opts} | {"--help"}
    assert {word.partition("=")[0] for word in words if word.startswith("--")} <= known


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_local_link_and_picture_leads_to_a_file(path: Path) -> None:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    links = re.findall(r"\]\((?!https?:|mailto:|#)([^)#\s]+)", text)
    assert [link for link in links if not (path.parent / link).exists()] == []


def test_the_moving_picture_is_animated_and_small() -> None:
    picture = (ROOT / "docs" / "pictures" / "question-to-sentence.png").read_bytes()
    assert b"acTL" in picture[:100]
    assert len(picture) < 300_000


def test_the_versions_of_python_are_said_once() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    minors = [name.rpartition(" ")[2] for name in project["classifiers"] if "Python :: 3." in name]
    assert minors == ["3.11", "3.12", "3.13", "3.14"]
    assert project["readme"] == "README.md"


def test_every_page_of_the_manual_has_a_place_in_the_navigation_of_its_site() -> None:
    listed = re.findall(
        r"^\s+- (\S+\.md)$", (ROOT / "website" / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE
    )
    docs = ROOT / "docs"
    pages = [path.relative_to(docs).as_posix() for path in docs.rglob("*.md")]
    assert sorted(listed) == sorted(pages)
