"""Cohere's embedding models, by its official client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bythebook.errors import CohereAPIError, ConfigurationError

try:
    import httpx
    from cohere import AsyncClientV2

    from bythebook.upstream.cohere import judge_cohere
except ModuleNotFoundError as exc:
    raise ConfigurationError(
        "Cohere's client is not installed. Install it with: pip install 'bythebook[cohere]'"
    ) from exc

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bythebook.upstream import Failure
    from bythebook.vectors.choice import Choice
    from bythebook.vectors.hosted import Use


class CohereService:
    """Cohere's v2 API."""

    name = "Cohere"
    error = CohereAPIError

    def __init__(self, choice: Choice) -> None:
        self._model = choice.model
        self._http = httpx.AsyncClient(timeout=choice.limits.seconds)
        self._client = AsyncClientV2(
            choice.api_key,
            base_url=choice.url or None,
            max_retries=0,
            httpx_client=self._http,
            log_warning_experimental_features=False,
        )

    async def embed(self, texts: Sequence[str], use: Use) -> Sequence[object]:
        answer = await self._client.embed(
            model=self._model,
            texts=texts,
            input_type=use.value,
            # The client looks at every number of a list, which takes half a second for a batch.
            embedding_types=["base64"],
            truncate="END",
        )
        sent = getattr(answer, "embeddings", None)
        return getattr(sent, "base64", None) or getattr(sent, "float_", None) or ()

    def judge(self, upstream: str, error: Exception, /) -> Failure | None:
        return judge_cohere(upstream, error, model=self._model)

    async def close(self) -> None:
        await self._http.aclose()
