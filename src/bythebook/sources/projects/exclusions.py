"""Besides the book: what a project has that its readers would not take for a chapter.

Patterns: which files a configuration leaves out, in the notations of the generators.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from bythebook.sources.projects import Aside, Place

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path


_CHANGELOGS = frozenset(["changelog", "change-log", "change_log", "release-notes", "release_notes", "releasenotes"])
_WRITTEN = frozenset([".md", ".mdx", ".rst", ".markdown"])

_SAMPLES = {
    "tutorial-basics": (
        *("congratulations", "create-a-blog-post", "create-a-document", "create-a-page", "deploy-your-site"),
        "markdown-features",
    ),
    "tutorial-extras": ("manage-docs-versions", "translate-your-site"),
}
_SAMPLE_SENTENCES = (
    "**Docusaurus in less than 5 minutes**",
    "You don't need React to write simple standalone pages.",
    "For full documentation visit [mkdocs.org]",
)


def is_changelog(stem: str) -> bool:
    return stem.lower() in _CHANGELOGS


def is_sample(file: Path, text: str) -> bool:
    """Whether a generator wrote the document itself, for authors to look at and throw away."""
    known = _SAMPLES.get(file.parent.name, ())
    return (file.stem in known and "Docusaurus" in text) or any(sentence in text for sentence in _SAMPLE_SENTENCES)


def of_the_repository(root: Path, *, published: Collection[Path]) -> Iterator[Place]:
    """The documents beside the configuration, which no reader of the site sees."""
    try:
        files = sorted(file for file in root.iterdir() if file.suffix.lower() in _WRITTEN and file.is_file())
    except OSError:
        return
    for file in files:
        if file.resolve() not in published:
            aside, reason = Aside.REPOSITORY, "a file of the repository, not of the site"
            if is_changelog(file.stem):
                aside, reason = Aside.CHANGELOG, "a list of changes"
            elif file.stem.lower() == "readme":
                reason = "the README of the repository"
            yield Place(file, "", file.stem, aside=aside, reason=reason)


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
