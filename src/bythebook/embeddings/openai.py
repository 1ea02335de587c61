"""Embedding models behind OpenAI's API: OpenAI's own, and those of Ollama, vLLM, llama.cpp and others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import openai

from bythebook.embeddings.tokens import cut
from bythebook.errors import ConfigurationError, ContextOverflow, RetrievalError
from bythebook.upstream.classify import Failure
from bythebook.upstream.openai import judge_openai

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bythebook.embeddings.config import Choice
    from bythebook.embeddings.remote import Use


class OpenAIService:
    """`/v1/embeddings`, wherever it is."""

    error = RetrievalError

    def __init__(self, choice: Choice) -> None:
        self.name = "the embedder" if choice.url else "OpenAI"
        self._model = choice.model
        self._window = choice.known.window
        self._format: Literal["base64", "float"] = "base64"
        self._client = openai.AsyncOpenAI(
            api_key=choice.api_key,
            base_url=choice.url or "https://api.openai.com/v1",
            timeout=choice.limits.seconds,
            max_retries=0,
        )

    async def embed(self, texts: Sequence[str], use: Use) -> Sequence[object]:  # noqa: ARG002 - it makes no difference
        shortened = [cut(text, self._window) for text in texts]
        try:
            return await self._create(shortened)
        except (openai.BadRequestError, openai.UnprocessableEntityError) as exc:
            if self._format == "float" or "encoding_format" not in str(exc):
                raise
            self._format = "float"
        return await self._create(shortened)

    async def _create(self, texts: list[str]) -> Sequence[object]:
        answer = await self._client.embeddings.create(model=self._model, input=texts, encoding_format=self._format)
        # A server that fails after it has said 200 sends an error here, which the client parses as an empty answer.
        rows = sorted(answer.data or (), key=lambda row: row.index)
        return [row.embedding for row in rows]

    def judge(self, upstream: str, error: Exception, /) -> Failure | None:
        if isinstance(error, openai.NotFoundError):
            unknown = ConfigurationError(
                f"{upstream} has no model {self._model!r}, or no /embeddings at its address (HTTP 404). "
                "Check the embedder's name and embedder_url."
            )
            return Failure(unknown, again=False, counts=False)
        failure = judge_openai(upstream, error, error=RetrievalError)
        if failure and isinstance(failure.error, ContextOverflow):
            long = ConfigurationError(
                f"the model {self._model!r} reads less than a chunk has. Set a lower chunk_tokens and ingest again."
            )
            return Failure(long, again=False, counts=False)
        return failure

    async def close(self) -> None:
        await self._client.close()
