"""Cohere's embedding models, called through Cohere's client library."""

import re
from collections.abc import Sequence

from bythebook.embeddings.config import EmbedderConfig
from bythebook.embeddings.remote import InputType
from bythebook.errors import CohereAPIError, ConfigurationError
from bythebook.upstream.classify import ClassifiedError, classify_http_error, classify_status

try:
    import httpx
    from cohere import AsyncClientV2
    from cohere.core.api_error import ApiError
    from cohere.core.parse_error import ParsingError
except ModuleNotFoundError as exc:
    raise ConfigurationError(
        "the client library of Cohere is not installed. Install it with: pip install 'bythebook[cohere]'"
    ) from exc


_NOT_FOUND, _TOO_MANY_REQUESTS = 404, 429
# A trial key has one limit per minute and one per month. Retrying only helps with the first.
_MONTHLY = re.compile(r"(/|per|a|each|this)\s*month|monthly", re.I)


def classify_cohere(upstream: str, exc: Exception, /, *, model: str = "") -> ClassifiedError | None:
    """Classify an exception of Cohere's client. None: it is not an error of the service."""
    if isinstance(exc, ParsingError):
        return ClassifiedError.failure(CohereAPIError(f"{upstream} sent a response that cannot be parsed"))
    if not isinstance(exc, ApiError):
        return classify_http_error(upstream, exc, error=CohereAPIError)
    status = exc.status_code or 0
    if status < 400:
        return ClassifiedError.failure(CohereAPIError(f"{upstream} sent a response that is not JSON"))
    if status == _NOT_FOUND:
        unknown_model = ConfigurationError(f"{upstream} has no model {model!r} (HTTP 404). Check the embedder's name.")
        return ClassifiedError.rejection(unknown_model)
    if status == _TOO_MANY_REQUESTS and _MONTHLY.search(str(exc.body)):
        quota_used_up = CohereAPIError(
            f"the monthly quota of this {upstream} key is used up (HTTP 429). "
            "Use a production key, or wait for the next month."
        )
        return ClassifiedError.rejection(quota_used_up)
    headers = {name.lower(): value for name, value in (exc.headers or {}).items()}
    return classify_status(upstream, status, headers=headers, error=CohereAPIError)


class CohereService:
    """Cohere's v2 API."""

    name = "Cohere"
    error = CohereAPIError

    def __init__(self, config: EmbedderConfig) -> None:
        self._model = config.model
        self._http = httpx.AsyncClient(timeout=config.limits.seconds)
        self._client = AsyncClientV2(
            config.api_key,
            base_url=config.url or None,
            max_retries=0,
            httpx_client=self._http,
            log_warning_experimental_features=False,
        )

    async def embed(self, texts: Sequence[str], input_type: InputType) -> Sequence[object]:
        response = await self._client.embed(
            model=self._model,
            texts=texts,
            input_type=input_type.value,
            # The client validates every number of a list, which takes half a second for a batch.
            embedding_types=["base64"],
            truncate="END",
        )
        vectors = getattr(response, "embeddings", None)
        return getattr(vectors, "base64", None) or getattr(vectors, "float_", None) or ()

    def classify(self, upstream: str, error: Exception, /) -> ClassifiedError | None:
        return classify_cohere(upstream, error, model=self._model)

    async def close(self) -> None:
        await self._http.aclose()
