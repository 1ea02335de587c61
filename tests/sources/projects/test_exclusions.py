"""Globs that leave files out of a project."""

from __future__ import annotations

import pytest
from pathspec import GitIgnoreSpec

from bythebook.sources.projects.exclusions import excludes, matches_glob


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("**/*.{md,mdx}", "a/b/c.mdx", True),
        ("**/*.{md,mdx}", "c.md", True),
        ("*.md", "a/c.md", False),
        ("a/**", "a/b/c.md", True),
        ("a?[0-9].md", "ab7.md", True),
        ("a[!0-9].md", "a7.md", False),
        ("**", "a/b", True),
        ("a", "a/b.md", False),
        ("**.ipynb", "a/b.ipynb", True),
        ("a**.md", "ab/c.md", True),
        ("a/", "a/b.md", False),
        ("a\\", "a", False),
        ("{a,b}" * 40, "a" * 40, True),
    ],
)
def test_a_glob_matches_the_whole_path(pattern: str, path: str, matches: bool) -> None:
    assert matches_glob(path, [pattern]) is matches


@pytest.mark.parametrize(
    ("lines", "path", "ignored"),
    [
        ("/drafts/", "drafts/a.md", True),
        ("/drafts/", "en/drafts/a.md", False),
        ("drafts/", "en/drafts/a.md", True),
        ("drafts/", "drafts", False),
        ("*.py", "a/b.py", True),
        ("a/*.md", "a/b/c.md", False),
        ("drafts/\n!drafts/kept.md", "drafts/kept.md", False),
        ("# drafts/", "drafts/a.md", False),
        (".*", "a/.hidden/b.md", True),
    ],
)
def test_the_last_matching_line_of_exclude_docs_decides(lines: str, path: str, ignored: bool) -> None:
    assert GitIgnoreSpec.from_lines(lines.split("\n")).match_file(path) is ignored


@pytest.mark.parametrize(
    ("pattern", "excluded"), [("old*", True), ("old", False), ("old-1", True), ("**/page.rst", True)]
)
def test_a_matching_folder_excludes_its_files(pattern: str, excluded: bool) -> None:
    assert excludes("old-1/page.rst", [pattern]) is excluded
