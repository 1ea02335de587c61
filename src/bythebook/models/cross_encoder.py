"""Cross-encoders: models that read two texts together and return one score, in onnxruntime."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from bythebook.models import install
from bythebook.models.runtime import available_cores, open_session
from bythebook.models.wordpiece import WordPieceTokenizer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

CLASSIFICATION, SEPARATOR = 101, 102
"""The tokens before the first text and after each text, in the vocabulary of BERT."""
MAX_TOKENS = 384
"""Tokens of a pair that are read. A first text may have up to `MAX_FIRST_TOKENS` of them."""
MAX_FIRST_TOKENS = 128
_CACHED_SCORES = 1 << 12

Pair = tuple[str, str]


class CrossEncoder:
    """Scores pairs of texts, one pair per core at a time, so that a score does not depend on other pairs."""

    def __init__(
        self,
        session: Any,
        tokenizer: WordPieceTokenizer,
        pool: ThreadPoolExecutor,
        *,
        max_tokens: int = MAX_TOKENS,
    ) -> None:
        self._max_tokens = max_tokens
        self._session = session
        self._tokenizer = tokenizer
        self._pool = pool
        self._cache: OrderedDict[Pair, float] = OrderedDict()

    def count_tokens(self, text: str) -> int:
        return self._tokenizer.count(text)

    async def score(self, pairs: Sequence[Pair]) -> list[float]:
        """The score of each pair. Scores are cached."""
        loop = asyncio.get_running_loop()
        missing = [pair for pair in dict.fromkeys(pairs) if pair not in self._cache]
        tasks = [loop.run_in_executor(self._pool, self.score_pair, pair) for pair in missing]
        try:
            found = dict(zip(missing, [await task for task in tasks], strict=True))
        finally:
            for task in tasks:
                task.cancel()
        scores = [found[pair] if pair in found else self._cache[pair] for pair in pairs]
        for pair, score in zip(pairs, scores, strict=True):
            self._cache[pair] = score
            self._cache.move_to_end(pair)
        while len(self._cache) > _CACHED_SCORES:
            self._cache.popitem(last=False)
        return scores

    def score_pair(self, pair: Pair) -> float:
        """The score of one pair, computed in the calling thread. Texts are cut to what the model reads."""
        # Imported here because it takes most of the start-up time, and other modules load in the meantime.
        import numpy as np

        first, second = (self._tokenizer(text) for text in pair)
        first = first[:MAX_FIRST_TOKENS]
        ids = [CLASSIFICATION, *first, SEPARATOR, *second[: self._max_tokens - 3 - len(first)], SEPARATOR]
        (scores,) = self._session.run(None, {"ids": np.array([ids], dtype=np.int64)})
        return float(scores[0])


@asynccontextmanager
async def open_cross_encoder(
    model: install.InstalledModel, *, max_tokens: int = MAX_TOKENS
) -> AsyncIterator[CrossEncoder]:
    """The cross-encoder of an installed model. Its threads end on exit."""
    session = await asyncio.to_thread(open_session, model)
    tokenizer = await asyncio.to_thread(WordPieceTokenizer, model.folder / install.TOKENIZER)
    pool = ThreadPoolExecutor(available_cores(), thread_name_prefix="read")
    try:
        yield CrossEncoder(session, tokenizer, pool, max_tokens=max_tokens)
    finally:
        await asyncio.to_thread(pool.shutdown, cancel_futures=True)
