"""The WordPiece tokenizer gives the same ids as the model's tokenizer file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from bythebook.models import RERANKER, install
from bythebook.models.wordpiece import WordPieceTokenizer

MANUAL = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def table(model_folder: Path) -> Path:
    return install.find(model_folder, RERANKER).folder / install.TOKENIZER


@pytest.fixture(scope="module")
def pieces(table: Path) -> WordPieceTokenizer:
    return WordPieceTokenizer(table)


@pytest.fixture(scope="module")
def tokenizer(table: Path) -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(table))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


PRINTED = "".join(map(chr, range(128))) + "→←×≤≥≈°–—‘’“”…•·«»"
ODD = ["[SEP]", "[MASK]", "[sep]", "##ing", "x" * 100, "x" * 101, "Ünïcödé", "中", "\ud800", "unaffable"]


@given(st.lists(st.text(st.sampled_from(PRINTED), max_size=12) | st.sampled_from(ODD), max_size=8))
def test_arbitrary_text_gives_the_ids_of_the_reference_tokenizer(
    pieces: WordPieceTokenizer, tokenizer: Tokenizer, parts: list[str]
) -> None:
    text = "".join(parts)

    assert pieces(text) == tokenizer.encode(text.encode("utf-8", "replace").decode(), add_special_tokens=False).ids


def test_the_manual_gives_the_ids_of_the_reference_tokenizer(pieces: WordPieceTokenizer, tokenizer: Tokenizer) -> None:
    lines = {line for page in MANUAL.rglob("*.md") for line in page.read_text(encoding="utf-8").splitlines()}

    assert [pieces(line) for line in lines] == [tokenizer.encode(line, add_special_tokens=False).ids for line in lines]


@given(st.lists(st.text(st.sampled_from(PRINTED), max_size=12) | st.sampled_from(ODD), max_size=8))
def test_the_count_is_the_sum_over_the_words(pieces: WordPieceTokenizer, parts: list[str]) -> None:
    text = "".join(parts)

    assert pieces.count(text) == len(pieces(text))


def test_plain_text_does_not_import_tokenizers(table: Path) -> None:
    script = (
        "import pathlib, sys\n"
        "from bythebook.models.wordpiece import WordPieceTokenizer\n"
        "assert len(WordPieceTokenizer(pathlib.Path(sys.argv[1]))('How are chunks made?')) == 5\n"
        "assert 'tokenizers' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script, str(table)], check=True)
