"""HARDENING R6: if a stage hangs, the request ends at its deadline with an error that names the stage.

The clock is virtual: it is moved to the deadline once the stage hangs, so the speed of the machine does not matter.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import pytest

from bythebook import AgentRequest
from bythebook.answers import TextDelta
from bythebook.conversations import Conversation, Conversations, Message, TurnState
from bythebook.conversations.store import open_conversations
from bythebook.embeddings.local import EMBEDDER_ID, local_embedder
from bythebook.errors import DeadlineExceeded
from bythebook.index.generations import Generations
from bythebook.index.provider import IndexProvider, IndexSnapshot, LocalSnapshotLoader
from bythebook.llm.client import ChatEndpoint
from bythebook.llm.config import AgentConfig
from bythebook.llm.generator import AnswerGenerator
from bythebook.qa.pipeline import AnswerPipeline
from bythebook.qa.request import Stage
from bythebook.retrieval.reranker import Reranker
from bythebook.retrieval.retriever import Retriever
from bythebook.serialization import error_to_dict
from bythebook.testing import Fault, ScriptedReply, ScriptedServer
from tests.support.clock import ManualClockLoop, manual_clock

if TYPE_CHECKING:
    from bythebook.embeddings import Embedder
    from bythebook.models.cross_encoder import CrossEncoder

T = TypeVar("T")

HORN = "The horn gives two blasts of three seconds every ninety seconds."
QUESTION = "How often does the fog horn sound?"
FIRST_TOKEN, END, GRACE = 5.0, 30.0, 0.5
PATIENCE = 60.0


@dataclass
class Gate:
    """Blocks a thread that cannot be cancelled."""

    reached: asyncio.Event = field(default_factory=asyncio.Event)
    _open: threading.Event = field(default_factory=threading.Event)

    async def hang(self) -> None:
        self.reached.set()
        try:
            await asyncio.to_thread(self._open.wait, PATIENCE)
        except asyncio.CancelledError:
            # Like a database that must roll back unfinished work.
            await asyncio.to_thread(self._open.wait, PATIENCE)
            raise

    async def hang_in_a_thread(self) -> None:
        self.reached.set()
        await asyncio.to_thread(self._open.wait, PATIENCE)

    def open(self) -> None:
        self._open.set()


class Hanging:
    """A wrapper of an object, one of whose methods never returns."""

    def __init__(self, inner: object, **methods: Callable[..., Any]) -> None:
        self._inner = inner
        self._methods = methods

    def __getattr__(self, name: str) -> Any:
        return self._methods.get(name) or getattr(self._inner, name)


def returning(opened: T) -> Callable[[], Awaitable[T]]:
    """An `open_snapshot` replacement for a component that is already open."""

    async def open_part() -> T:
        return opened

    return open_part


class HangingReader:
    """A cross-encoder that reads so many times, and then hangs."""

    def __init__(self, gate: Gate, *, reads: int) -> None:
        self._gate = gate
        self._reads = reads

    def count_tokens(self, text: str) -> int:
        return len(text) // 4

    async def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        if self._reads == 0:
            await self._gate.hang_in_a_thread()
        self._reads -= 1
        return [-3.0 for _ in pairs]


@dataclass
class Desk:
    """A book and all components of the question path. Each of them can be made to hang."""

    asker: AnswerPipeline
    session: str
    conversations: Conversations
    model: str = ""
    gate: Gate = field(default_factory=Gate)

    def hang(self, stage: str) -> None:
        """Make this stage hang."""
        getattr(self, f"_hang_{stage}")()

    def _hang_opening(self) -> None:
        @asynccontextmanager
        async def snapshot() -> AsyncIterator[IndexSnapshot]:
            await self.gate.hang_in_a_thread()
            yield cast("IndexSnapshot", None)

        self.asker = replace(
            self.asker, index_provider=cast("IndexProvider", Hanging(self.asker.index_provider, snapshot=snapshot))
        )

    def _hang_waiting(self) -> None:
        async def begin_turn(*_: object, **__: object) -> None:
            await self.gate.hang()

        self._hang_conversations(begin_turn=begin_turn)

    def _hang_embedding(self) -> None:
        async def query(_text: str) -> None:
            await self.gate.hang_in_a_thread()

        embedder = cast("Embedder", Hanging(self.asker.embedder, embed_query=query))
        self.asker = replace(self.asker, embedder=embedder, retriever=Retriever(embedder))

    def _hang_searching(self) -> None:
        index_provider = self.asker.index_provider

        async def candidates(*_: object, **__: object) -> None:
            await self.gate.hang_in_a_thread()

        @asynccontextmanager
        async def snapshot() -> AsyncIterator[IndexSnapshot]:
            async with index_provider.snapshot() as opened:
                yield replace(opened, store=cast("Any", Hanging(opened.store, search=candidates)))

        self.asker = replace(
            self.asker, index_provider=cast("IndexProvider", Hanging(index_provider, snapshot=snapshot))
        )

    def _hang_reranking(self) -> None:
        self._rerank_with(HangingReader(self.gate, reads=0))

    def _hang_weighing(self) -> None:
        # The reranker has read the passages in two calls, and then hangs over their sentences.
        self._rerank_with(HangingReader(self.gate, reads=2))

    def _hang_proving(self) -> None:
        model = cast("CrossEncoder", HangingReader(self.gate, reads=0))
        self.asker = replace(self.asker, open_entailment=returning(model))

    def _rerank_with(self, model: HangingReader) -> None:
        reranker = Reranker(cast("CrossEncoder", model))
        self.asker = replace(self.asker, retriever=Retriever(self.asker.embedder, reranker=reranker))

    def _hang_remembering(self) -> None:
        async def finish_turn(*_: object) -> None:
            await self.gate.hang()

        self._hang_conversations(finish_turn=finish_turn)

    def _hang_conversations(self, **methods: Callable[..., Any]) -> None:
        hanging = cast("Conversations", Hanging(self.conversations, **methods))
        self.asker = replace(self.asker, open_conversations=returning(hanging))

    async def asked_in_vain(self) -> DeadlineExceeded:
        """The outcome of the question after the clock has passed the deadline and the grace period."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, ManualClockLoop)
        asking = asyncio.ensure_future(self._ask())
        await self.gate.reached.wait()
        assert not asking.done()
        for seconds in (FIRST_TOKEN, END - FIRST_TOKEN, GRACE):
            loop.skip(seconds)
            for _ in range(20):
                await asyncio.sleep(0)
        ended = threading.Event()
        asking.add_done_callback(lambda _: ended.set())
        assert await asyncio.to_thread(ended.wait, PATIENCE), "the request never ended"
        error = asking.exception()
        assert isinstance(error, DeadlineExceeded)
        return error

    async def _ask(self) -> None:
        request = AgentRequest(QUESTION, session_id=self.session)
        async for event in self.asker.stream(request):
            if isinstance(event, TextDelta) and self.model == "stalls":
                self.gate.reached.set()


