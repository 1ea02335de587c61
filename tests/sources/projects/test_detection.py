from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bythebook.sources.projects import Style, detect_style, is_build_output

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("file", "style"),
    [
        ("docusaurus.config.js", Style.DOCUSAURUS),
        ("docusaurus.config.ts", Style.DOCUSAURUS),
        ("mkdocs.yml", Style.MKDOCS),
        ("conf.py", Style.SPHINX),
        ("book.toml", Style.MDBOOK),
        ("unknown.cfg", Style.PLAIN),
    ],
)
def test_detects_the_generator_by_a_configuration_up_to_two_folders_above(
    tmp_path: Path, file: str, style: Style
) -> None:
    book = tmp_path / "docs" / "en"
    book.mkdir(parents=True)
    (tmp_path / file).touch()

    assert detect_style(book) == style


@pytest.mark.parametrize(
    ("file", "style"),
    [("part-1/_category_.json", Style.DOCUSAURUS), ("SUMMARY.md", Style.MDBOOK), ("part-1/a.md", Style.PLAIN)],
)
def test_detects_the_generator_by_its_files_without_a_configuration(tmp_path: Path, file: str, style: Style) -> None:
    book = tmp_path / "a" / "b" / "c"
    (book / "part-1").mkdir(parents=True)
    (book / file).touch()

    assert detect_style(book) == style


def test_a_folder_is_build_output_only_next_to_its_configuration(tmp_path: Path) -> None:
    (tmp_path / "mkdocs.yml").touch()

    assert is_build_output(tmp_path / "site")
    assert not is_build_output(tmp_path / "build")
    assert not is_build_output(tmp_path / "docs" / "site")
