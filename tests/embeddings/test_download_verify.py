from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bythebook.embeddings.minilm import download
from bythebook.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    folder = tmp_path / download.NAME
    folder.mkdir()
    for name in (download.GRAPH, download.CONSTANTS, download.TOKENIZER):
        (folder / name).write_bytes(f"this is {name}".encode())
    download.write_record(folder)
    return tmp_path


def test_finds_an_installed_model(cache: Path) -> None:
    found = download.find(cache)

    assert found == download.verify(cache)
    assert found.folder == cache / download.NAME
    assert [file.name for file in found.files] == ["graph.onnx", "constants.bin", "tokenizer.json"]
    assert found.size == sum((found.folder / file.name).stat().st_size for file in found.files)


def test_explains_how_to_download_a_missing_model(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"is not in .*bythebook model download"):
        download.find(tmp_path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        pytest.param(download.CONSTANTS, b"short", id="cut short"),
        pytest.param(download.RECORD, b"{", id="a record that is not JSON"),
        pytest.param(download.RECORD, b"[]", id="a record that is no object"),
        pytest.param(download.RECORD, b'{"files": [{"name": "graph.onnx"}]}', id="a record without sizes"),
    ],
)
def test_reports_a_damaged_model(cache: Path, name: str, content: bytes) -> None:
    (cache / download.NAME / name).write_bytes(content)

    with pytest.raises(ConfigurationError, match=r"is damaged.*bythebook model download"):
        download.find(cache)


def test_verify_detects_a_changed_byte(cache: Path) -> None:
    path = cache / download.NAME / download.CONSTANTS
    path.write_bytes(path.read_bytes().swapcase())

    download.find(cache)
    with pytest.raises(ConfigurationError, match="is damaged"):
        download.verify(cache)
