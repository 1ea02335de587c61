"""Besides the book: what a project has that its readers would not take for a chapter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bythebook.pages.generators import Aside, Place

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
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
