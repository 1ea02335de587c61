"""Front matter: YAML or TOML fields above the first line of a page."""

import re
import tomllib
from dataclasses import dataclass
from typing import Any

from bythebook.sources import Unreadable

_YAML = re.compile(r"---[ \t]*\n(.*?)(?:^|\n)(?:---|\.\.\.)[ \t]*(?:\n|$)", re.DOTALL)
_TOML = re.compile(r"\+\+\+[ \t]*\n(.*?)(?:^|\n)\+\+\+[ \t]*(?:\n|$)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The fields that determine the title and URL of a page. Empty if not set."""

    title: str = ""
    slug: str = ""
    id: str = ""


def parse_front_matter(text: str) -> tuple[FrontMatter, str]:
    """Split a document into its front matter and its body. Raises Unreadable if the fields are not valid.

    Text between two rules that is not a mapping is part of the document.
    """
    known, rest = parse_fields(text)
    return FrontMatter(*(_to_text(known.get(name)) for name in ("title", "slug", "id"))), rest


def parse_fields(text: str) -> tuple[dict[Any, Any], str]:
    """All fields of the front matter, and the body of the document. Raises Unreadable if they are not valid."""
    for pattern, load in ((_YAML, _load_yaml), (_TOML, _load_toml)):
        match = pattern.match(text)
        if match:
            found = load(match[1])
            if found is not None:
                return found, text[match.end() :]
    return {}, text


def _load_yaml(source: str) -> dict[Any, Any] | None:
    import yaml

    try:
        fields = yaml.load(source, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe
    except (yaml.YAMLError, ValueError, RecursionError) as exc:
        mark = getattr(exc, "problem_mark", None)
        where = f" (line {mark.line + 2})" if mark else ""
        raise Unreadable(
            f"its front matter is not valid YAML{where}; correct it, or quote values with a colon"
        ) from exc
    if fields is None:
        return {}
    return fields if isinstance(fields, dict) else None


def _load_toml(source: str) -> dict[Any, Any] | None:
    try:
        return tomllib.loads(source)
    except (tomllib.TOMLDecodeError, RecursionError) as exc:
        raise Unreadable(f"its front matter is not valid TOML: {exc}") from exc


def _to_text(value: object) -> str:
    return str(value).strip() if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
