"""Front matter: what an author says about a page above its first line."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from typing import Any

from bythebook.sources import Unreadable

_YAML = re.compile(r"---[ \t]*\n(.*?)(?:^|\n)(?:---|\.\.\.)[ \t]*(?:\n|$)", re.DOTALL)
_TOML = re.compile(r"\+\+\+[ \t]*\n(.*?)(?:^|\n)\+\+\+[ \t]*(?:\n|$)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The fields that decide what a page is called and where it is published. Empty where the author is silent."""

    title: str = ""
    slug: str = ""
    id: str = ""


def split(text: str) -> tuple[FrontMatter, str]:
    """The front matter and the rest of the document.

    Text between two rules that is no list of fields is part of the document. Raises Unreadable for fields that
    cannot be parsed.
    """
    known, rest = fields(text)
    return FrontMatter(*(_word(known.get(name)) for name in ("title", "slug", "id"))), rest


def fields(text: str) -> tuple[dict[Any, Any], str]:
    """Everything the front matter says, by its name, and the rest of the document. Raises as `split` does."""
    for pattern, load in ((_YAML, _yaml), (_TOML, _toml)):
        match = pattern.match(text)
        if match:
            found = load(match[1])
            if found is not None:
                return found, text[match.end() :]
    return {}, text


def _yaml(source: str) -> dict[Any, Any] | None:
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


def _toml(source: str) -> dict[Any, Any] | None:
    try:
        return tomllib.loads(source)
    except (tomllib.TOMLDecodeError, RecursionError) as exc:
        raise Unreadable(f"its front matter is not valid TOML: {exc}") from exc


def _word(value: object) -> str:
    return str(value).strip() if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
