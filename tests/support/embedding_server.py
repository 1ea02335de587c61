"""`ScriptedEmbeddings`: a server with the embedding APIs of Cohere (v2) and OpenAI, and their failures."""

import asyncio
import base64
import hashlib
import json
import math
import random
import re
import struct
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bythebook.testing.connection import ClientDisconnected, Connection, RawRequest, ScriptedHTTPServer, parse_json

COHERE, OPENAI = "POST /v2/embed", "POST /v1/embeddings"
MAX_TEXTS = {COHERE: 96, OPENAI: 2048}
DIMENSION = 64
_WORD = re.compile(r"\w+")
Json = dict[str, Any]


class EmbeddingFault(StrEnum):
    """A failure of an embedding service."""

    RATE_LIMIT = "429"
    SERVER_ERROR = "500"
    BAD_GATEWAY = "502"
    HANG = "hang"
    """No data, and the connection stays open."""
    RESET = "reset"
    """The connection is reset in the middle of the reply."""
    CUT = "cut"
    """The reply ends regularly, in the middle of its JSON."""
    DRIP = "drip"
    """Whitespace is sent slowly, the reply never."""
    WRONG_DIMENSION = "wrong-dimension"
    """Every vector lacks its last number."""
    NOT_A_NUMBER = "nan"
    """One vector contains NaN."""
    WRONG_COUNT = "wrong-count"
    """One vector is missing."""


@dataclass(frozen=True, slots=True)
class EmbeddingReply:
    """The outcome of a request."""

    fault: EmbeddingFault | None = None
    status: int = 200
    """A status of 400 or more is sent as an error."""
    message: str = ""
    """The message of an error."""
    retry_after: str = ""
    """The value of the Retry-After header of an error."""
    delay: float = 0.0
    """Seconds before the first byte."""
    drip: float = 1.0
    """Seconds between two spaces of `EmbeddingFault.DRIP`."""


@dataclass(frozen=True, slots=True)
class EmbeddingRequest:
    """A request for embeddings."""

    route: str
    body: Mapping[str, Any]
    headers: Mapping[str, str]
    number: int
    """The number of the request, starting at 1."""

    @property
    def texts(self) -> tuple[str, ...]:
        given = self.body["texts" if self.route == COHERE else "input"]
        return (given,) if isinstance(given, str) else tuple(given)

    @property
    def is_query(self) -> bool:
        """True if the texts are queries. Only Cohere's API has this field."""
        return self.body.get("input_type") == "search_query"


@dataclass(frozen=True, slots=True)
class RequestQuota:
    """The number of requests that are answered in a sliding window. Further requests get 429."""

    calls: int
    seconds: float = 60.0
    sends_retry_after: bool = True
    """Whether the 429 has a Retry-After header."""


EmbeddingScript = Callable[[EmbeddingRequest], EmbeddingReply]


def never_fail(_request: EmbeddingRequest) -> EmbeddingReply:
    """A script without faults."""
    return EmbeddingReply()


@dataclass(frozen=True, slots=True)
class EmbeddingFaults:
    """A script that fails for a fraction of the requests. The seed and the request number determine each fault."""

    rate: float
    seed: int = 0
    kinds: tuple[EmbeddingFault, ...] = tuple(EmbeddingFault)
    otherwise: EmbeddingReply = EmbeddingReply()

    def __call__(self, request: EmbeddingRequest) -> EmbeddingReply:
        chance = random.Random(f"{self.seed}/{request.number}")  # noqa: S311 - it must be repeatable
        if chance.random() >= self.rate:
            return self.otherwise
        return replace(self.otherwise, fault=chance.choice(self.kinds))


