"""Approximate token counts for hosted models, with OpenAI's vocabulary: others are proprietary or too large to ship."""

from __future__ import annotations

from functools import cache


@cache
def _encoding() -> object:
    from rs_bpe.bpe import openai  # type: ignore[import-not-found]

    return openai.cl100k_base()


def count_tokens(text: str) -> int:
    """The tokens of `text` in OpenAI's embedding models. Other models split text slightly finer or coarser."""
    tokens: int = _encoding().count(text)  # type: ignore[attr-defined]
    return tokens


def truncate(text: str, window: int) -> str:
    """The beginning of `text` that fits into a context window of this many tokens."""
    while (tokens := count_tokens(text)) > window:
        text = text[: int(len(text) * window / tokens)]
    return text
