"""A book with a hosted embedder: ingest, questions, resumed runs, and no text embedded twice."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bythebook.admin import read_status
from bythebook.answers import Outcome
from bythebook.book import Book
from bythebook.embeddings import EmbedderId
from bythebook.errors import BookError, CohereAPIError, ConfigurationError, ProviderAuthError, RateLimited
from bythebook.retrieval.reranker import BUDGETS
from bythebook.settings import Settings
from bythebook.testing import ScriptedReply, ScriptedServer
from tests.conftest import LIGHTHOUSE
from tests.support.embedding_server import (
    EmbeddingFault,
    EmbeddingReply,
    EmbeddingRequest,
    ScriptedEmbeddings,
    never_fail,
)
from tests.support.index_contents import contents

if TYPE_CHECKING:
    from tests.conftest import Run

COHERE = "cohere:embed-english-v3.0"
IDENTITY = EmbedderId(COHERE, 1024)
QUESTION = "What does the horn do in fog?"

FOREIGN = "Who won the football world cup in 1990?"


@pytest.fixture(scope="module")
def made(model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ScriptedEmbeddings]:
    """A book made with a hosted embedder, and the server afterwards, for tests that do not change them."""
    folder = tmp_path_factory.mktemp("hosted")
    server = serving()

    async def make() -> None:
        async with server, opened(server, folder, model_folder, embedder=COHERE) as book:
            await book.ingest(LIGHTHOUSE)

    asyncio.run(make())
    return folder, server


@asynccontextmanager
async def opened(
    server: ScriptedEmbeddings, folder: Path, model_folder: Path, **settings: object
) -> AsyncIterator[Book]:
    # A slow machine must not fail a test.
    patience = {"first_token_seconds": 60.0, "answer_seconds": 120.0}
    where = {"data_dir": folder, "model_folder": model_folder, "log_unanswered": False}
    service = {"cohere_api_key": "canary", "embedder_url": server.cohere_url}
    async with Book.open(Settings.load({**patience, **where, **service, **settings}, folder=folder)) as book:
        yield book


def serving(script: Callable[[EmbeddingRequest], EmbeddingReply] = never_fail) -> ScriptedEmbeddings:
    return ScriptedEmbeddings(script, dimension=1024, key="canary")


def test_an_ingest_embeds_each_text_once_and_one_batch_of_questions(made: tuple[Path, ScriptedEmbeddings]) -> None:
    _, server = made
    assert set(server.embedded.values()) == {1}
    assert [len(request.texts) > 10 for request in server.requests if request.is_query] == [True]


async def test_a_question_is_embedded_once_and_then_cached(
    made: tuple[Path, ScriptedEmbeddings], model_folder: Path
) -> None:
    # The book itself names its embedder.
    async with serving() as server, opened(server, made[0], model_folder) as book:
        answer = await book.ask(QUESTION)
        again = await book.ask(QUESTION)
        refused = await book.ask(FOREIGN)
        assert [request.texts for request in server.requests] == [(QUESTION,), (FOREIGN,)]
        assert (await book.plan_ingest(LIGHTHOUSE)).embedded == 0
        await book.introduction()
    assert (answer.outcome, again.answer, refused.outcome) == (Outcome.ANSWERED, answer.answer, Outcome.REFUSED)
    assert all(0.0 <= source.score <= 1.0 for source in answer.sources)
    assert len(server.requests) <= 2 + 4
    assert server.counters["texts"] == 0


async def test_in_a_crowd_the_local_embedder_scores_the_evidence(
    made: tuple[Path, ScriptedEmbeddings], model_folder: Path
) -> None:
    async with serving() as server, opened(server, made[0], model_folder) as book:
        assert book.reranker is not None
        with ExitStack() as crowd:
            for _ in range(BUDGETS[-1][0]):
                crowd.enter_context(book.reranker.budget())
            answer, refused = await book.ask(QUESTION), await book.ask(FOREIGN)
    assert (answer.metadata.reading, answer.outcome) == ("none", Outcome.ANSWERED)
    assert refused.outcome is Outcome.REFUSED


async def test_answers_are_verified_without_the_service(
    made: tuple[Path, ScriptedEmbeddings], model_folder: Path
) -> None:
    said = ScriptedReply("In fog the horn sounds, so that ships hear the rocks [1].")
    async with serving() as server, ScriptedServer(said) as model:
        asked = {"base_url": model.base_url, "model": "scripted", "retrieval_mode": "prefetch"}
        async with opened(server, made[0], model_folder, **asked) as book:
            await book.ask(QUESTION)
    assert [request.texts for request in server.requests] == [(QUESTION,)]


async def test_an_index_of_another_embedder_is_rejected_and_can_be_rebuilt(
    made: tuple[Path, ScriptedEmbeddings], model_folder: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(made[0], tmp_path / "data"))
    async with serving() as server, opened(server, folder, model_folder, embedder="local") as book:
        refused = "indexed with 'cohere:embed-english-v3.0' .*--rebuild"
        with pytest.raises(ConfigurationError, match=refused):
            await book.ask(QUESTION)
        with pytest.raises(ConfigurationError, match=refused):
            await book.ingest(LIGHTHOUSE)
        await book.ingest(LIGHTHOUSE, rebuild=True)
        assert (await book.ask(QUESTION)).outcome is Outcome.ANSWERED
    assert not server.requests


@dataclass
class FailingFirst:
    """The first attempt of every request fails, each with another fault."""

    seen: set[tuple[str, ...]] = field(default_factory=set)

    def __call__(self, request: EmbeddingRequest) -> EmbeddingReply:
        if request.texts in self.seen or request.is_query:
            return EmbeddingReply()
        self.seen.add(request.texts)
        return EmbeddingReply(FAULTS[len(self.seen) % len(FAULTS)], retry_after="0")


FAULTS = tuple(fault for fault in EmbeddingFault if fault not in (EmbeddingFault.HANG, EmbeddingFault.DRIP))


async def test_a_failing_service_gives_the_same_index_without_repeated_cost(
    made: tuple[Path, ScriptedEmbeddings], model_folder: Path, tmp_path: Path
) -> None:
    async with serving(FailingFirst()) as server:
        async with opened(server, tmp_path, model_folder, embedder=COHERE, embedder_batch=1) as book:
            await book.ingest(LIGHTHOUSE)
    assert all(server.counters[fault] for fault in FAULTS)
    assert server.embedded == made[1].embedded
    assert await contents(tmp_path / "index", IDENTITY) == await contents(made[0] / "index", IDENTITY)


async def test_an_ingest_respects_the_rate_limit_also_for_calibration_questions(
    model_folder: Path, tmp_path: Path
) -> None:
    refusals = 0

    def over_the_limit(request: EmbeddingRequest) -> EmbeddingReply:
        nonlocal refusals
        refused = request.is_query and refusals < 3
        refusals += refused
        return EmbeddingReply(status=429, retry_after="0") if refused else EmbeddingReply()

    async with serving(over_the_limit) as server, opened(server, tmp_path, model_folder, embedder=COHERE) as book:
        assert (await book.ingest(LIGHTHOUSE)).generation
    assert refusals == 3


async def test_a_failed_ingest_is_resumed(
    made: tuple[Path, ScriptedEmbeddings], model_folder: Path, tmp_path: Path
) -> None:
    chosen = {"embedder": COHERE, "embedder_concurrency": 2, "embedder_batch": 3}
    async with serving(lambda r: EmbeddingReply(status=401 if r.number > 3 else 200)) as server:
        async with opened(server, tmp_path, model_folder, **chosen) as book:
            with pytest.raises(ProviderAuthError) as caught:
                await book.ingest(LIGHTHOUSE)
    assert (server.counters["texts"], caught.value.stage) == (9, "embedding")
    async with serving() as second, opened(second, tmp_path, model_folder, **chosen) as book:
        rest = (await book.plan_ingest(LIGHTHOUSE)).embedded
        assert (await book.ingest(LIGHTHOUSE)).embedded == rest
    assert server.embedded + second.embedded == made[1].embedded
    assert await contents(tmp_path / "index", IDENTITY) == await contents(made[0] / "index", IDENTITY)


@pytest.mark.parametrize(
    ("reply", "kind", "status"),
    [
        pytest.param(EmbeddingReply(status=500), CohereAPIError, 503, id="failing"),
        pytest.param(EmbeddingReply(status=401), ProviderAuthError, 502, id="the key is refused"),
        pytest.param(EmbeddingReply(status=429, retry_after="3600"), RateLimited, 429, id="busy for an hour"),
    ],
)
async def test_a_question_that_was_not_embedded_is_an_error(
    made: tuple[Path, ScriptedEmbeddings],
    model_folder: Path,
    reply: EmbeddingReply,
    kind: type[BookError],
    status: int,
) -> None:
    async with serving(lambda _: reply) as server, opened(server, made[0], model_folder) as book:
        with pytest.raises(kind) as caught:
            await book.ask(QUESTION)
    assert (caught.value.status_code, caught.value.stage) == (status, "embedding")


def test_the_key_is_never_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COHERE_API_KEY", "canary")
    settings = Settings.load({"embedder": COHERE, "embedder_api_key": "canary"}, folder=tmp_path)
    choice = settings.embedder_config("")
    assert (choice.api_key, "canary" in settings.secrets()) == ("canary", True)
    assert "canary" not in f"{settings!r} {choice!r} {settings.describe()} {settings.agent_config()!r}"
    assert settings.agent_config().cohere_api_key == "canary"


@pytest.mark.parametrize(
    ("given", "url", "key"),
    [
        pytest.param({"openai_api_key": "o"}, "", "o", id="OpenAI"),
        pytest.param({"base_url": "http://h/v1"}, "http://h/v1", "none", id="base_url without a key"),
        pytest.param({"base_url": "http://h/v1", "api_key": "b"}, "http://h/v1", "b", id="base_url"),
        pytest.param(
            {"embedder_url": "http://e/v1", "base_url": "http://h/v1", "api_key": "b"},
            "http://e/v1",
            "none",
            id="the key of base_url is not shown to embedder_url",
        ),
        pytest.param({"embedder_url": "http://e/v1", "embedder_api_key": "e"}, "http://e/v1", "e", id="embedder_url"),
        pytest.param({}, "", "", id="none"),
    ],
)
def test_the_url_and_key_of_the_embedder(tmp_path: Path, given: dict[str, str], url: str, key: str) -> None:
    choice = Settings.load({"embedder": "openai:m", **given}, folder=tmp_path).embedder_config("")
    assert (choice.url, choice.api_key) == (url, key)


async def test_a_hosted_embedder_on_the_command_line(bythebook: Run, lighthouse: Path, tmp_path: Path) -> None:
    async with ScriptedEmbeddings(key="canary") as server:
        env = {"OPENAI_API_KEY": "canary", "BYTHEBOOK_EMBEDDER_URL": server.openai_url}
        done = await asyncio.to_thread(bythebook, "ingest", lighthouse, "--embedder", "openai:tiny", "--json", **env)
        assert done.returncode == 0, done.stderr
        # OpenAI's API has no input type. Chunks can be recognised by their headings.
        assert json.loads(done.stdout)["embedded"] == sum("\n" in text for text in server.embedded)
        chosen = Settings.load({"data_dir": tmp_path / ".bythebook"}, folder=tmp_path)
        assert (await read_status(chosen)).model == "openai:tiny"
