"""The connection to a Qdrant server: the official client, called through `upstream` like every service outside."""

from __future__ import annotations

import json
import re
import ssl
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import httpx
from qdrant_client import AsyncQdrantClient
from qdrant_client.common.client_exceptions import QdrantException, ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from bythebook.errors import ConfigurationError, QdrantConnectionError, RateLimited
from bythebook.upstream.classify import Failure, judge_http, judge_status
from bythebook.upstream.client import Upstream
from bythebook.upstream.deadline import Deadline

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

T = TypeVar("T")

OLDEST = (1, 19)
"""The first version that finds addresses by how they begin."""
WRITING_SECONDS = 60.0
"""How long the server may take to write one batch, or to make a collection on all of its machines."""
_NEVER_SECONDS = 3600
"""The client's own limit, which is never reached: every call is bounded by its deadline."""
_SAID = 200
_LIMITS = httpx.Limits(max_connections=100, max_keepalive_connections=20)


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server is, and what it asks for to let us in."""

    url: str
    api_key: str = ""

    def __str__(self) -> str:
        return self.url

    def __repr__(self) -> str:
        return f"Address({self.url!r})"


class QdrantServer:
    """A server that can be called. Its errors are ours."""

    def __init__(self, client: AsyncQdrantClient, address: str, *, reading_seconds: float) -> None:
        self._client = client
        self._reading_seconds = reading_seconds
        self.address = address
        self._upstream = Upstream(f"Qdrant at {address}", judge=judge_qdrant)

    async def read(self, stage: str, work: Callable[[AsyncQdrantClient], Awaitable[T]]) -> T:
        """What a reader waits for."""
        return await self._call(stage, work, self._reading_seconds)

    async def write(self, stage: str, work: Callable[[AsyncQdrantClient], Awaitable[T]]) -> T:
        """What an ingest waits for. Tried again, it must do no more than once."""
        return await self._call(stage, work, WRITING_SECONDS)

    async def _call(self, stage: str, work: Callable[[AsyncQdrantClient], Awaitable[T]], seconds: float) -> T:
        deadline = Deadline.after(seconds, first_token=seconds)
        return await self._upstream.call(lambda: work(self._client), deadline=deadline, stage=stage)

    async def check_version(self) -> str:
        """The version of the server, which must be new enough to write a book to."""
        version = (await self.write("asking for the version", lambda client: client.info())).version
        numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
        if numbers < OLDEST:
            oldest = ".".join(map(str, OLDEST))
            raise ConfigurationError(
                f"the Qdrant server at {self.address} is version {version}, and a book needs {oldest} or newer. "
                "Update the server, or attach to a collection it has with 'bythebook index attach'."
            )
        return version


@asynccontextmanager
async def connected(address: Address, *, reading_seconds: float) -> AsyncIterator[QdrantServer]:
    """The server at this address, until the block ends. Nothing is sent before it is asked something."""
    # The key goes as a header: given by its name, the client would warn of every address without TLS, also of a
    # server on this machine or in the same private network.
    headers = {"api-key": address.api_key} if address.api_key else {}
    plain = {"verify": ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)} if address.url.startswith("http://") else {}
    try:
        client = AsyncQdrantClient(
            address.url,
            headers=headers,
            timeout=_NEVER_SECONDS,
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


def judge_qdrant(upstream: str, exc: Exception, /) -> Failure | None:
    """What the client raised, in our terms."""
    if isinstance(exc, UnexpectedResponse):
        return _refusal(upstream, exc)
    if isinstance(exc, ResourceExhaustedResponse):
        return Failure(RateLimited(f"{upstream} is busy", retry_after=exc.retry_after_s), again=True, counts=False)
    if isinstance(exc, ResponseHandlingException):
        return _broken(upstream, exc.source)
    if isinstance(exc, json.JSONDecodeError | UnicodeDecodeError | QdrantException):
        return Failure(_not_understood(upstream), again=True, counts=True)
    return None


def _refusal(upstream: str, exc: UnexpectedResponse) -> Failure:
    status = exc.status_code or 0
    if status in (401, 403):
        return Failure(
            ConfigurationError(
                f"{upstream} did not accept the key (HTTP {status}). Set QDRANT_API_KEY to a key that may read this "
                "collection, and write it to ingest."
            ),
            again=False,
            counts=False,
        )
    if status < 400:
        return Failure(_not_understood(upstream), again=False, counts=False)
    return judge_status(upstream, status, headers=exc.headers, error=QdrantConnectionError, reason=_said(exc))


def _said(exc: UnexpectedResponse) -> str:
    """The server's own words, where it is a Qdrant that speaks."""
    try:
        error = json.loads(exc.content)["status"]["error"]
    except (ValueError, KeyError, TypeError):
        return ""
    return " ".join(str(error).split())[:_SAID]


def _broken(upstream: str, source: Exception) -> Failure | None:
    if isinstance(source, httpx.ConnectError):
        unreachable = QdrantConnectionError(
            f"{upstream} cannot be reached. Is it running, and is qdrant_url its address and port?"
        )
        return Failure(unreachable, again=True, counts=True)
    if isinstance(source, httpx.UnsupportedProtocol | httpx.InvalidURL | httpx.LocalProtocolError):
        return Failure(
            ConfigurationError(f"{upstream} cannot be called: {source}. Check qdrant_url and qdrant_api_key."),
            again=False,
            counts=False,
        )
    # Anything else than a connection that broke is an answer that the client could not read.
    return judge_http(upstream, source, error=QdrantConnectionError) or Failure(
        _not_understood(upstream), again=True, counts=True
    )


def _not_understood(upstream: str) -> QdrantConnectionError:
    return QdrantConnectionError(f"{upstream} sent something that is not an answer of Qdrant. Check qdrant_url.")
