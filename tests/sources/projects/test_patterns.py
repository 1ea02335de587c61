from __future__ import annotations

import pytest

from bythebook.sources.projects.exclusions import excluded, ignored, matches


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("**/*.{md,mdx}", "a/b/c.mdx", True),
        ("**/*.{md,mdx}", "c.md", True),
        ("*.md", "a/c.md", False),
        ("a/**", "a/b/c.md", True),
        ("a?[0-9].md", "ab7.md", True),
        ("a[!0-9].md", "a7.md", False),
        ("**", "a/b", True),
    ],
)
def test_a_glob_fits_the_whole_path(pattern: str, path: str, fits: bool) -> None:
    assert matches(path, [pattern]) is fits


@pytest.mark.parametrize(
    ("lines", "path", "out"),
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
def test_the_last_line_that_fits_decides(lines: str, path: str, out: bool) -> None:
    assert ignored(path, lines.split("\n")) is out


@pytest.mark.parametrize(("pattern", "out"), [("old*", True), ("old", False), ("old-1", True), ("**/page.rst", True)])
def test_a_folder_that_fits_takes_its_files_with_it(pattern: str, out: bool) -> None:
    assert excluded("old-1/page.rst", [pattern]) is out
