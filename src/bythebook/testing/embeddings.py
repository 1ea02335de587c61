"""A real server that embeds: in the words of Cohere's v2 API and of OpenAI's, with the ways in which they fail."""

from __future__ import annotations

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
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from bythebook.testing.connection import HOST, ClientLeftError, Listener

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    import numpy as np
    from numpy.typing import NDArray

    from bythebook.testing.connection import Connection, Received

COHERE, OPENAI = "POST /v2/embed", "POST /v1/embeddings"
MOST_TEXTS = {COHERE: 96, OPENAI: 2048}
DIMENSION = 64
_WORD = re.compile(r"\w+")
Json = dict[str, Any]


class EmbeddingFault(StrEnum):
    """A way in which a service for vectors fails."""

    RATE_LIMIT = "429"
    SERVER_ERROR = "500"
    BAD_GATEWAY = "502"
    HANG = "hang"
    """Nothing comes, and the connection stays open."""
    RESET = "reset"
    """The connection is reset in the middle of the reply."""
    CUT = "cut"
    """The reply ends in the middle of its JSON, as if it were whole."""
    DRIP = "drip"
    """A blank now and then, never the reply."""
    WRONG_DIMENSION = "wrong-dimension"
    """Every vector is one number short."""
    NOT_A_NUMBER = "nan"
    """One vector has something in it that is no number."""
    WRONG_COUNT = "wrong-count"
    """One vector is missing."""


@dataclass(frozen=True, slots=True)
class EmbeddingReply:
    """What becomes of a request."""

    fault: EmbeddingFault | None = None
    status: int = 200
    """Anything of 400 or more refuses the request."""
    message: str = ""
    """What a refusal says."""
    retry_after: str = ""
    """The Retry-After of a refusal, as it is to stand in the header."""
    delay: float = 0.0
    """Seconds before anything is sent."""
    drip: float = 1.0
    """Seconds between two blanks of a drip."""


@dataclass(frozen=True, slots=True)
class EmbeddingRequest:
    """What a client sent to be embedded."""

    route: str
    body: Mapping[str, Any]
    headers: Mapping[str, str]
    number: int
    """Counting from 1, in the order in which requests came."""

    @property
    def texts(self) -> tuple[str, ...]:
        given = self.body["texts" if self.route == COHERE else "input"]
        return (given,) if isinstance(given, str) else tuple(given)

    @property
    def is_question(self) -> bool:
        """Whether the texts are questions: Cohere is told, OpenAI is not."""
        return self.body.get("input_type") == "search_query"


@dataclass(frozen=True, slots=True)
class Allowance:
    """How many requests are answered in a window of time; what comes after is refused."""

    calls: int
    seconds: float = 60.0
    says_when: bool = True
    """Whether a refusal has a Retry-After."""


EmbeddingScript = Callable[[EmbeddingRequest], EmbeddingReply]


def sound(_request: EmbeddingRequest) -> EmbeddingReply:
    """A script in which nothing goes wrong."""
    return EmbeddingReply()


@dataclass(frozen=True, slots=True)
class EmbeddingFaults:
    """A script that fails for a share of the requests, by the seed and the number of the request alone."""

    rate: float
    seed: int = 0
    kinds: tuple[EmbeddingFault, ...] = tuple(EmbeddingFault)
    otherwise: EmbeddingReply = EmbeddingReply()

    def __call__(self, request: EmbeddingRequest) -> EmbeddingReply:
        drawn = random.Random(f"{self.seed}/{request.number}")  # noqa: S311 - it is the repeating that is wanted
        if drawn.random() >= self.rate:
            return self.otherwise
        return replace(self.otherwise, fault=drawn.choice(self.kinds))


