from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bythebook.errors import ConfigurationError
from bythebook.models import GRANITE, install

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    folder = tmp_path / GRANITE.name
    folder.mkdir()
    for name in (install.GRAPH, install.CONSTANTS, install.TOKENIZER):
        (folder / name).write_bytes(f"this is {name}".encode())
    install.write_record(folder, GRANITE)
    return tmp_path


def test_finds_an_installed_model(cache: Path) -> None:
    found = install.find(cache, GRANITE)

    assert found == install.verify(cache, GRANITE)
    assert found.folder == cache / GRANITE.name
    assert [file.name for file in found.files] == ["graph.onnx", "constants.bin", "tokenizer.json"]
    assert found.size == sum((found.folder / file.name).stat().st_size for file in found.files)


def test_explains_how_to_download_a_missing_model(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"is not in .*bythebook model download"):
        install.find(tmp_path, GRANITE)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        pytest.param(install.CONSTANTS, b"short", id="cut short"),
        pytest.param(install.RECORD, b"{", id="a record that is not JSON"),
        pytest.param(install.RECORD, b"[]", id="a record that is no object"),
        pytest.param(install.RECORD, b'{"files": [{"name": "graph.onnx"}]}', id="a record without sizes"),
    ],
)
def test_reports_a_damaged_model(cache: Path, name: str, content: bytes) -> None:
    (cache / GRANITE.name / name).write_bytes(content)

    with pytest.raises(ConfigurationError, match=r"is damaged.*bythebook model download"):
        install.find(cache, GRANITE)


def test_verify_detects_a_changed_byte(cache: Path) -> None:
    path = cache / GRANITE.name / install.CONSTANTS
    path.write_bytes(path.read_bytes().swapcase())

    install.find(cache, GRANITE)
    with pytest.raises(ConfigurationError, match="is damaged"):
        install.verify(cache, GRANITE)
