"""Reranking: a cross-encoder reads the question together with the best passages.

How much is read is a budget in tokens, not in milliseconds: a slow machine gives the same answer as a fast one. Under
load the budget falls in fixed steps, and the response names the step.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import accumulate
from typing import TYPE_CHECKING

from bythebook.chunking import with_headings
from bythebook.errors import ConfigurationError
from bythebook.models import ENTAILMENT, ENTAILMENT_TOKENS, RERANKER, install
from bythebook.models.cross_encoder import MAX_TOKENS, open_cross_encoder
from bythebook.telemetry import log

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from bythebook.models.cross_encoder import CrossEncoder
    from bythebook.retrieval import RetrievalResult

MAX_READ_PASSAGES = 6
"""Passages that the reranker orders. The others keep their place behind them."""
FIRST_READ, CLEARLY_FIRST = 2, 6.0
"""If one of the first passages has at least this logit, no more are read: a sixth of the reading at .001 of nDCG@10."""
RERANKER_WEIGHT = 0.35
"""The weight of the reranker's logit, divided by `LOGIT_SCALE`, in the order; the rest is that of the hybrid score."""
LOGIT_SCALE = 10.0


class ReadingLevel(StrEnum):
    """How much the reranker reads for one question."""

    FULL = "full"
    REDUCED = "reduced"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class ReadingBudget:
    """The most tokens that are read for one question."""

    level: ReadingLevel
    passage_tokens: int
    block_tokens: int
    """For the blocks of the best passages, from which an answer without a model is chosen."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What the reranker read for a question, and may still read."""

    model: CrossEncoder
    entailment: CrossEncoder | None
    budget: ReadingBudget
    logits: Mapping[str, float]
    """By chunk id, of the passages that were read."""


NO_READING = ReadingBudget(ReadingLevel.NONE, passage_tokens=0, block_tokens=0)
BUDGETS = (
    (4, ReadingBudget(ReadingLevel.FULL, passage_tokens=1600, block_tokens=900)),
    (16, ReadingBudget(ReadingLevel.REDUCED, passage_tokens=600, block_tokens=300)),
)
"""The budget while at most so many questions are answered at the same time. Above the last number nothing is read."""


class Reranker:
    """Reads passages with a cross-encoder, within a budget that depends on how many questions are answered now."""

    def __init__(
        self,
        model: CrossEncoder,
        *,
        entailment: CrossEncoder | None = None,
        budgets: Sequence[tuple[int, ReadingBudget]] = BUDGETS,
    ) -> None:
        self._model = model
        self.entailment = entailment
        self._budgets = budgets
        self._active = 0

    def without_steps(self) -> Reranker:
        """The same with the full budget for any number of questions, for callers that may take their time."""
        return Reranker(self._model, entailment=self.entailment, budgets=[(sys.maxsize, BUDGETS[0][1])])

    @contextmanager
    def budget(self) -> Iterator[ReadingBudget]:
        """The budget of one question, which counts as answered until the context ends."""
        self._active += 1
        try:
            yield next((budget for most, budget in self._budgets if self._active <= most), NO_READING)
        finally:
            self._active -= 1

    async def rerank(
        self, query: str, results: Sequence[RetrievalResult], budget: ReadingBudget
    ) -> tuple[tuple[RetrievalResult, ...], Reading | None]:
        """The results in their new order; those that were read come first."""
        pairs = [(query, with_headings(each.heading_hierarchy, each.text)) for each in results]
        pairs = pairs[: self._readable(results, budget)]
        if not pairs:
            return tuple(results), None
        logits = await self._model.score(pairs[:FIRST_READ])
        if max(logits) < CLEARLY_FIRST:
            logits += await self._model.score(pairs[FIRST_READ:])
        read = results[: len(logits)]
        top = max(result.rerank_score for result in results) or 1.0
        scores = [
            (1 - RERANKER_WEIGHT) * result.rerank_score / top + RERANKER_WEIGHT * logit / LOGIT_SCALE
            for result, logit in zip(read, logits, strict=True)
        ]
        order = sorted(range(len(read)), key=lambda index: -scores[index])
        unread = [(result, min(scores) - 1 + result.rerank_score / top) for result in results[len(read) :]]
        reranked = tuple(
            replace(result, position=position, rerank_score=score)
            for position, (result, score) in enumerate(
                [*((read[index], scores[index]) for index in order), *unread], start=1
            )
        )
        by_chunk = dict(zip((result.chunk_id for result in read), logits, strict=True))
        return reranked, Reading(self._model, self.entailment, budget, by_chunk)

    def _readable(self, results: Sequence[RetrievalResult], budget: ReadingBudget) -> int:
        """How many of the first results fit into the budget."""
        lengths = (min(result.token_count, MAX_TOKENS) for result in results[:MAX_READ_PASSAGES])
        return sum(total <= budget.passage_tokens for total in accumulate(lengths))


@asynccontextmanager
async def installed_reranker(cache: Path, *, fetch: bool, say: Callable[[str], None]) -> AsyncIterator[Reranker | None]:
    """The reranker in `cache`; None if it is not there. With `fetch` it is downloaded first."""
    try:
        if fetch:
            await asyncio.to_thread(install.download, cache, RERANKER, say=say)
        model = install.find(cache, RERANKER)
    except ConfigurationError as exc:
        say(f"{exc} Until then {RERANKER.fallback}.")
        yield None
        return
    async with AsyncExitStack() as stack:
        entailment = asyncio.create_task(stack.enter_async_context(installed_entailment(cache)))
        stack.callback(entailment.cancel)
        encoder = await stack.enter_async_context(open_cross_encoder(model))
        yield Reranker(encoder, entailment=await entailment)


@asynccontextmanager
async def installed_entailment(cache: Path) -> AsyncIterator[CrossEncoder | None]:
    """The entailment model; None if its files are missing, which is logged."""
    try:
        model = install.find(cache, ENTAILMENT)
    except ConfigurationError as exc:
        log("entailment_model_missing", reason=str(exc))
        yield None
        return
    async with open_cross_encoder(model, max_tokens=ENTAILMENT_TOKENS) as encoder:
        yield encoder
