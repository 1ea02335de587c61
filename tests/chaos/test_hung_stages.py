"""HARDENING R6: whichever stage hangs, the request ends when its time is over, with an error that names the stage.

The clock stands still until the stage hangs and is then moved to the deadline: nothing here depends on how fast the
machine is.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from bythebook import AgentRequest
from bythebook.answers.events import Said
from bythebook.conversations import Conversation, Conversations, Message, TurnState
from bythebook.conversations.store import open_conversations
from bythebook.embeddings.minilm.embedder import IDENTITY, local_embedder
from bythebook.errors import DeadlineExceeded
from bythebook.index.generations import Generations
from bythebook.index.provider import DiskLibrary, Edition, Shelf
from bythebook.llm.client import Endpoint
from bythebook.llm.config import AgentConfig
from bythebook.llm.generator import Speaker
from bythebook.qa.pipeline import Asker
from bythebook.qa.request import Stage
from bythebook.retrieval.retriever import Retriever
from bythebook.serialization import error_response
from bythebook.testing import Fault, Reply, ScriptedServer
from bythebook.testing.clock import StandingLoop, standing_time

if TYPE_CHECKING:
    from bythebook.embeddings import Embedder, Vector

HORN = "The horn gives two blasts of three seconds every ninety seconds."
QUESTION = "How often does the fog horn sound?"
FIRST_TOKEN, END, GRACE = 5.0, 30.0, 0.5
PATIENCE = 60.0


@dataclass
class Gate:
    """What a hung stage stands before, in a thread that nobody can cancel."""

    reached: asyncio.Event = field(default_factory=asyncio.Event)
    _open: threading.Event = field(default_factory=threading.Event)

    async def hang(self) -> None:
        self.reached.set()
        try:
            await asyncio.to_thread(self._open.wait, PATIENCE)
        except asyncio.CancelledError:
            # As a database would that is asked to undo what it has not done yet.
            await asyncio.to_thread(self._open.wait, PATIENCE)
            raise

    async def hang_in_a_thread(self) -> None:
        self.reached.set()
        await asyncio.to_thread(self._open.wait, PATIENCE)

    def open(self) -> None:
        self._open.set()


class Hanging:
    """Something of ours one of whose methods never comes back."""

    def __init__(self, inner: object, **methods: Callable[..., Any]) -> None:
        self._inner = inner
        self._methods = methods

    def __getattr__(self, name: str) -> Any:
        return self._methods.get(name) or getattr(self._inner, name)


@dataclass
class Desk:
    """A book on a shelf and everything a question passes on its way, each part of which may be made to hang."""

    asker: Asker
    session: str
    gate: Gate = field(default_factory=Gate)

    def hang(self, stage: str) -> None:
        """Make this stage hang from now on."""
        getattr(self, f"_hang_{stage}")()

    def _hang_opening(self) -> None:
        @asynccontextmanager
        async def edition() -> AsyncIterator[Edition]:
            await self.gate.hang_in_a_thread()
            yield cast("Edition", None)

        self.asker = replace(self.asker, shelf=cast("Shelf", Hanging(self.asker.shelf, edition=edition)))

    def _hang_waiting(self) -> None:
        async def begin_turn(*_: object, **__: object) -> None:
            await self.gate.hang()

        self._hang_conversations(begin_turn=begin_turn)

    def _hang_embedding(self) -> None:
        async def query(_text: str) -> None:
            await self.gate.hang_in_a_thread()

        embedder = cast("Embedder", Hanging(self.asker.embedder, query=query))
        self.asker = replace(self.asker, embedder=embedder, retriever=Retriever(embedder))

    def _hang_searching(self) -> None:
        shelf = self.asker.shelf

        async def candidates(*_: object, **__: object) -> None:
            await self.gate.hang_in_a_thread()

        @asynccontextmanager
        async def edition() -> AsyncIterator[Edition]:
            async with shelf.edition() as opened:
                yield replace(opened, store=cast("Any", Hanging(opened.store, candidates=candidates)))

        self.asker = replace(self.asker, shelf=cast("Shelf", Hanging(shelf, edition=edition)))

    def _hang_reading_closely(self) -> None:
        """What weighing and proving rest on."""

        async def documents(_texts: Sequence[str]) -> AsyncGenerator[Vector]:
            await self.gate.hang_in_a_thread()
            yield cast("Vector", None)

        self.asker = replace(self.asker, embedder=cast("Embedder", Hanging(self.asker.embedder, documents=documents)))

    def _hang_remembering(self) -> None:
        async def finish_turn(*_: object) -> None:
            await self.gate.hang()

        self._hang_conversations(finish_turn=finish_turn)

    def _hang_conversations(self, **methods: Callable[..., Any]) -> None:
        hanging = cast("Conversations", Hanging(self.asker.conversations, **methods))
        self.asker = replace(self.asker, conversations=hanging)

    async def asked_in_vain(self) -> DeadlineExceeded:
        """What the question ends with, once the clock has been moved past its deadline and the grace."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, StandingLoop)
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
            if isinstance(event, Said) and self.asker.speaker and self.asker.speaker.model == "stalls":
                self.gate.reached.set()


