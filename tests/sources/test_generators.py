from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bythebook.sources.projects import Style, detect, is_output

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
def test_a_configuration_up_to_two_folders_above_names_the_generator(tmp_path: Path, file: str, style: Style) -> None:
    book = tmp_path / "docs" / "en"
    book.mkdir(parents=True)
    (tmp_path / file).touch()

    assert detect(book) == style


@pytest.mark.parametrize(
    ("file", "style"),
    [("part-1/_category_.json", Style.DOCUSAURUS), ("SUMMARY.md", Style.MDBOOK), ("part-1/a.md", Style.PLAIN)],
)
def test_without_a_configuration_its_files_give_it_away(tmp_path: Path, file: str, style: Style) -> None:
    book = tmp_path / "a" / "b" / "c"
    (book / "part-1").mkdir(parents=True)
    (book / file).touch()

    assert detect(book) == style


def test_a_folder_is_output_only_beside_the_configuration_that_writes_it(tmp_path: Path) -> None:
    (tmp_path / "mkdocs.yml").touch()

    assert is_output(tmp_path / "site")
    assert not is_output(tmp_path / "build")
    assert not is_output(tmp_path / "docs" / "site")
