"""Files of a project that are not content: changelogs, sample pages, READMEs; and the globs that leave files out.

Globs are translated by `pathspec`, which MkDocs itself uses for `exclude_docs`.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from functools import cache
from itertools import islice
from pathlib import Path

from pathspec.patterns.gitignore.basic import GitIgnoreBasicPattern

from bythebook.sources.projects import NonContent, ProjectPage

_CHANGELOGS = frozenset(
    ["changelog", "change-log", "change_log", "changes", "release-notes", "release_notes", "releasenotes"]
)
_DOCUMENT_SUFFIXES = frozenset([".md", ".mdx", ".rst", ".markdown"])

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
    """Whether the document is a sample that the generator itself put into the project."""
    known = _SAMPLES.get(file.parent.name, ())
    return (file.stem in known and "Docusaurus" in text) or any(sentence in text for sentence in _SAMPLE_SENTENCES)


def list_repository_files(root: Path, *, published: Collection[Path]) -> Iterator[ProjectPage]:
    """The documents next to the configuration that the site does not show."""
    try:
        files = sorted(file for file in root.iterdir() if file.suffix.lower() in _DOCUMENT_SUFFIXES and file.is_file())
    except OSError:
        return
    for file in files:
        if file.resolve() not in published:
            category, reason = NonContent.REPOSITORY, "a file of the repository, not of the site"
            if is_changelog(file.stem):
                category, reason = NonContent.CHANGELOG, "a list of changes"
            elif file.stem.lower() == "readme":
                reason = "the README of the repository"
            yield ProjectPage(file, "", file.stem, category=category, reason=reason)


def matches_glob(path: str, patterns: Iterable[str]) -> bool:
    """Whether the whole path matches one of the globs. `**` is any number of folders, `{a,b}` is either."""
    return any(regex.fullmatch(path) for pattern in patterns for regex in _compile(pattern.removeprefix("./")))


def excludes(path: str, patterns: Iterable[str]) -> bool:
    """Whether the path or a folder above it matches one of the globs. Sphinx excludes files this way."""
    parts = path.split("/")
    return any(matches_glob("/".join(parts[:end]), patterns) for end in range(1, len(parts) + 1))


_BRACES = re.compile(r"\{([^{}]*)\}")
_INNER_GLOBSTAR = re.compile(r"(?<=[^/])\*\*(?!\*)|(?<!\*)\*\*(?=[^/*])")
_MAX_ALTERNATIVES = 256
"""A glob with more alternatives is truncated. Nested braces could otherwise multiply without limit."""


@cache
def _compile(pattern: str) -> tuple[re.Pattern[str], ...]:
    # In a .gitignore a `**` within a name does not cross folders. In Sphinx it does: `**.ipynb`.
    pattern = _INNER_GLOBSTAR.sub("{*,*/**/*}", pattern)
    pattern = pattern + "/*" if pattern == "**" or pattern.endswith("/**") else pattern
    return tuple(regex for glob in islice(_expand_braces(pattern), _MAX_ALTERNATIVES) for regex in _translate(glob))


def _expand_braces(pattern: str) -> Iterator[str]:
    braces = _BRACES.search(pattern)
    if braces is None:
        yield pattern
    else:
        for choice in braces[1].split(","):
            yield from _expand_braces(pattern[: braces.start()] + choice + pattern[braces.end() :])


def _translate(glob: str) -> Iterator[re.Pattern[str]]:
    """The regular expression of the glob, anchored at the root. An invalid glob matches nothing."""
    if not glob.endswith("/"):
        with suppress(ValueError):
            regex, _ = GitIgnoreBasicPattern.pattern_to_regex(f"/{glob}")
            yield re.compile(".+" if regex == "." else str(regex), re.DOTALL)  # "." matches every path.
