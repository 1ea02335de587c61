"""Assembly: settings become a book. Every adapter is named here, and everything opened here is closed here."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack, ExitStack, aclosing, asynccontextmanager, suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from importlib import import_module
from typing import TYPE_CHECKING, Self

from bythebook.answers import AgentRequest
from bythebook.embeddings.cache import RememberingEmbedder
from bythebook.embeddings.factory import open_hosted, open_local
from bythebook.embeddings.minilm.embedder import IDENTITY
from bythebook.errors import DeadlineExceeded, NotFound, QdrantConnectionError, RateLimited, Unavailable
from bythebook.feedback.answer_log import Notebook
from bythebook.index import EVERYWHERE
from bythebook.index.backends import open_kept
from bythebook.index.provider import Shelf
from bythebook.qa.pipeline import Asker
from bythebook.qa.request import Pace
from bythebook.retrieval.retriever import Retriever
from bythebook.upstream.deadline import Deadline

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path
    from types import TracebackType

    from bythebook.access.api_keys import Keyring
    from bythebook.answers import AgentResponse
    from bythebook.answers.events import Event
    from bythebook.chunking.splitter import Sizes
    from bythebook.conversations import Conversation, Conversations
    from bythebook.conversations.followups import Exchange
    from bythebook.database.engine import Database
    from bythebook.embeddings import Embedder, Identity
    from bythebook.embeddings.minilm.embedder import Begun
    from bythebook.feedback import GapReport
    from bythebook.feedback.ratings import Asked, Feedback, Ledger, Rating
    from bythebook.index import Filters
    from bythebook.index.backends import Desk
    from bythebook.index.provider import Edition
    from bythebook.ingest import Report
    from bythebook.ingest.pipeline import Engine, Workshop
    from bythebook.llm.extractive_model import ExtractiveModel
    from bythebook.llm.generator import Speaker
    from bythebook.qa.suggestions import Introduction
    from bythebook.retrieval import RetrievalContext
    from bythebook.settings import Settings
    from bythebook.sources import PageSource
    from bythebook.telemetry import Progress

LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
MOST_UNANSWERED = 3000
"""How many questions are looked at for a report: each is looked up in the book, and compared with every other."""
WRITTEN_ELSEWHERE_SECONDS = 0.25
"""How long an answer that is not written down yet is waited for."""


_FOR_NOW = (QdrantConnectionError, RateLimited, Unavailable, DeadlineExceeded)
"""What may be over by the time of the first question."""


def _unseen(_stage: str, _done: int, _total: int) -> None:
    """Progress for callers who do not watch."""


def _unheard(_text: str) -> None:
    """Announcements for callers who do not listen."""


def _request(request: AgentRequest | str, session_id: str | None = None) -> AgentRequest:
    if isinstance(request, str):
        return AgentRequest(request, session_id=session_id)
    return request if session_id is None else replace(request, session_id=session_id)


class Book:
    """A book that can be read in, searched and asked. Use it as `async with Book.open(settings) as book`."""

    def __init__(self, settings: Settings, *, say: Callable[[str], None], begun: Begun | None) -> None:
        self._settings = settings
        self._say = say
        self._begun = begun
        self._stack = AsyncExitStack()
        self._speaker: Speaker | None = None
        self._introduced: tuple[str, Introduction] | None = None
        self._database: Database | None = None
        self._conversations: Conversations | None = None
        self._opening = asyncio.Lock()
        self._aside = settings.data_dir / "asked"
        self._notebook = Notebook(self._ledger, questions=settings.keep_gaps == "on")

    @classmethod
    def open(cls, settings: Settings, *, say: Callable[[str], None] = _unheard, begun: Begun | None = None) -> Self:
        """A book with these settings. Nothing is opened before the context is entered; `say` hears of downloads."""
        return cls(settings, say=say, begun=begun)

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            self._kept = await stack.enter_async_context(open_kept(self._settings.index_config()))
            made_with = await self._made_with()
            self._choice = self._settings.embedding(made_with.model if made_with else "")
            self._finder = await open_hosted(self._choice, made_with, stack)
            identity = self._finder.identity if self._finder else IDENTITY
            self._shelf = Shelf(self._kept.library(identity, self._count))
            stack.callback(self._shelf.close)
            # The index opens while the model loads: a first answer waits for the slower of the two. One that cannot be
            # asked may still be made anew.
            shelf = asyncio.create_task(self._prepare_shelf()) if made_with == identity else None
            self._local = await stack.enter_async_context(
                open_local(self._settings.model_folder, say=self._say, begun=self._begun)
            )
            self.reader: Embedder = RememberingEmbedder(self._local)
            """Reads closely what was found, and proves answers."""
            self.embedder: Embedder = RememberingEmbedder(self._finder) if self._finder else self.reader
            """Finds: the vectors of the index are its."""
            if shelf:
                await shelf
            self.retriever = Retriever(self.embedder, reader=self.reader if self._finder else None)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._notebook.close()
        await self._stack.aclose()

    async def _made_with(self) -> Identity | None:
        """Whose vectors the book has. A server that does not answer now is asked again by the first question."""
        with suppress(*_FOR_NOW):
            return await self._kept.made_with()
        return None

    async def _prepare_shelf(self) -> None:
        with suppress(*_FOR_NOW):
            await self._shelf.prepare()

    def _count(self, text: str) -> int:
        """The embedder's tokens of a text, for a collection that does not know how many there are."""
        return (self._finder or self._local).count(text)

    async def ingest(
        self,
        *sources: PageSource | Path | str,
        progress: Progress = _unseen,
        alone: bool = False,
        rebuild: bool = False,
    ) -> Report:
        """Read these sources into the book. What has not changed costs nothing; readers see all of it or none.

        Pages of other sources stay, unless these shall stand `alone`. With `rebuild` the index is made from nothing.
        """
        from bythebook.ingest.pipeline import ingest
        from bythebook.sources.factory import open_sources

        with ExitStack() as stack:
            opened = open_sources(self._settings.source_options(), sources, stack, progress=progress, keep=True)
            desk = await self._kept.desk(progress=progress)
            work = self._workshop(desk, progress)
            report = await ingest(work, opened, alone=alone, rebuild=rebuild)
            began = time.perf_counter()
            generation = await desk.publish(chunking=asdict(work.sizes), progress=progress)
            if not generation:
                return report
            return replace(report, generation=generation, seconds=report.seconds + time.perf_counter() - began)

    async def rehearse(
        self,
        *sources: PageSource | Path | str,
        progress: Progress = _unseen,
        alone: bool = False,
        rebuild: bool = False,
    ) -> Report:
        """What `ingest` would do, writing nothing."""
        from bythebook.ingest.pipeline import rehearse
        from bythebook.sources.factory import open_sources

        with ExitStack() as stack:
            opened = open_sources(self._settings.source_options(), sources, stack, progress=progress, keep=False)
            work = self._workshop(await self._kept.desk(progress=progress), progress)
            return await rehearse(work, opened, alone=alone, rebuild=rebuild)

    async def search(self, query: str, *, top_k: int | None = None, filters: Filters = EVERYWHERE) -> RetrievalContext:
        """The passages that bear most on the query, best first."""
        request = AgentRequest(query, top_k=top_k, filters=filters)
        wanted = request.top_k or self._settings.retrieval_top_k
        pace = Pace(Deadline.after(self._settings.answer_seconds, first_token=self._settings.first_token_seconds))
        async with self._shelf.edition() as edition:
            found = await self.retriever.retrieve(
                edition, request.query, top_k=wanted, filters=filters, within=pace.within
            )
            return found.context

    async def ask(self, request: AgentRequest | str, *, user_id: str = "") -> AgentResponse:
        """An answer from the book's own sentences, or an honest refusal. `user_id` says whose the session is."""
        return await (await self._asker(request)).ask(_request(request), user_id=user_id)

    async def stream(
        self,
        request: AgentRequest | str,
        *,
        session_id: str | None = None,
        user_id: str = "",
        history: Sequence[Exchange] = (),
    ) -> AsyncGenerator[Event]:
        """What happens on the way to the answer, which is the last event.

        A question of a session has its history there; for one without, whoever asks may give it.
        """
        asked = _request(request, session_id)
        asker = await self._asker(asked)
        async with aclosing(asker.stream(asked, user_id=user_id, history=history)) as events:
            async for event in events:
                yield event

    async def introduction(self) -> Introduction:
        """The book's name, its sections and some questions it answers. Made once for each generation."""
        from bythebook.qa.suggestions import introduce

        async with self._shelf.edition() as edition:
            if self._introduced is None or self._introduced[0] != edition.name:
                made = await introduce(edition, self.reader, self.retriever, name=self._settings.book_name)
                self._introduced = (edition.name, made)
            return self._introduced[1]

    async def conversation(self, session_id: str | None = None, *, user_id: str = "") -> Conversation:
        """The reader's conversation with this id, or a new one."""
        from bythebook.conversations import Conversation, Message
        from bythebook.llm.context_budget import count

        conversations = await self._open_conversations()
        if session_id is not None:
            return await conversations.load(session_id, user_id=user_id)
        config = self._settings.agent_config()
        rules = Message("system", config.system_prompt).counted(count)
        fresh = Conversation([rules], user_id=user_id, model=config.model, max_history=config.max_history)
        await conversations.create(fresh)
        return fresh

    async def conversations(self) -> Conversations:
        """Where this book's conversations are kept."""
        return await self._open_conversations()

    def unaided(self) -> Asker:
        """Answers in the book's own words, whatever model there is. Nothing of them is written down."""
        return Asker(self._shelf, self.reader, self.retriever, self._settings.agent_config())

    async def examiner(self) -> Asker:
        """Answers as readers get them, through the model where there is one. Nothing of them is written down."""
        return replace(self.unaided(), speaker=await self._open_speaker())

    def extractive_model(self) -> ExtractiveModel:
        """This book's own sentences as a model of the Agents SDK, for an agent of yours."""
        from bythebook.llm.extractive_model import ExtractiveModel

        asker = self.unaided()
        return ExtractiveModel(lambda question, history: asker.ask(AgentRequest(question), history=history))

    async def rate(self, response_id: str, rating: Rating | str, reason: str = "", *, user_id: str = "") -> Feedback:
        """Keep what this reader thinks of an answer they were given: `up` or `down`. A later rating replaces it.

        Raises NotFound for an answer that is not theirs.
        """
        from bythebook.feedback.ratings import Feedback, Rating

        given = Feedback(response_id, Rating(rating), reason)
        await self.settle()
        ledger = await self._ledger()
        try:
            return await ledger.rate(given, user_id=user_id)
        except NotFound:
            # Another process may have answered, and be writing it down this moment.
            await asyncio.sleep(WRITTEN_ELSEWHERE_SECONDS)
            return await ledger.rate(given, user_id=user_id)

    async def unanswered(self, *, since: datetime = LONG_AGO, limit: int = MOST_UNANSWERED) -> list[Asked]:
        """The latest questions that were refused, asked back or rated down since then, whoever asked them."""
        from bythebook.feedback import answer_log

        await self.settle()
        ledger = await self._ledger()
        await ledger.keep(list(answer_log.take(self._aside)))
        return await ledger.unanswered(since=since, limit=limit)

    async def gaps(self, *, since: datetime = LONG_AGO, limit: int = 20) -> GapReport:
        """What readers asked since then and the book does not answer: at most `limit` topics, and where they belong."""
        from bythebook.feedback.gaps import find_gaps

        unanswered = await self.unanswered(since=since, limit=MOST_UNANSWERED)
        every = await (await self._ledger()).count_unanswered(since=since)
        async with self._shelf.edition() as edition:
            found = await find_gaps(
                unanswered, edition=edition, embedder=self.reader, retriever=self.retriever, limit=limit
            )
        left_out = max(every - found.questions, 0)
        return replace(found, questions=found.questions + left_out, questions_left_out=left_out)

    async def settle(self) -> None:
        """Wait until everything asked so far is written down."""
        await self._notebook.settle()

    def part(self) -> None:
        """Say that this process ends after its next answer, so that closing the book need not open a database."""
        self._notebook.put_aside(self._aside)

    async def _ledger(self) -> Ledger:
        from bythebook.feedback.ratings import Ledger

        return Ledger(await self.database())

    async def _asker(self, request: AgentRequest | str) -> Asker:
        remembers = isinstance(request, AgentRequest) and request.session_id is not None
        return Asker(
            self._shelf,
            self.reader,
            self.retriever,
            self._settings.agent_config(),
            speaker=await self._open_speaker(),
            conversations=await self._open_conversations() if remembers else None,
            notebook=self._notebook,
        )

    async def _open_speaker(self) -> Speaker | None:
        """The model's side, opened for the first question that needs it; None when no provider is set."""
        config = self._settings.agent_config()
        if self._speaker is None and (provider := config.provider):
            # It takes seconds to import, and the table of tokens to load. Meanwhile others are answered.
            await asyncio.to_thread(lambda: import_module("bythebook.llm.generator").count(""))
            from bythebook.llm.client import Endpoint
            from bythebook.llm.generator import Speaker

            if self._speaker is None:
                endpoint = Endpoint(provider, temperature=config.temperature, max_tokens=config.max_tokens)
                self._stack.push_async_callback(endpoint.close)
                self._speaker = Speaker(config, endpoint)
        return self._speaker

    async def database(self) -> Database:
        """The open database of this book: its conversations and all else that is written down while it is asked."""
        async with self._opening:
            if self._database is None:
                from bythebook.database.engine import open_database

                self._database = await self._stack.enter_async_context(open_database(self._settings.database_address))
            return self._database

    async def _open_conversations(self) -> Conversations:
        database = await self.database()
        if self._conversations is None:
            from bythebook.conversations.store import SqlConversations

            store = SqlConversations(database)
            self._stack.push_async_callback(store.close)
            self._conversations = store
        return self._conversations

    async def prepare(self) -> None:
        """Open ahead of the first question what it would wait for: the model's side and the database."""
        await self._open_speaker()
        await self._open_conversations()

    def edition(self) -> AbstractAsyncContextManager[Edition]:
        """The generation that is current now, open for looking at until the context ends."""
        return self._shelf.edition()

    def _workshop(self, desk: Desk, progress: Progress) -> Workshop:
        from bythebook.chunking.splitter import Sizes
        from bythebook.ingest.pipeline import Workshop

        tokens, overlap = self._settings.chunk_tokens, self._settings.chunk_overlap
        sizes = Sizes(
            limit=self._choice.chunk_tokens if tokens == "auto" else tokens,
            overlap=self._choice.chunk_overlap if overlap == "auto" else overlap,
        )
        reader = self.reader if self._finder else None
        embedder = self._finder.patient() if self._finder else self._local
        return Workshop(desk.folder, desk.generations, embedder, sizes, progress, reader, self._engine(sizes))

    def _engine(self, sizes: Sizes) -> Engine | None:
        chosen = self._settings
        if chosen.engine == "local":
            return None
        from bythebook.ingest.ray import RayEngine

        models = chosen.model_folder.absolute()
        engine = RayEngine(models, sizes, chosen.ray_address, chosen.ray_workers, hosted=self._finder is not None)
        self._stack.callback(engine.close)
        return engine


@asynccontextmanager
async def open_keyring(settings: Settings) -> AsyncIterator[Keyring]:
    """The keys to this book. Opens no model and no index."""
    from bythebook.access.api_keys import Keyring
    from bythebook.database.engine import open_database

    async with open_database(settings.database_address) as database:
        yield Keyring(database)
