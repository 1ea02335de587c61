"""Cohere's embedding models, through its official client."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bythebook.errors import CohereAPIError, ConfigurationError
from bythebook.upstream import Failure
from bythebook.upstream.classify import judge_http, judge_status

try:
    import httpx
    from cohere import AsyncClientV2
    from cohere.core.api_error import ApiError
    from cohere.core.parse_error import ParsingError
except ModuleNotFoundError as exc:
    raise ConfigurationError(
        "Cohere's client is not installed. Install it with: pip install 'bythebook[cohere]'"
    ) from exc

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bythebook.embeddings.config import Choice
    from bythebook.embeddings.remote import Use


_NOT_FOUND, _TOO_MANY_REQUESTS = 404, 429
# A trial key has its calls counted by the minute and by the month. Waiting helps with the first only.
_BY_THE_MONTH = re.compile(r"(/|per|a|each|this)\s*month|monthly", re.I)


def judge_cohere(upstream: str, exc: Exception, /, *, model: str = "") -> Failure | None:
    """What the client raised, in our terms."""
    if isinstance(exc, ParsingError):
        return Failure(CohereAPIError(f"{upstream} sent something that makes no sense"), again=True, counts=True)
    if not isinstance(exc, ApiError):
        return judge_http(upstream, exc, error=CohereAPIError)
    status = exc.status_code or 0
    if status < 400:
        return Failure(CohereAPIError(f"{upstream} sent something that is not JSON"), again=True, counts=True)
    if status == _NOT_FOUND:
        unknown = ConfigurationError(f"{upstream} has no model {model!r} (HTTP 404). Check the embedder's name.")
        return Failure(unknown, again=False, counts=False)
    if status == _TOO_MANY_REQUESTS and _BY_THE_MONTH.search(str(exc.body)):
        spent = CohereAPIError(
            f"the calls this {upstream} key has for a month are used up (HTTP 429). "
            "Use a production key, or wait for the next month."
        )
        return Failure(spent, again=False, counts=False)
    headers = {name.lower(): value for name, value in (exc.headers or {}).items()}
    return judge_status(upstream, status, headers=headers, error=CohereAPIError)


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
