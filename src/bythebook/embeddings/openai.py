"""Embedding models with OpenAI's API: OpenAI itself, Ollama, vLLM, llama.cpp and others."""

from collections.abc import Sequence
from typing import Literal

import openai

from bythebook.embeddings.config import EmbedderConfig
from bythebook.embeddings.remote import InputType, truncate
from bythebook.errors import ConfigurationError, ContextOverflow, RetrievalError
from bythebook.upstream.classify import ClassifiedError
from bythebook.upstream.openai import classify_openai_error


class OpenAIService:
    """The `/embeddings` endpoint of OpenAI or of a compatible server."""

    error = RetrievalError

    def __init__(self, config: EmbedderConfig) -> None:
        self.name = "the embedder" if config.url else "OpenAI"
        self._model = config.model
        self._window = config.known_model.window
        self._format: Literal["base64", "float"] = "base64"
        self._client = openai.AsyncOpenAI(
            api_key=config.api_key,
            base_url=config.url or "https://api.openai.com/v1",
            timeout=config.limits.seconds,
            max_retries=0,
        )

    async def embed(self, texts: Sequence[str], input_type: InputType) -> Sequence[object]:  # noqa: ARG002 - the API has no such parameter
        truncated = [truncate(text, self._window) for text in texts]
        try:
            return await self._create(truncated)
        except (openai.BadRequestError, openai.UnprocessableEntityError) as exc:
            if self._format == "float" or "encoding_format" not in str(exc):
                raise
            self._format = "float"
        return await self._create(truncated)

    async def _create(self, texts: list[str]) -> Sequence[object]:
        response = await self._client.embeddings.create(model=self._model, input=texts, encoding_format=self._format)
        # A server that fails after status 200 sends an error as the body, which the client parses as an empty response.
        rows = sorted(response.data or (), key=lambda row: row.index)
        return [row.embedding for row in rows]

    def classify(self, upstream: str, error: Exception, /) -> ClassifiedError | None:
        if isinstance(error, openai.NotFoundError):
            not_found = ConfigurationError(
                f"{upstream} has no model {self._model!r}, or no /embeddings at its URL (HTTP 404). "
                "Check the embedder's name and embedder_url."
            )
            return ClassifiedError.rejection(not_found)
        failure = classify_openai_error(upstream, error, error=RetrievalError)
        if failure and isinstance(failure.error, ContextOverflow):
            too_long = ConfigurationError(
                f"a chunk exceeds the context window of {self._model!r}. Set a lower chunk_tokens and ingest again."
            )
            return ClassifiedError.rejection(too_long)
        return failure

    async def close(self) -> None:
        await self._client.close()