@dataclass(eq=False)
class ScriptedEmbeddings(ScriptedHTTPServer):
    """An embedding server on this machine. It runs from `async with` to its end.

    The vector of a text depends only on its words: texts that share words are near each other. With a `key`, requests
    without that key are rejected; with a `quota`, those over it.
    """

    script: EmbeddingScript = never_fail
    _: KW_ONLY
    dimension: int = DIMENSION
    quota: RequestQuota | None = None
    base64: bool = True
    """Whether vectors may be requested in base64."""
    requests: list[EmbeddingRequest] = field(default_factory=list, init=False)
    embedded: Counter[str] = field(default_factory=Counter, init=False)
    """How often each text was embedded and sent completely, queries excluded. `counters` has the totals, which is what
    a provider bills, under `texts` and `questions`."""
    _request_times: deque[float] = field(default_factory=deque, init=False)

    @property
    def cohere_url(self) -> str:
        """The base URL for Cohere's client."""
        return self.root_url

    @property
    def openai_url(self) -> str:
        """The base URL for OpenAI's client."""
        return f"{self.root_url}/v1"

    async def _answer(self, connection: Connection, received: RawRequest) -> None:
        route = received.route
        if route == "GET /counters":
            connection.send_json(self.counters | {"distinct": len(self.embedded)})
        elif not self._accepts(received):
            connection.send_json(_build_error(route, f"invalid api token: {received.bearer_token}"), status=401)
        elif route in MAX_TEXTS:
            await self._embed(connection, received)
        else:
            connection.send_json(_build_error(route, f"There is no {route}."), status=404)

    async def _embed(self, connection: Connection, received: RawRequest) -> None:
        body = _parse_object(received.body)
        request = EmbeddingRequest(received.route, body, received.headers, self._count_request())
        self.requests.append(request)
        reply = self._reply(request)
        await connection.pause(reply.delay)
        status = int(reply.fault) if reply.fault and reply.fault.isdigit() else reply.status
        if status >= 400:
            self.counters[str(status)] += 1
            headers = {"retry-after": reply.retry_after} if reply.retry_after else {}
            error = _build_error(request.route, reply.message or f"scripted to fail ({status})")
            connection.send_json(error, status=status, headers=headers)
            return
        self.counters[reply.fault or "ok"] += 1
        await self._send(connection, request, reply)
        if reply.fault is None:
            self.counters["questions" if request.is_query else "texts"] += len(request.texts)
            self.embedded.update(() if request.is_query else request.texts)

    def _reply(self, request: EmbeddingRequest) -> EmbeddingReply:
        if error := _find_request_error(request, base64=self.base64):
            return EmbeddingReply(status=400, message=error)
        now, quota = asyncio.get_running_loop().time(), self.quota
        if quota is None:
            return self.script(request)
        while self._request_times and self._request_times[0] <= now - quota.seconds:
            self._request_times.popleft()
        if len(self._request_times) < quota.calls:
            self._request_times.append(now)
            return self.script(request)
        wait = self._request_times[0] + quota.seconds - now
        message = f"You are using a Trial key, which is limited to {quota.calls} API calls / minute."
        return EmbeddingReply(status=429, message=message, retry_after=f"{wait:.3f}" if quota.sends_retry_after else "")

    async def _send(self, connection: Connection, request: EmbeddingRequest, reply: EmbeddingReply) -> None:
        if reply.fault is EmbeddingFault.HANG:
            await connection.hang()
        vectors = _corrupt_vectors([embed_text(text, self.dimension) for text in request.texts], reply.fault)
        build_body = _build_cohere_body if request.route == COHERE else _build_openai_body
        data = json.dumps(build_body(request, vectors)).encode()
        if reply.fault is EmbeddingFault.CUT:
            data = data[: len(data) // 2]
        connection.send_head(200, {"content-type": "application/json", "content-length": str(len(data))})
        while reply.fault is EmbeddingFault.DRIP:
            await connection.pause(reply.drip)
            connection.send(b" ")
        if reply.fault is EmbeddingFault.RESET:
            connection.send(data[: len(data) // 2])
            await connection.pause(0)
            connection.reset()
            raise ClientDisconnected
        connection.send(data)


@lru_cache(1 << 14)
def _word_vector(word: str, dimension: int) -> NDArray[np.float32]:
    seed = int.from_bytes(hashlib.sha256(word.encode("utf-8", "replace")).digest()[:8])
    return np.random.default_rng(seed).standard_normal(dimension, dtype=np.float32)


def embed_text(text: str, dimension: int = DIMENSION) -> list[float]:
    """The vector of this server for a text: the sum of the vectors of its words, not normalised."""
    words = sorted(set(_WORD.findall(text.lower()))) or [text]
    total = _word_vector(words[0], dimension)
    for word in words[1:]:
        total = total + _word_vector(word, dimension)
    numbers: list[float] = total.tolist()
    return numbers


def _corrupt_vectors(vectors: list[list[float]], fault: EmbeddingFault | None) -> list[list[float]]:
    if fault is EmbeddingFault.WRONG_DIMENSION:
        return [vector[:-1] for vector in vectors]
    if fault is EmbeddingFault.WRONG_COUNT:
        return vectors[:-1]
    if fault is EmbeddingFault.NOT_A_NUMBER:
        vectors[-1][0] = math.nan
    return vectors


def _to_base64(vector: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def _build_cohere_body(request: EmbeddingRequest, vectors: Sequence[Sequence[float]]) -> Json:
    kinds = request.body.get("embedding_types") or ["float"]
    sent = {"float": vectors, "base64": [_to_base64(vector) for vector in vectors]}
    return {
        "id": f"scripted-{request.number}",
        "texts": list(request.texts),
        "embeddings": {kind: sent[kind] for kind in kinds},
        "meta": {"api_version": {"version": "2"}, "billed_units": {"input_tokens": _count_tokens(request)}},
        "response_type": "embeddings_by_type",
    }


def _build_openai_body(request: EmbeddingRequest, vectors: Sequence[Sequence[float]]) -> Json:
    packed = request.body.get("encoding_format") == "base64"
    rows = [
        {"object": "embedding", "index": place, "embedding": _to_base64(vector) if packed else vector}
        for place, vector in enumerate(vectors)
    ]
    usage = {"prompt_tokens": _count_tokens(request), "total_tokens": _count_tokens(request)}
    return {"object": "list", "data": rows, "model": request.body.get("model"), "usage": usage}


def _count_tokens(request: EmbeddingRequest) -> int:
    return sum(len(text.split()) for text in request.texts)


def _parse_object(data: bytes) -> Json:
    body = parse_json(data)
    return body if isinstance(body, dict) else {}


def _find_request_error(request: EmbeddingRequest, *, base64: bool) -> str:
    """Why the provider would reject the request. Empty if it is valid."""
    name = "texts" if request.route == COHERE else "input"
    given = request.body.get(name)
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        return f"invalid request: {name} must be a list of texts"
    if len(texts) > MAX_TEXTS[request.route]:
        return f"invalid request: total number of texts must be at most {MAX_TEXTS[request.route]}"
    if not all(text.strip() for text in texts):
        return "invalid request: all elements in texts must be non-empty strings"
    if request.route == COHERE and request.body.get("input_type") not in ("search_document", "search_query"):
        return "invalid request: input_type is required for this model"
    if not base64 and request.body.get("encoding_format") == "base64":
        return "encoding_format 'base64' is not supported"
    return ""


def _build_error(route: str, message: str) -> Json:
    if route == COHERE:
        return {"id": "scripted", "message": message}
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}
