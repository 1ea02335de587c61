"""Tokens as hosted models have them, near enough: their own tables are theirs, or too large to carry."""

from __future__ import annotations

from functools import cache


@cache
def _encoding() -> object:
    from rs_bpe.bpe import openai  # type: ignore[import-not-found]

    return openai.cl100k_base()


def count(text: str) -> int:
    """How many tokens `text` is to OpenAI's embedding models. Others cut it a little finer or coarser."""
    counted: int = _encoding().count(text)  # type: ignore[attr-defined]
    return counted


def cut(text: str, window: int) -> str:
    """The beginning of the text that a model with this window reads."""
    while (tokens := count(text)) > window:
        text = text[: int(len(text) * window / tokens)]
    return text
