"""Patterns: which files a configuration leaves out, in the notations of the generators."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_PIECE = re.compile(r"\*\*/|/\*\*$|\*\*|\*|\?|\[!?[^\]/]+\]|\{[^{}]*\}|\\.|.", re.DOTALL)
_SPECIAL = {"**/": "(?:.*/)?", "/**": "/.*", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def matches(path: str, patterns: Iterable[str]) -> bool:
    """Whether a path fits one of these globs, as a whole. `**` is any number of folders, `{a,b}` either."""
    return any(_glob(pattern.removeprefix("./")).fullmatch(path) for pattern in patterns)


def excluded(path: str, patterns: Iterable[str]) -> bool:
    """Whether a path, or a folder above it, fits one of these globs, as Sphinx leaves files out."""
    parts = path.split("/")
    return any(matches("/".join(parts[:end]), patterns) for end in range(1, len(parts) + 1))


def ignored(path: str, lines: Iterable[str]) -> bool:
    """Whether lines written like a `.gitignore` leave a path out. The last one that fits decides."""
    result = False
    for line in (text.strip() for text in lines):
        if line and not line.startswith("#"):
            wanted = line.startswith("!")
            if _fits(path, line.removeprefix("!")):
                result = not wanted
    return result


def _fits(path: str, pattern: str) -> bool:
    anchored = "/" in pattern.rstrip("/")
    only_folders = pattern.endswith("/")
    glob = pattern.strip("/") if anchored else "**/" + pattern.strip("/")
    parts = path.split("/")
    ends = range(1, len(parts) + (0 if only_folders else 1))
    return any(_glob(glob).fullmatch("/".join(parts[:end])) for end in ends)


@cache
def _glob(pattern: str) -> re.Pattern[str]:
    return re.compile("".join(map(_translated, _PIECE.findall(pattern))), re.DOTALL)


def _translated(piece: str) -> str:
    if piece in _SPECIAL:
        return _SPECIAL[piece]
    if piece.startswith("{"):
        choices = (map(_translated, _PIECE.findall(choice)) for choice in piece[1:-1].split(","))
        return "(?:" + "|".join("".join(choice) for choice in choices) + ")"
    if len(piece) > 1 and piece[0] == "[":
        inner = piece[1:-1].replace("\\", r"\\")
        return f"[^{inner[1:]}]" if inner.startswith("!") else "[" + inner.replace("^", r"\^") + "]"
    return re.escape(piece.removeprefix("\\") or piece)
