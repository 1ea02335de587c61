"""YAML and JSON files of projects. YAML tags are recognised and never executed."""

import json
from pathlib import Path
from typing import Any

from bythebook.errors import ConfigurationError
from bythebook.sources.readers.front_matter import check_yaml

_MAX_BYTES = 5_000_000


def read_optional_mapping(file: Path) -> dict[str, Any] | None:
    """The fields of a file. None if the file does not exist or cannot be parsed."""
    try:
        return read_mapping(file)
    except (OSError, ConfigurationError):
        return None


def read_mapping(file: Path) -> dict[str, Any]:
    """The fields of a required file. Raises ConfigurationError with the reason if it cannot be parsed."""
    if file.stat().st_size > _MAX_BYTES:
        raise ConfigurationError(
            f"{file} is larger than {_MAX_BYTES // 1_000_000} MB, too large for a configuration file."
        )
    text = file.read_text(encoding="utf-8-sig", errors="replace")
    try:
        found = json.loads(text) if file.suffix == ".json" else _load_yaml(text)
    except (ValueError, RecursionError) as exc:
        raise ConfigurationError(
            f"{file} cannot be read: {exc}. Correct it, or read the pages as a plain folder."
        ) from exc
    if not isinstance(found, dict):
        raise ConfigurationError(f"{file} has no fields. Correct it, or read the pages as a plain folder.")
    return found


def _load_yaml(text: str) -> Any:
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        """Constructs plain values only. An unknown tag is kept as a `TaggedValue`."""

    def construct(loader: Any, suffix: str, node: Any) -> Any:
        if isinstance(node, yaml.ScalarNode):
            return TaggedValue(suffix, loader.construct_scalar(node))
        if isinstance(node, yaml.SequenceNode):
            return TaggedValue(suffix, loader.construct_sequence(node, deep=True))
        return TaggedValue(suffix, loader.construct_mapping(node, deep=True))

    Loader.add_multi_constructor("!", construct)
    Loader.add_multi_constructor("tag:yaml.org,2002:python/", construct)
    try:
        check_yaml(text)
        return yaml.load(text, Loader=Loader)  # noqa: S506 - a safe loader with harmless additions
    except yaml.YAMLError as exc:
        mark = getattr(exc, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark else ""
        raise ValueError(f"it is not valid YAML{where}") from exc


class TaggedValue:
    """A value with a tag such as `!ENV` or a Python name. The tag is recorded and never executed."""

    def __init__(self, tag: str, value: Any) -> None:
        self.tag, self.value = tag, value
