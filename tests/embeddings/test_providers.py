"""Cohere's and OpenAI's APIs over a socket, and their failures."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from bythebook.embeddings import Embedder, EmbedderId
from bythebook.embeddings.config import EmbedderConfig, EmbedderLimits
from bythebook.embeddings.remote import hosted_embedder
from bythebook.errors import (
    BookError,
    CohereAPIError,
    ConfigurationError,
    DeadlineExceeded,
    ProviderAuthError,
    RateLimited,
    RetrievalError,
)
from tests.support.clock import ManualClockLoop, manual_clock
from tests.support.embedding_server import (
    EmbeddingFault,
    EmbeddingReply,
    EmbeddingRequest,
    RequestQuota,
    ScriptedEmbeddings,
    never_fail,
)

PROVIDERS = ["cohere", "openai"]
DIMENSION = 16


def choice(provider: str, server: ScriptedEmbeddings, **limits: float) -> EmbedderConfig:
    url = server.cohere_url if provider == "cohere" else server.openai_url
    chosen = EmbedderLimits(**({"question_seconds": 60.0} | limits))  # type: ignore[arg-type]
    return EmbedderConfig(f"{provider}:tiny", url=url, api_key="secret-key", limits=chosen)


@asynccontextmanager
async def opened(provider: str, server: ScriptedEmbeddings, **limits: float) -> AsyncIterator[Embedder]:
    embedder_id = EmbedderId(f"{provider}:tiny", DIMENSION)
    async with server, hosted_embedder(choice(provider, server, **limits), embedder_id=embedder_id) as embedder:
        yield embedder


def first(*replies: EmbeddingReply) -> Callable[[EmbeddingRequest], EmbeddingReply]:
    """These replies first, then successful ones."""
    return lambda request: replies[request.number - 1] if request.number <= len(replies) else EmbeddingReply()


def server(
    script: Callable[[EmbeddingRequest], EmbeddingReply] = never_fail, quota: RequestQuota | None = None
) -> ScriptedEmbeddings:
    return ScriptedEmbeddings(script, dimension=DIMENSION, key="secret-key", quota=quota)


async def test_sends_requests_in_the_format_of_cohere() -> None:
    scripted = server()
    async with opened("cohere", scripted, batch=96) as embedder:
        assert len([v async for v in embedder.embed_documents([f"text {n}" for n in range(100)])]) == 100
        await embedder.embed_query("What?")
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
async def test_falls_back_from_base64_to_floats_with_openai(takes_base64: bool) -> None:
    scripted = ScriptedEmbeddings(dimension=DIMENSION, base64=takes_base64)
    async with opened("openai", scripted) as embedder:
        vectors = [v.tobytes() async for v in embedder.embed_documents(["a lamp", "a horn"])]
        assert [(await embedder.embed_query(text)).tobytes() for text in ("a lamp", "a horn")] == vectors
    formats = [request.body["encoding_format"] for request in scripted.requests]
    assert formats == (["base64"] * 3 if takes_base64 else ["base64", "float", "float", "float"])


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_measures_the_dimension_of_an_unknown_model_once(provider: str) -> None:
    scripted = server()
    async with scripted, hosted_embedder(choice(provider, scripted), embedder_id=None) as embedder:
        assert embedder.identity == EmbedderId(f"{provider}:tiny", DIMENSION)
        await embedder.embed_query("What?")
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
async def test_retries_transient_failures(provider: str, reply: EmbeddingReply) -> None:
    scripted = server(first(reply))
    async with opened(provider, scripted) as embedder:
        assert len([v async for v in embedder.embed_documents(["a lamp", "a horn"])]) == 2
    assert (len(scripted.requests), scripted.counters["texts"]) == (2, 2)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("fault", [EmbeddingFault.HANG, EmbeddingFault.DRIP], ids=str)
def test_fails_after_the_deadline_of_a_hanging_service(provider: str, fault: EmbeddingFault) -> None:
    @manual_clock
    async def check() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, ManualClockLoop)
        scripted = server(lambda _: EmbeddingReply(fault, drip=0.0))
        async with opened(provider, scripted, question_seconds=5.0) as embedder:
            asking = asyncio.create_task(embedder.embed_query("What?"))
            await scripted.wait_for_requests(1)
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
async def test_classifies_error_responses(provider: str, status: int, kind: type[BookError], says: str) -> None:
    later = "3600" if status == 429 else ""
    scripted = server(lambda _: EmbeddingReply(status=status, message="the key was secret-key", retry_after=later))
    async with opened(provider, scripted) as embedder:
        with pytest.raises(kind, match=says) as caught:
            await embedder.embed_query("What?")
    assert "secret" not in str(caught.value)
    if kind is RetrievalError and provider == "cohere":
        assert isinstance(caught.value, CohereAPIError)
    assert len(scripted.requests) == (3 if status >= 500 else 1)
    assert caught.value.retry_after == (pytest.approx(3600, abs=60) if later else None)


async def test_an_error_message_does_not_contain_the_key() -> None:
    scripted = ScriptedEmbeddings(dimension=DIMENSION, key="another")
    async with opened("cohere", scripted) as embedder:
        with pytest.raises(ProviderAuthError) as caught:
            await embedder.embed_query("What?")
    assert "secret-key" not in f"{caught.value!r} {caught.value}"


async def test_a_used_up_monthly_quota_is_not_retried() -> None:
    said = "You are using a Trial key, which is limited to 1000 API calls / month."
    scripted = server(lambda _: EmbeddingReply(status=429, message=said))
    async with opened("cohere", scripted) as embedder:
        with pytest.raises(CohereAPIError, match="monthly quota of this Cohere key is used up"):
            [v async for v in embedder.embed_documents(["a lamp"])]
    assert len(scripted.requests) == 1


async def test_reports_a_chunk_beyond_the_context_window() -> None:
    said = "This model's maximum context length is 256 tokens"
    scripted = server(lambda _: EmbeddingReply(status=400, message=said))
    async with opened("openai", scripted) as embedder:
        with pytest.raises(ConfigurationError, match="Set a lower chunk_tokens"):
            [v async for v in embedder.embed_documents(["a lamp"])]


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_waits_for_the_retry_after_header(provider: str) -> None:
    scripted = server(quota=RequestQuota(3, seconds=0.3))
    async with opened(provider, scripted, batch=2) as embedder:
        assert len([v async for v in embedder.embed_documents([f"text {n}" for n in range(20)])]) == 20
    assert scripted.counters["texts"] == len(scripted.embedded) == 20
    assert scripted.counters["429"] >= 1


@pytest.mark.parametrize(
    ("provider", "variable"), [("cohere", "COHERE_API_KEY"), ("openai", "OPENAI_API_KEY")], ids=PROVIDERS
)
async def test_names_the_environment_variable_of_a_missing_key(provider: str, variable: str) -> None:
    with pytest.raises(ConfigurationError, match=f"set {variable}"):
        async with hosted_embedder(EmbedderConfig(f"{provider}:tiny"), embedder_id=None):
            pass


def test_explains_how_to_install_the_client_of_cohere() -> None:
    script = (
        "import sys; sys.modules['cohere'] = None\n"
        "from bythebook.errors import ConfigurationError\n"
        "try:\n    import bythebook.embeddings.cohere\nexcept ConfigurationError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "pip install 'bythebook[cohere]'" in done.stdout


@pytest.mark.parametrize("name", ["cohere", "cohere:", "voyage:x", "Local", ":", "openai: "], ids=repr)
def test_rejects_unknown_embedder_names(name: str) -> None:
    with pytest.raises(ConfigurationError, match="Use local, cohere:MODEL or openai:MODEL"):
        EmbedderConfig(name)


def test_chunk_sizes_fit_the_context_window_of_the_model() -> None:
    sizes = {
        name: (made.chunk_tokens, made.chunk_overlap)
        for name in ("local", "cohere:embed-english-v3.0", "cohere:embed-v4.0", "openai:text-embedding-3-small")
        for made in [EmbedderConfig(name)]
    }
    assert sizes == {
        "local": (220, 0),
        "cohere:embed-english-v3.0": (476, 50),
        "cohere:embed-v4.0": (512, 50),
        "openai:text-embedding-3-small": (512, 50),
    }