@asynccontextmanager
async def desk(shelved: Path, model_folder: Path, tmp_path: Path, *, model: str = "") -> AsyncIterator[Desk]:
    async with AsyncExitStack() as stack:
        embedder = await stack.enter_async_context(local_embedder(model_folder))
        conversations = await stack.enter_async_context(open_conversations(f"sqlite:///{tmp_path / 'talks.db'}"))
        conversation = Conversation([Message("system", "Answer from the book.")])
        await conversations.create(conversation)
        index_provider = stack.enter_context(
            closing(IndexProvider(LocalSnapshotLoader(Generations(shelved / "index"), EMBEDDER_ID)))
        )
        config = AgentConfig(first_token_seconds=FIRST_TOKEN, answer_seconds=END, retrieval_mode="prefetch")
        asker = AnswerPipeline(
            index_provider, embedder, Retriever(embedder), config, open_conversations=returning(conversations)
        )
        made = Desk(asker, conversation.id, conversations, model)
        stack.callback(made.gate.open)
        if model:
            # With a fixed threshold, coverage is decided lexically and no evidence is scored before the model call.
            config = replace(config, retrieval_threshold=0.1)
            generator = await _generator(stack, config, model, made.gate)
            made.asker = replace(asker, config=config, open_generator=returning(generator))
        yield made
        made.gate.open()


