"""Cohere and OpenAI as they speak over a socket, and every way in which they fail."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from bythebook.embeddings import Embedder, Identity
from bythebook.embeddings.config import Choice, Limits
from bythebook.embeddings.factory import hosted_embedder
from bythebook.errors import (
    BookError,
    CohereAPIError,
    ConfigurationError,
    DeadlineExceeded,
    ProviderAuthError,
    RateLimited,
    RetrievalError,
)
from bythebook.testing import (
    Allowance,
    EmbeddingFault,
    EmbeddingReply,
    EmbeddingRequest,
    ScriptedEmbeddings,
    standing_time,
)
from bythebook.testing.clock import StandingLoop
from bythebook.testing.embeddings import sound

PROVIDERS = ["cohere", "openai"]
DIMENSION = 16


def choice(provider: str, server: ScriptedEmbeddings, **limits: float) -> Choice:
    url = server.cohere_url if provider == "cohere" else server.openai_url
    chosen = Limits(**({"question_seconds": 60.0} | limits))  # type: ignore[arg-type]
    return Choice(f"{provider}:tiny", url=url, api_key="secret-key", limits=chosen)


@asynccontextmanager
async def opened(provider: str, server: ScriptedEmbeddings, **limits: float) -> AsyncIterator[Embedder]:
    made_with = Identity(f"{provider}:tiny", DIMENSION)
    async with server, hosted_embedder(choice(provider, server, **limits), made_with=made_with) as embedder:
        yield embedder


def first(*replies: EmbeddingReply) -> Callable[[EmbeddingRequest], EmbeddingReply]:
    """These replies, and then good ones."""
    return lambda request: replies[request.number - 1] if request.number <= len(replies) else EmbeddingReply()


def server(
    script: Callable[[EmbeddingRequest], EmbeddingReply] = sound, allowance: Allowance | None = None
) -> ScriptedEmbeddings:
    return ScriptedEmbeddings(script, dimension=DIMENSION, key="secret-key", allowance=allowance)


async def test_cohere_is_asked_in_its_own_words() -> None:
    scripted = server()
    async with opened("cohere", scripted, batch=96) as embedder:
        assert len([v async for v in embedder.documents([f"text {n}" for n in range(100)])]) == 100
        await embedder.query("What?")
    documents, rest, question = scripted.requests
    assert (len(documents.texts), len(rest.texts), question.texts) == (96, 4, ("What?",))
    assert {**documents.body, "texts": []} == {
        "model": "tiny",
        "texts": [],
        "input_type": "search_document",
        "embedding_types": ["base64"],
        "truncate": "END",
    }
    assert question.body["input_type"] == "search_query"


@pytest.mark.parametrize("takes_base64", [True, False], ids=["base64", "only floats"])
async def test_openai_is_asked_in_either_format(takes_base64: bool) -> None:
    scripted = ScriptedEmbeddings(dimension=DIMENSION, base64=takes_base64)
    async with opened("openai", scripted) as embedder:
        vectors = [v.tobytes() async for v in embedder.documents(["a lamp", "a horn"])]
        assert [(await embedder.query(text)).tobytes() for text in ("a lamp", "a horn")] == vectors
    formats = [request.body["encoding_format"] for request in scripted.requests]
    assert formats == (["base64"] * 3 if takes_base64 else ["base64", "float", "float", "float"])


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_the_dimension_of_an_unknown_model_is_asked_for_once(provider: str) -> None:
    scripted = server()
    async with scripted, hosted_embedder(choice(provider, scripted), made_with=None) as embedder:
        assert embedder.identity == Identity(f"{provider}:tiny", DIMENSION)
        await embedder.query("What?")
    assert len(scripted.requests) == 2


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    "reply",
    [
        *(
            pytest.param(EmbeddingReply(fault, retry_after="0"), id=fault)
            for fault in EmbeddingFault
            if fault not in (EmbeddingFault.HANG, EmbeddingFault.DRIP)
        ),
        pytest.param(EmbeddingReply(status=503), id="503"),
        pytest.param(EmbeddingReply(status=408), id="408"),
    ],
)
async def test_a_failure_is_survived(provider: str, reply: EmbeddingReply) -> None:
    scripted = server(first(reply))
    async with opened(provider, scripted) as embedder:
        assert len([v async for v in embedder.documents(["a lamp", "a horn"])]) == 2
    assert (len(scripted.requests), scripted.counters["texts"]) == (2, 2)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("fault", [EmbeddingFault.HANG, EmbeddingFault.DRIP], ids=str)
def test_what_never_comes_is_given_up(provider: str, fault: EmbeddingFault) -> None:
    @standing_time
    async def check() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, StandingLoop)
        scripted = server(lambda _: EmbeddingReply(fault, drip=0.0))
        async with opened(provider, scripted, question_seconds=5.0) as embedder:
            asking = asyncio.create_task(embedder.query("What?"))
            await scripted.arrived(1)
            loop.skip(6.0)
            with pytest.raises(DeadlineExceeded, match="did not"):
                await asking

    check()


REFUSALS = [
    (401, ProviderAuthError, "did not accept the API key"),
    (403, ProviderAuthError, "did not accept the API key"),
    (404, ConfigurationError, "has no model 'tiny'"),
    (400, RetrievalError, "refused the request"),
    (422, RetrievalError, "refused the request"),
    (500, RetrievalError, "failed"),
    (502, RetrievalError, "failed"),
    (429, RateLimited, "is busy"),
]


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(("status", "kind", "says"), REFUSALS, ids=[str(row[0]) for row in REFUSALS])
async def test_a_refusal_in_our_terms(provider: str, status: int, kind: type[BookError], says: str) -> None:
    later = "3600" if status == 429 else ""
    scripted = server(lambda _: EmbeddingReply(status=status, message="the key was secret-key", retry_after=later))
    async with opened(provider, scripted) as embedder:
        with pytest.raises(kind, match=says) as caught:
            await embedder.query("What?")
    assert "secret" not in str(caught.value)
    if kind is RetrievalError and provider == "cohere":
        assert isinstance(caught.value, CohereAPIError)
    assert len(scripted.requests) == (3 if status >= 500 else 1)
    assert caught.value.retry_after == (pytest.approx(3600, abs=60) if later else None)


async def test_a_wrong_key_is_not_repeated() -> None:
    scripted = ScriptedEmbeddings(dimension=DIMENSION, key="another")
    async with opened("cohere", scripted) as embedder:
        with pytest.raises(ProviderAuthError) as caught:
            await embedder.query("What?")
    assert "secret-key" not in f"{caught.value!r} {caught.value}"


async def test_a_month_is_not_waited_for() -> None:
    said = "You are using a Trial key, which is limited to 1000 API calls / month."
    scripted = server(lambda _: EmbeddingReply(status=429, message=said))
    async with opened("cohere", scripted) as embedder:
        with pytest.raises(CohereAPIError, match="for a month are used up"):
            [v async for v in embedder.documents(["a lamp"])]
    assert len(scripted.requests) == 1


async def test_a_text_too_long_for_the_model_is_said_to_be() -> None:
    said = "This model's maximum context length is 256 tokens"
    scripted = server(lambda _: EmbeddingReply(status=400, message=said))
    async with opened("openai", scripted) as embedder:
        with pytest.raises(ConfigurationError, match="Set a lower chunk_tokens"):
            [v async for v in embedder.documents(["a lamp"])]


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_limit_is_waited_for_as_long_as_it_says(provider: str) -> None:
    scripted = server(allowance=Allowance(3, seconds=0.3))
    async with opened(provider, scripted, batch=2) as embedder:
        assert len([v async for v in embedder.documents([f"text {n}" for n in range(20)])]) == 20
    assert scripted.counters["texts"] == len(scripted.embedded) == 20
    assert scripted.counters["429"] >= 1


@pytest.mark.parametrize(
    ("provider", "variable"), [("cohere", "COHERE_API_KEY"), ("openai", "OPENAI_API_KEY")], ids=PROVIDERS
)
async def test_a_missing_key_is_named(provider: str, variable: str) -> None:
    with pytest.raises(ConfigurationError, match=f"set {variable}"):
        async with hosted_embedder(Choice(f"{provider}:tiny"), made_with=None):
            pass


def test_without_coheres_client_the_way_to_it_is_said() -> None:
    script = (
        "import sys; sys.modules['cohere'] = None\n"
        "from bythebook.errors import ConfigurationError\n"
        "try:\n    import bythebook.embeddings.cohere\nexcept ConfigurationError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "pip install 'bythebook[cohere]'" in done.stdout


@pytest.mark.parametrize("name", ["cohere", "cohere:", "voyage:x", "Local", ":", "openai: "], ids=repr)
def test_what_is_no_embedder(name: str) -> None:
    with pytest.raises(ConfigurationError, match="Use local, cohere:MODEL or openai:MODEL"):
        Choice(name)


def test_chunks_fit_the_window_of_their_model() -> None:
    sizes = {
        name: (made.chunk_tokens, made.chunk_overlap)
        for name in ("local", "cohere:embed-english-v3.0", "cohere:embed-v4.0", "openai:text-embedding-3-small")
        for made in [Choice(name)]
    }
    assert sizes == {
        "local": (220, 0),
        "cohere:embed-english-v3.0": (476, 50),
        "cohere:embed-v4.0": (512, 50),
        "openai:text-embedding-3-small": (512, 50),
    }
