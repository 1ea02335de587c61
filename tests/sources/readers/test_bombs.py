"""Small text files that would exhaust their parser are named and skipped; the next document is read. (HARDENING S12)"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from bythebook.errors import ConfigurationError
from bythebook.sources import ListedPage, Unreadable
from bythebook.sources.folder import Folder
from bythebook.sources.projects.yaml_files import read_mapping

if TYPE_CHECKING:
    from pathlib import Path

MERGES = "a0: &a0 {x: 1}\n" + "".join(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}\n" for n in range(1, 30))
LAUGHS = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 30))

BOMBS = {
    "merge keys": ("a.md", f"---\n{MERGES}---\n# A\n"),
    "aliases": ("a.md", f"---\n{LAUGHS}---\n# A\n"),
    "nested YAML": ("a.md", f"---\na: {'[' * 60_000}\n---\n# A\n"),
    "much YAML": ("a.md", f"---\na: {'[' * 100_000}\n---\n# A\n"),
    "dotted keys": ("a.md", f"+++\n{'a.' * 30_000}a = 1\n+++\n# A\n"),
    "a dotted table": ("a.md", f"+++\n[{'a.' * 30_000}a]\n+++\n# A\n"),
    "nested TOML": ("a.md", f"+++\na = {'[' * 60_000}\n+++\n# A\n"),
    "substitutions": (
        "a.rst",
        "|a20|\n\n.. |a0| replace:: x\n"
        + "".join(f".. |a{n}| replace:: |a{n - 1}| |a{n - 1}|\n" for n in range(1, 21)),
    ),
    "headings": ("a.md", "# a\n" * 200_000),
}
HARMLESS = {
    "a heading of any level": (
        "a.ipynb",
        json.dumps({"cells": [{"cell_type": "heading", "level": 500_000_000, "source": "Oil"}]}),
        "Oil",
    ),
    "attributes": (
        "a.adoc",
        "= A\n:a0: xxxxxxxx\n" + "".join(f":a{n}: {{a{n - 1}}}{{a{n - 1}}}\n" for n in range(1, 40)) + "\nOil {a39}\n",
        "Oil",
    ),
    "a flat front matter": ("a.md", "---\ntitle: Oil\ntags: [a, b, {c: d}]\n---\n\nIt burns.\n", "It burns."),
}


async def read(folder: Path, name: str) -> str:
    source = Folder(folder)
    listed = {item.path: item async for item in source.listing() if isinstance(item, ListedPage)}
    return (await source.read(listed[name])).text


@pytest.mark.parametrize("name", BOMBS)
async def test_a_bomb_is_skipped_and_the_next_file_is_read(tmp_path: Path, name: str) -> None:
    file, text = BOMBS[name]
    (tmp_path / file).write_text(text)
    (tmp_path / "good.md").write_text("It burns.")
    with pytest.raises(Unreadable) as caught:
        await read(tmp_path, file)
    assert "signal" not in str(caught.value)
    assert await read(tmp_path, "good.md") == "It burns."


@pytest.mark.parametrize("name", HARMLESS)
async def test_a_document_with_a_bounded_expansion_is_read(tmp_path: Path, name: str) -> None:
    file, text, expected = HARMLESS[name]
    (tmp_path / file).write_text(text)
    assert expected in (await read(tmp_path, file))[:40_000]


@pytest.mark.parametrize("text", [MERGES, "a: " + "[" * 100_000], ids=["merges", "nesting"])
def test_the_configuration_of_a_project_may_not_be_a_bomb(tmp_path: Path, text: str) -> None:
    file = tmp_path / "mkdocs.yml"
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=r"mkdocs\.yml cannot be read"):
        read_mapping(file)


def test_the_configuration_of_a_project_may_repeat_itself(tmp_path: Path) -> None:
    file = tmp_path / "mkdocs.yml"
    file.write_text("base: &base {x: 1}\nmore: {<<: *base, y: 2}\nname: !ENV [A, b]\n")
    assert read_mapping(file)["more"] == {"x": 1, "y": 2}
