"""Settings: read once, at the door. Arguments win over the environment, `.env`, `bythebook.toml` and defaults."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints

from bythebook.errors import ConfigurationError

PREFIX = "BYTHEBOOK_"
FILE = "bythebook.toml"
DOTENV = ".env"

_ASSIGNMENT = re.compile(
    r"""\s*(?:export\s+)?(?P<name>\w+)\s*=\s*(?:(?P<mark>["'])(?P<quoted>.*)(?P=mark)|(?P<plain>.*?))\s*(?:(?<=\s)\#.*)?"""
)

Style = Literal["auto", "docusaurus", "mkdocs", "sphinx", "mdbook", "plain"]


def _default_model_folder() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "bythebook" / "models"


def _setting(default: Any, help_text: str, *, least: float | None = None, most: float | None = None) -> Any:
    metadata = {"help": help_text, "least": least, "most": most}
    if callable(default):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every setting there is. A table in `bythebook.toml` prefixes its names: `[chunk] tokens` is `chunk_tokens`."""

    data_dir: Path = _setting(Path(".bythebook"), "The folder that holds everything this book keeps on disk.")
    model_folder: Path = _setting(_default_model_folder, "Where embedding models are kept, shared between books.")
    site_url: str = _setting("", "The address the pages are published under. Empty: links open the files themselves.")
    site_style: Style = _setting("auto", "Whose anchors and addresses the published pages have.")
    chunk_tokens: int = _setting(220, "The largest chunk, in the embedder's tokens.", least=32, most=4096)
    chunk_overlap: int = _setting(0, "How much of a chunk may be repeated in the next.", least=0, most=512)
    retrieval_top_k: int = _setting(5, "How many passages are found for a question.", least=1, most=20)
    retrieval_threshold: float | Literal["auto"] = _setting(
        "auto", "When the book covers a question: the calibrated rule, or a least cosine.", least=0.0, most=1.0
    )

    origins: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    """Where each value came from, for those that are not defaults."""

    @classmethod
    def load(cls, arguments: Mapping[str, Any] | None = None, *, folder: Path | None = None) -> Settings:
        """Collect the settings. `arguments` win over everything; None among them means not given.

        Raises ConfigurationError for a name nobody knows and for a value that cannot be used, naming its origin.
        """
        here = folder or Path.cwd()
        values: dict[str, Any] = {}
        origins: dict[str, str] = {}
        for origin, found in (
            (FILE, _from_toml(here / FILE)),
            (DOTENV, _from_environment(_dotenv(here / DOTENV))),
            ("environment", _from_environment(os.environ)),
            ("argument", {name: value for name, value in (arguments or {}).items() if value is not None}),
        ):
            for name, value in found.items():
                values[name] = _checked(name, value, origin)
                origins[name] = origin
        return cls(**values, origins=origins)

    def shown(self) -> list[tuple[str, str, str, str]]:
        """Each setting: name, value, origin, and what it is for."""
        return [
            (name, str(getattr(self, name)), self.origins.get(name, "default"), known.metadata["help"])
            for name, known in KNOWN.items()
        ]


KNOWN = {known.name: known for known in fields(Settings) if known.name != "origins"}
_TYPES = get_type_hints(Settings)


def _from_toml(path: Path) -> dict[str, Any]:
    try:
        data = _parsed(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as exc:
        raise ConfigurationError(f"{path} cannot be read: {exc}") from exc
    flat: dict[str, Any] = {}
    for name, value in data.items():
        if isinstance(value, dict):
            flat.update({f"{name}_{inner}": inner_value for inner, inner_value in value.items()})
        else:
            flat[name] = value
    return flat


def _parsed(toml: str) -> dict[str, Any]:
    # Imported only where there is a file: a first answer waits for every import.
    import tomllib

    return tomllib.loads(toml)


def _from_environment(variables: Mapping[str, str]) -> dict[str, str]:
    return {name[len(PREFIX) :].lower(): value for name, value in variables.items() if name.startswith(PREFIX)}


def _dotenv(path: Path) -> dict[str, str]:
    """The assignments in a `.env` file. Quotes and comments are removed; nothing is expanded or run."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigurationError(f"{path} cannot be read: {exc}") from exc
    found = (_ASSIGNMENT.fullmatch(line) for line in lines)
    return {match["name"]: match["quoted"] or match["plain"] or "" for match in found if match}


def _checked(name: str, value: Any, origin: str) -> Any:
    """The value in its setting's own type, within its bounds."""
    if name not in KNOWN:
        import difflib

        near = difflib.get_close_matches(name, KNOWN, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else " 'bythebook config' lists them all."
        raise ConfigurationError(f"there is no setting {name!r} (from {origin}).{hint}")
    try:
        converted = _converted(_TYPES[name], value)
    except ValueError as exc:
        raise ConfigurationError(f"{name} cannot be {value!r} (from {origin}): {exc}") from exc
    least, most = KNOWN[name].metadata["least"], KNOWN[name].metadata["most"]
    if least is not None and not isinstance(converted, str) and not least <= converted <= most:
        raise ConfigurationError(f"{name} must be from {least} to {most}, not {value!r} (from {origin}).")
    return converted


def _converted(kind: Any, value: Any) -> Any:
    choices = [choice for choice in get_args(kind) if isinstance(choice, str)]
    literal = next((get_args(part) for part in get_args(kind) if get_args(part)), ())
    if value in (*choices, *literal):
        return value
    if choices:
        raise ValueError(f"use one of {', '.join(choices)}")
    if kind in (Path, str):
        return _text(kind, value)
    return _number(kind, value)


def _text(kind: Any, value: Any) -> Any:
    if not isinstance(value, str | Path):
        raise ValueError("use text in quotes")
    if kind is str:
        return str(value)
    if not str(value).strip():
        raise ValueError("name a folder")
    return Path(value).expanduser()


def _number(kind: Any, value: Any) -> float:
    """The value as a whole number, or as any number. Text is read as one, because the environment has nothing else."""
    whole = kind is int
    try:
        if isinstance(value, bool) or (whole and isinstance(value, float)):
            raise TypeError
        return int(value) if whole else float(value)
    except (TypeError, ValueError):
        raise ValueError("use a whole number" if whole else "use a number") from None