class ScriptedEmbeddings:
    """A server for vectors on this machine, from `async with` to its end.

    The vector of a text depends on its words alone: texts that share words are near each other. With a `key`, only
    requests that bring it are answered; with an `allowance`, only so many.
    """

    def __init__(
        self,
        script: EmbeddingScript = sound,
        *,
        dimension: int = DIMENSION,
        key: str = "",
        allowance: Allowance | None = None,
        base64: bool = True,
        port: int = 0,
    ) -> None:
        self._script = script
        self._dimension = dimension
        self._key = key
        self._allowance = allowance
        self._base64 = base64
        self._listener = Listener(self._answer, port=port)
        self._number = 0
        self._allowed: deque[float] = deque()
        self._arrived = asyncio.Event()
        self.requests: list[EmbeddingRequest] = []
        self.counters: Counter[str] = Counter()
        """How many requests had which outcome, under `requests` how many there were, under `texts` and `questions`
        how many of those were embedded and sent whole, which is what one pays for."""
        self.embedded: Counter[str] = Counter()
        """How often each text was embedded and sent whole, other than as a question."""

    @property
    def cohere_url(self) -> str:
        """What to give Cohere's client."""
        return f"http://{HOST}:{self._listener.port}"

    @property
    def openai_url(self) -> str:
        """What to give OpenAI's client."""
        return f"http://{HOST}:{self._listener.port}/v1"

    async def arrived(self, requests: int) -> None:
        """Wait until that many requests have come."""
        while self._number < requests:
            self._arrived.clear()
            await self._arrived.wait()

    async def __aenter__(self) -> Self:
        await self._listener.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._listener.__aexit__(kind, exc, trace)

    async def _answer(self, connection: Connection, received: Received) -> None:
        route = f"{received.method} {received.path}"
        if route == "GET /counters":
            connection.send_json(self.counters | {"distinct": len(self.embedded)})
        elif self._key and received.headers.get("authorization") != f"Bearer {self._key}":
            given = received.headers.get("authorization", "").removeprefix("Bearer ")
            connection.send_json(_refusal(route, f"invalid api token: {given}"), status=401)
        elif route in MOST_TEXTS:
            await self._embed(connection, route, received)
        else:
            connection.send_json(_refusal(route, f"There is no {route}."), status=404)

    async def _embed(self, connection: Connection, route: str, received: Received) -> None:
        self._number += 1
        request = EmbeddingRequest(route, _parsed(received.body), received.headers, self._number)
        self.requests.append(request)
        self.counters["requests"] += 1
        self._arrived.set()
        reply = self._reply(request)
        await connection.pause(reply.delay)
        status = int(reply.fault) if reply.fault and reply.fault.isdigit() else reply.status
        if status >= 400:
            self.counters[str(status)] += 1
            headers = {"retry-after": reply.retry_after} if reply.retry_after else {}
            refusal = _refusal(route, reply.message or f"scripted to fail ({status})")
            connection.send_json(refusal, status=status, headers=headers)
            return
        self.counters[reply.fault or "ok"] += 1
        await self._send(connection, request, reply)
        if reply.fault is None:
            self.counters["questions" if request.is_question else "texts"] += len(request.texts)
            self.embedded.update(() if request.is_question else request.texts)

    def _reply(self, request: EmbeddingRequest) -> EmbeddingReply:
        if flaw := _flaw(request, base64=self._base64):
            return EmbeddingReply(status=400, message=flaw)
        moment, allowed = asyncio.get_running_loop().time(), self._allowance
        if allowed is None:
            return self._script(request)
        while self._allowed and self._allowed[0] <= moment - allowed.seconds:
            self._allowed.popleft()
        if len(self._allowed) < allowed.calls:
            self._allowed.append(moment)
            return self._script(request)
        wait = self._allowed[0] + allowed.seconds - moment
        said = f"You are using a Trial key, which is limited to {allowed.calls} API calls / minute."
        return EmbeddingReply(status=429, message=said, retry_after=f"{wait:.3f}" if allowed.says_when else "")

    async def _send(self, connection: Connection, request: EmbeddingRequest, reply: EmbeddingReply) -> None:
        if reply.fault is EmbeddingFault.HANG:
            await connection.hang()
        vectors = _spoiled([vector_of(text, self._dimension) for text in request.texts], reply.fault)
        data = json.dumps((_cohere if request.route == COHERE else _openai)(request, vectors)).encode()
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
            raise ClientLeftError
        connection.send(data)


@lru_cache(1 << 14)
def _direction(word: str, dimension: int) -> NDArray[np.float32]:
    import numpy as np

    seed = int.from_bytes(hashlib.sha256(word.encode("utf-8", "replace")).digest()[:8])
    return np.random.default_rng(seed).standard_normal(dimension, dtype=np.float32)


def vector_of(text: str, dimension: int = DIMENSION) -> list[float]:
    """The vector this server has for a text: its words' own directions, added up. Not of length one."""
    words = sorted(set(_WORD.findall(text.lower()))) or [text]
    total = _direction(words[0], dimension)
    for word in words[1:]:
        total = total + _direction(word, dimension)
    numbers: list[float] = total.tolist()
    return numbers


def _spoiled(vectors: list[list[float]], fault: EmbeddingFault | None) -> list[list[float]]:
    if fault is EmbeddingFault.WRONG_DIMENSION:
        return [vector[:-1] for vector in vectors]
    if fault is EmbeddingFault.WRONG_COUNT:
        return vectors[:-1]
    if fault is EmbeddingFault.NOT_A_NUMBER:
        vectors[-1][0] = math.nan
    return vectors


def _packed(vector: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def _cohere(request: EmbeddingRequest, vectors: Sequence[Sequence[float]]) -> Json:
    kinds = request.body.get("embedding_types") or ["float"]
    sent = {"float": vectors, "base64": [_packed(vector) for vector in vectors]}
    return {
        "id": f"scripted-{request.number}",
        "texts": list(request.texts),
        "embeddings": {kind: sent[kind] for kind in kinds},
        "meta": {"api_version": {"version": "2"}, "billed_units": {"input_tokens": _tokens(request)}},
        "response_type": "embeddings_by_type",
    }


def _openai(request: EmbeddingRequest, vectors: Sequence[Sequence[float]]) -> Json:
    packed = request.body.get("encoding_format") == "base64"
    rows = [
        {"object": "embedding", "index": place, "embedding": _packed(vector) if packed else vector}
        for place, vector in enumerate(vectors)
    ]
    usage = {"prompt_tokens": _tokens(request), "total_tokens": _tokens(request)}
    return {"object": "list", "data": rows, "model": request.body.get("model"), "usage": usage}


def _tokens(request: EmbeddingRequest) -> int:
    return sum(len(text.split()) for text in request.texts)


def _parsed(data: bytes) -> Json:
    try:
        body = json.loads(data)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _flaw(request: EmbeddingRequest, *, base64: bool) -> str:
    """What the provider would not take about the request, empty when it is good."""
    name = "texts" if request.route == COHERE else "input"
    given = request.body.get(name)
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        return f"invalid request: {name} must be a list of texts"
    if len(texts) > MOST_TEXTS[request.route]:
        return f"invalid request: total number of texts must be at most {MOST_TEXTS[request.route]}"
    if not all(text.strip() for text in texts):
        return "invalid request: all elements in texts must be non-empty strings"
    if request.route == COHERE and request.body.get("input_type") not in ("search_document", "search_query"):
        return "invalid request: input_type is required for this model"
    if not base64 and request.body.get("encoding_format") == "base64":
        return "encoding_format 'base64' is not supported"
    return ""


def _refusal(route: str, message: str) -> Json:
    if route == COHERE:
        return {"id": "scripted", "message": message}
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}
