from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.models import GRANITE, install
from bythebook.models.runtime import BytePairTokenizer
from tests.support.model_weights import cache_folder

MANUAL = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def tokenizer() -> BytePairTokenizer:
    return BytePairTokenizer(cache_folder() / GRANITE.name / install.TOKENIZER)


PARTS = st.text(max_size=12) | st.sampled_from(["\n\n", "   ", "don't ", " 42", "\ud800", "x" * 101, "\t\t- item"])


@given(st.lists(PARTS, max_size=8))
def test_the_count_is_the_sum_over_the_words(tokenizer: BytePairTokenizer, parts: list[str]) -> None:
    text = "".join(parts)

    assert tokenizer.count(text) == len(tokenizer(text)), repr(text)


def test_the_tokens_of_the_manual_are_counted_exactly(tokenizer: BytePairTokenizer) -> None:
    pages = [page.read_text(encoding="utf-8") for page in sorted(MANUAL.rglob("*.md"))]

    assert [tokenizer.count(page) for page in pages] == [len(tokenizer(page)) for page in pages]