@asynccontextmanager
async def desk(shelved: Path, model_folder: Path, tmp_path: Path, *, model: str = "") -> AsyncIterator[Desk]:
    async with AsyncExitStack() as stack:
        embedder = await stack.enter_async_context(local_embedder(model_folder))
        conversations = await stack.enter_async_context(open_conversations(f"sqlite:///{tmp_path / 'talks.db'}"))
        conversation = Conversation([Message("system", "Answer from the book.")])
        await conversations.create(conversation)
        shelf = stack.enter_context(closing(Shelf(DiskLibrary(Generations(shelved / "index"), IDENTITY))))
        config = AgentConfig(first_token_seconds=FIRST_TOKEN, answer_seconds=END, retrieval_mode="prefetch")
        asker = Asker(shelf, embedder, Retriever(embedder), config, conversations=conversations)
        made = Desk(asker, conversation.id)
        stack.callback(made.gate.open)
        if model:
            # By a threshold a glance decides what is covered, and nothing is read closely before the model.
            config = replace(config, retrieval_threshold=0.1)
            made.asker = replace(asker, config=config, speaker=await _speaker(stack, config, model, made.gate))
        yield made
        made.gate.open()


async def _speaker(stack: AsyncExitStack, config: AgentConfig, model: str, gate: Gate) -> Speaker:
    """The model of that name: it hangs before the first word, stalls after a few, or answers."""
    replies = {
        "hangs": Reply(fault=Fault.HANG),
        "stalls": Reply(f"{HORN} [1]", fault=Fault.HANG, fault_after=5),
        "answers": Reply(f"{HORN} [1]"),
    }

    def script(_request: object) -> Reply:
        if model == "hangs":
            gate.reached.set()
        return replies[model]

    server = await stack.enter_async_context(ScriptedServer(script))
    chosen = replace(config, base_url=server.base_url, model=model)
    assert chosen.provider is not None
    endpoint = Endpoint(chosen.provider, temperature=0.0, max_tokens=100)
    stack.push_async_callback(endpoint.close)
    return Speaker(chosen, endpoint)


@pytest.mark.parametrize(
    ("hung", "model", "named"),
    [
        pytest.param("opening", "", Stage.OPENING, id="opening the book"),
        pytest.param("waiting", "", Stage.WAITING, id="beginning the turn"),
        pytest.param("embedding", "", Stage.EMBEDDING, id="embed"),
        pytest.param("searching", "", Stage.SEARCHING, id="search"),
        pytest.param("reading_closely", "", Stage.WEIGHING, id="weighing"),
        pytest.param("", "hangs", "generating: first token", id="first token"),
        pytest.param("", "stalls", "generating: mid-stream", id="mid-stream"),
        pytest.param("reading_closely", "answers", Stage.PROVING, id="proving"),
        pytest.param("remembering", "", Stage.REMEMBERING, id="remembering"),
    ],
)
def test_r6_a_hung_stage_ends_in_an_error_that_names_it(
    shelved: Path, model_folder: Path, tmp_path: Path, hung: str, model: str, named: str
) -> None:
    @standing_time
    async def ask_in_vain() -> None:
        async with desk(shelved, model_folder, tmp_path, model=model) as reader:
            if hung:
                reader.hang(hung)
            error = await reader.asked_in_vain()
        assert error.stage == named
        assert error_response(error)["detail"] == f"while {named}"

    ask_in_vain()


@standing_time
async def _a_question_waits_for_the_one_before(folder: Path, model_folder: Path, tmp_path: Path) -> None:
    async with desk(folder, model_folder, tmp_path) as reader:
        conversations = reader.asker.conversations
        assert conversations is not None
        first, _ = await conversations.begin_turn(reader.session, "Who was first?", user_id="")
        begin = conversations.begin_turn

        async def begin_turn(*args: Any, **kwargs: Any) -> Any:
            reader.gate.reached.set()
            return await begin(*args, **kwargs)

        reader.asker = replace(
            reader.asker, conversations=cast("Conversations", Hanging(conversations, begin_turn=begin_turn))
        )
        error = await reader.asked_in_vain()
        assert error.stage == Stage.WAITING
        await conversations.finish_turn(first.failed("error", duration_seconds=1.0), [])
        after, _ = await conversations.begin_turn(reader.session, "Is it free again?", user_id="")
        await conversations.finish_turn(after.failed("error", duration_seconds=1.0), [])
        kept = await conversations.turns(reader.session, user_id="")
    assert {turn.state for turn in kept} <= {TurnState.FAILED, TurnState.INTERRUPTED}


def test_r6_a_question_that_waited_in_vain_leaves_its_place(shelved: Path, model_folder: Path, tmp_path: Path) -> None:
    _a_question_waits_for_the_one_before(shelved, model_folder, tmp_path)