async def _generator(stack: AsyncExitStack, config: AgentConfig, model: str, gate: Gate) -> AnswerGenerator:
    """A model that hangs before the first word, stalls after a few words, or answers."""
    replies = {
        "hangs": ScriptedReply(fault=Fault.HANG),
        "stalls": ScriptedReply(f"{HORN} [1]", fault=Fault.HANG, fault_after=5),
        "answers": ScriptedReply(f"{HORN} [1]"),
    }

    def script(_request: object) -> ScriptedReply:
        if model == "hangs":
            gate.reached.set()
        return replies[model]

    server = await stack.enter_async_context(ScriptedServer(script))
    chosen = replace(config, base_url=server.base_url, model=model)
    assert chosen.provider is not None
    endpoint = ChatEndpoint(chosen.provider, temperature=0.0, max_tokens=100)
    stack.push_async_callback(endpoint.close)
    return AnswerGenerator(chosen, endpoint)


@pytest.mark.parametrize(
    ("hung", "model", "named"),
    [
        pytest.param("opening", "", Stage.OPENING, id="opening the book"),
        pytest.param("waiting", "", Stage.WAITING, id="beginning the turn"),
        pytest.param("embedding", "", Stage.EMBEDDING, id="embed"),
        pytest.param("searching", "", Stage.SEARCHING, id="search"),
        pytest.param("reranking", "", Stage.RERANKING, id="reranking"),
        pytest.param("weighing", "", Stage.WEIGHING, id="weighing"),
        pytest.param("", "hangs", "generating: first token", id="first token"),
        pytest.param("", "stalls", "generating: mid-stream", id="mid-stream"),
        pytest.param("proving", "answers", Stage.PROVING, id="proving"),
        pytest.param("remembering", "", Stage.REMEMBERING, id="remembering"),
    ],
)
def test_r6_a_hung_stage_is_an_error_with_its_name(
    shelved: Path, model_folder: Path, tmp_path: Path, hung: str, model: str, named: str
) -> None:
    @manual_clock
    async def ask_in_vain() -> None:
        async with desk(shelved, model_folder, tmp_path, model=model) as reader:
            if hung:
                reader.hang(hung)
            error = await reader.asked_in_vain()
        assert error.stage == named
        assert error_to_dict(error)["detail"] == f"while {named}"

    ask_in_vain()


@manual_clock
async def _a_question_waits_for_the_one_before(folder: Path, model_folder: Path, tmp_path: Path) -> None:
    async with desk(folder, model_folder, tmp_path) as reader:
        conversations = reader.conversations
        first, _ = await conversations.begin_turn(reader.session, "Who was first?", user_id="")
        begin = conversations.begin_turn

        async def begin_turn(*args: Any, **kwargs: Any) -> Any:
            reader.gate.reached.set()
            return await begin(*args, **kwargs)

        hanging = cast("Conversations", Hanging(conversations, begin_turn=begin_turn))
        reader.asker = replace(reader.asker, open_conversations=returning(hanging))
        error = await reader.asked_in_vain()
        assert error.stage == Stage.WAITING
        await conversations.finish_turn(first.fail("error", duration_seconds=1.0), [])
        after, _ = await conversations.begin_turn(reader.session, "Is it free again?", user_id="")
        await conversations.finish_turn(after.fail("error", duration_seconds=1.0), [])
        kept = await conversations.turns(reader.session, user_id="")
    assert {turn.state for turn in kept} <= {TurnState.FAILED, TurnState.INTERRUPTED}


def test_r6_a_timed_out_question_releases_its_slot(shelved: Path, model_folder: Path, tmp_path: Path) -> None:
    _a_question_waits_for_the_one_before(shelved, model_folder, tmp_path)
