"""YAML and JSON files of projects, read without doing what their tags say."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from bythebook.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

_LARGEST = 5_000_000


def mapping(file: Path) -> dict[str, Any] | None:
    """The fields of a file. None where there is no such file, or it cannot be understood."""
    try:
        return configuration(file)
    except (OSError, ConfigurationError):
        return None


def configuration(file: Path) -> dict[str, Any]:
    """The fields of a file somebody relies on. Raises ConfigurationError that says what is wrong with it."""
    if file.stat().st_size > _LARGEST:
        raise ConfigurationError(f"{file} is larger than {_LARGEST // 1_000_000} MB: that is no configuration.")
    text = file.read_text(encoding="utf-8-sig", errors="replace")
    try:
        found = json.loads(text) if file.suffix == ".json" else _yaml(text)
    except (ValueError, RecursionError) as exc:
        raise ConfigurationError(
            f"{file} cannot be read: {exc}. Correct it, or read the pages as a plain folder."
        ) from exc
    if not isinstance(found, dict):
        raise ConfigurationError(f"{file} has no fields. Correct it, or read the pages as a plain folder.")
    return found


def _yaml(text: str) -> Any:
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        """Builds plain values only; a tag nobody knows says no more than what stands behind it."""

    def plain(loader: Any, suffix: str, node: Any) -> Any:
        if isinstance(node, yaml.ScalarNode):
            return Tagged(suffix, loader.construct_scalar(node))
        if isinstance(node, yaml.SequenceNode):
            return Tagged(suffix, loader.construct_sequence(node, deep=True))
        return Tagged(suffix, loader.construct_mapping(node, deep=True))

    Loader.add_multi_constructor("!", plain)
    Loader.add_multi_constructor("tag:yaml.org,2002:python/", plain)
    try:
        return yaml.load(text, Loader=Loader)  # noqa: S506 - a safe loader with harmless additions
    except yaml.YAMLError as exc:
        mark = getattr(exc, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark else ""
        raise ValueError(f"it is not valid YAML{where}") from exc


class Tagged:
    """A value with a tag of its own: `!ENV`, or a Python name. Its tag is known, and never acted on."""

    def __init__(self, tag: str, value: Any) -> None:
        self.tag, self.value = tag, value
