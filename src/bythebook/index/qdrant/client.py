"""The Qdrant client library behind `Upstream`: deadlines, retries and error classification."""

import json
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import httpx
from qdrant_client import AsyncQdrantClient
from qdrant_client.common.client_exceptions import QdrantException, ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from bythebook.errors import ConfigurationError, QdrantConnectionError, RateLimited
from bythebook.upstream.classify import ClassifiedError, classify_http_error, classify_status
from bythebook.upstream.client import Upstream
from bythebook.upstream.deadline import Deadline

T = TypeVar("T")

MIN_VERSION = (1, 19)
"""The first version with prefix matches, which filters by URL need."""
WRITE_SECONDS = 60.0
"""The timeout of a batch of writes, or of the creation of a collection on all nodes."""
_CLIENT_TIMEOUT = 3600
"""The timeout of the client library, which is never reached: every call has a shorter deadline."""
_MAX_REASON_CHARACTERS = 200
_LIMITS = httpx.Limits(max_connections=100, max_keepalive_connections=20)


@dataclass(frozen=True, slots=True)
class QdrantAddress:
    """The URL of a server and its API key."""

    url: str
    api_key: str = field(default="", repr=False)

    def __str__(self) -> str:
        return self.url


class QdrantServer:
    """A server whose errors are translated into ours."""

    def __init__(self, client: AsyncQdrantClient, address: str, *, reading_seconds: float) -> None:
        self._client = client
        self._reading_seconds = reading_seconds
        self.address = address
        self._upstream = Upstream(f"Qdrant at {address}", classify=classify_qdrant)

    async def read(self, stage: str, work: Callable[[AsyncQdrantClient], Awaitable[T]]) -> T:
        """Call the server for a question, with the short timeout of readers."""
        return await self._call(stage, work, self._reading_seconds)

    async def write(self, stage: str, work: Callable[[AsyncQdrantClient], Awaitable[T]]) -> T:
        """Call the server for an ingest, with a long timeout. `work` may be retried, so it must be idempotent."""
        return await self._call(stage, work, WRITE_SECONDS)

    async def _call(self, stage: str, work: Callable[[AsyncQdrantClient], Awaitable[T]], seconds: float) -> T:
        deadline = Deadline.after(seconds, first_token=seconds)
        return await self._upstream.call(lambda: work(self._client), deadline=deadline, stage=stage)

    async def check_version(self) -> str:
        """The version of the server. Raises ConfigurationError if it is too old to store an index."""
        version = (await self.write("asking for the version", lambda client: client.info())).version
        numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
        if numbers < MIN_VERSION:
            oldest = ".".join(map(str, MIN_VERSION))
            raise ConfigurationError(
                f"the Qdrant server at {self.address} is version {version}, and a book needs {oldest} or newer. "
                "Update the server, or attach to a collection it has with 'bythebook index attach'."
            )
        return version


@asynccontextmanager
async def open_server(address: QdrantAddress, *, reading_seconds: float) -> AsyncIterator[QdrantServer]:
    """A client of the server at this address, open until the block ends. Opening it sends nothing."""
    # The key is passed as a header: as `api_key`, the client would warn about every URL without TLS, also about a
    # server on this machine or in the same private network.
    headers = {"api-key": address.api_key} if address.api_key else {}
    plain = {"verify": ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)} if address.url.startswith("http://") else {}
    try:
        client = AsyncQdrantClient(
            address.url,
            headers=headers,
            timeout=_CLIENT_TIMEOUT,
            check_compatibility=False,
            limits=_LIMITS,
            **plain,  # type: ignore[arg-type]
        )
    except ValueError as exc:
        raise ConfigurationError(f"qdrant_url cannot be {address.url!r}: {exc}") from exc
    try:
        yield QdrantServer(client, address.url, reading_seconds=reading_seconds)
    finally:
        await client.close()


def classify_qdrant(upstream: str, exc: Exception, /) -> ClassifiedError | None:
    """Classify an exception of the Qdrant client. None: it is not an error of the server."""
    if isinstance(exc, UnexpectedResponse):
        return _classify_response(upstream, exc)
    if isinstance(exc, ResourceExhaustedResponse):
        return ClassifiedError(
            RateLimited(f"{upstream} is busy", retry_after=exc.retry_after_s), again=True, counts=False
        )
    if isinstance(exc, ResponseHandlingException):
        return _classify_connection_error(upstream, exc.source)
    if isinstance(exc, json.JSONDecodeError | UnicodeDecodeError | QdrantException):
        return ClassifiedError.failure(_not_qdrant(upstream))
    return None


def _classify_response(upstream: str, exc: UnexpectedResponse) -> ClassifiedError:
    status = exc.status_code or 0
    if status in (401, 403):
        return ClassifiedError.rejection(
            ConfigurationError(
                f"{upstream} did not accept the key (HTTP {status}). Set QDRANT_API_KEY to a key that may read this "
                "collection, and write it to ingest."
            )
        )
    if status < 400:
        return ClassifiedError.rejection(_not_qdrant(upstream))
    return classify_status(
        upstream, status, headers=exc.headers, error=QdrantConnectionError, reason=_error_message(exc)
    )


def _error_message(exc: UnexpectedResponse) -> str:
    """The error message in the response, if the server is Qdrant."""
    try:
        error = json.loads(exc.content)["status"]["error"]
    except (ValueError, KeyError, TypeError):
        return ""
    return " ".join(str(error).split())[:_MAX_REASON_CHARACTERS]


def _classify_connection_error(upstream: str, source: Exception) -> ClassifiedError | None:
    if isinstance(source, httpx.ConnectError):
        unreachable = QdrantConnectionError(
            f"{upstream} cannot be reached. Is it running, and is qdrant_url its host and port?"
        )
        return ClassifiedError.failure(unreachable)
    if isinstance(source, httpx.UnsupportedProtocol | httpx.InvalidURL | httpx.LocalProtocolError):
        return ClassifiedError.rejection(
            ConfigurationError(f"{upstream} cannot be called: {source}. Check qdrant_url and qdrant_api_key.")
        )
    # Any other error is a response that the client could not parse.
    return classify_http_error(upstream, source, error=QdrantConnectionError) or ClassifiedError.failure(
        _not_qdrant(upstream)
    )


def _not_qdrant(upstream: str) -> QdrantConnectionError:
    return QdrantConnectionError(f"{upstream} sent a response that is not one of Qdrant. Check qdrant_url.")
