"""Front matter: YAML or TOML fields above the first line of a page."""

import re
import tomllib
from dataclasses import dataclass
from typing import Any

from bythebook.sources import Unreadable

_YAML = re.compile(r"---[ \t]*\n(.*?)(?:^|\n)(?:---|\.\.\.)[ \t]*(?:\n|$)", re.DOTALL)
_TOML = re.compile(r"\+\+\+[ \t]*\n(.*?)(?:^|\n)\+\+\+[ \t]*(?:\n|$)", re.DOTALL)
MAX_LENGTH = 65_536
MAX_DEPTH = 30
MAX_MERGES = 16


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
        if match and len(match[1]) > MAX_LENGTH:
            raise Unreadable(f"its front matter has over {MAX_LENGTH // 1000} kB")
        if match:
            found = load(match[1])
            if found is not None:
                return found, text[match.end() :]
    return {}, text


def check_yaml(source: str, *, most_aliases: int = 10_000) -> None:
    """Raise ValueError for YAML that is small and becomes large: nesting, aliases, and merge keys that repeat them.

    The parser reports events one by one. The loader, which builds the values, would exhaust the stack or the memory.
    """
    import yaml

    depth = aliases = merges = 0
    for event in yaml.parse(source, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        aliases += isinstance(event, yaml.AliasEvent)
        merges += isinstance(event, yaml.ScalarEvent) and event.value == "<<"
        if depth > MAX_DEPTH:
            raise ValueError(f"it is nested in more than {MAX_DEPTH} levels")
        # A merge key copies a mapping, which may have copied another: each can double the size.
        if aliases > most_aliases or merges > MAX_MERGES:
            raise ValueError("it repeats itself by too many aliases or merge keys")


def _load_yaml(source: str) -> dict[Any, Any] | None:
    import yaml

    try:
        check_yaml(source, most_aliases=0)
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
    # The parser keeps every beginning of a key, which takes memory that grows with the square of its length.
    if any(line.partition("=")[0].count(".") > MAX_DEPTH for line in source.splitlines()):
        raise Unreadable(f"its front matter has a key with more than {MAX_DEPTH} dots")
    try:
        return tomllib.loads(source)
    except (tomllib.TOMLDecodeError, RecursionError) as exc:
        raise Unreadable(f"its front matter is not valid TOML: {exc}") from exc


def _to_text(value: object) -> str:
    return str(value).strip() if isinstance(value, str | int | float) and not isinstance(value, bool) else ""
