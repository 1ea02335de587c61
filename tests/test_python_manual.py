"""The examples of docs/python.md run as written."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from inspect import CO_COROUTINE
from pathlib import Path
from types import FunctionType

import pytest

from bythebook import Book, Settings

LIGHTHOUSE = Path(__file__).parent / "books" / "lighthouse"
MANUAL = Path(__file__).parent.parent / "docs" / "python.md"
WHOLE, *PARTS = re.findall(r"^```python\n(.*?)^```", MANUAL.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


async def test_the_examples_run_in_order(
    shelved: Path,
    model_folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shutil.copytree(shelved, tmp_path / ".bythebook")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BYTHEBOOK_MODEL_FOLDER", str(model_folder))
    async with Book.open(Settings.load()) as book:
        names = {"book": book}
        for example in PARTS:
            code = compile(example, str(MANUAL), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            told = FunctionType(code, names)()
            if code.co_flags & CO_COROUTINE:
                await told
    printed = capsys.readouterr().out
    assert "The horn gives two blasts of three seconds every ninety seconds." in printed
    assert re.search(r"assistant \*\*[^\n]+\*\*\n\n[^\n]*A mantle lasts about thirty nights", printed)


def test_the_first_program_runs(model_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(LIGHTHOUSE, tmp_path / "docs")
    done = subprocess.run(
        [sys.executable, "-c", WHOLE],
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "BYTHEBOOK_MODEL_FOLDER": str(model_folder)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
