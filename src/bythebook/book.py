"""The book: opens every adapter that the settings name, and closes what it opened."""

from __future__ import annotations

import asyncio
import inspect
import sys
import threading
import time
from collections.abc import AsyncGenerator, Coroutine, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, asynccontextmanager, suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import cached_property, wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from bythebook.answers import AgentRequest, AgentResponse, Event
from bythebook.conversations import Conversation, Conversations
from bythebook.embeddings.cache import CachedEmbedder
from bythebook.embeddings.local import DEFAULT_MODEL, LOCAL_MODELS, LocalEmbedder, ModelFolder, installed_embedder
from bythebook.embeddings.remote import open_remote_embedder
from bythebook.errors import (
    BookError,
    DeadlineExceeded,
    InputError,
    NotFound,
    QdrantConnectionError,
    RateLimited,
    Unavailable,
)
from bythebook.feedback import AnswerLogEntry, Feedback, GapReport, Rating, answer_log
from bythebook.index import NO_FILTERS, Filters
from bythebook.index.backends import IngestWorkspace, open_backend
from bythebook.index.provider import IndexProvider, IndexSnapshot
from bythebook.llm.prompts import read_history
from bythebook.models.install import download, is_installed
from bythebook.qa.pipeline import AnswerPipeline, read_answer
from bythebook.qa.request import StageTimer
from bythebook.qa.turn_recorder import new_conversation
from bythebook.retrieval.reranker import installed_entailment, installed_reranker
from bythebook.retrieval.retriever import Retriever
from bythebook.settings import Settings
from bythebook.telemetry import active_listeners, install_listeners
from bythebook.telemetry.logging import LoggingListener, configure_logging
from bythebook.upstream.deadline import Deadline

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Sequence
    from pathlib import Path
    from types import TracebackType

    from agents import FunctionTool

    from bythebook.access.api_keys import ApiKeyStore
    from bythebook.admin import BookStatus
    from bythebook.chunking import Chunk
    from bythebook.chunking.splitter import ChunkSizes
    from bythebook.database.engine import Database
    from bythebook.embeddings import Embedder, EmbedderId
    from bythebook.feedback.ratings import RatingStore
    from bythebook.index.catalog import TocEntry
    from bythebook.ingest import IngestReport
    from bythebook.ingest.pipeline import IngestContext, IngestEngine
    from bythebook.llm.config import AgentConfig
    from bythebook.llm.extractive_model import ExtractiveModel
    from bythebook.llm.generator import AnswerGenerator
    from bythebook.llm.search_tool import SearchArguments
    from bythebook.models.cross_encoder import CrossEncoder
    from bythebook.models.runtime import PendingSession
    from bythebook.qa.suggestions import Introduction
    from bythebook.retrieval import RetrievalContext, RetrievalResult
    from bythebook.sources import PageSource
    from bythebook.telemetry import Progress

P = ParamSpec("P")
T = TypeVar("T")
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
MOST_UNANSWERED = 3000
"""The limit of questions in one gap report: each is searched for and compared with every other."""
PENDING_WRITE_SECONDS = 0.25
"""How long a rating waits for an answer that another process may still be writing."""


_TRANSIENT = (QdrantConnectionError, RateLimited, Unavailable, DeadlineExceeded)
"""Errors that may be over by the time of the first question."""


def _ignore_progress(_stage: str, _done: int, _total: int) -> None:
    """For callers that show no progress."""


def _ignore_message(_text: str) -> None:
    """For callers that show no messages."""


def _to_filters(filters: Filters | Mapping[str, str]) -> Filters:
    return Filters.from_mapping(filters) if isinstance(filters, Mapping) else filters


def _read_answer_of(stream: Callable[P, AsyncGenerator[Event]]) -> Callable[P, Coroutine[Any, Any, AgentResponse]]:
    """A method with the arguments of `stream` that returns the answer at its end."""

    @wraps(stream)
    async def ask(*args: P.args, **kwargs: P.kwargs) -> AgentResponse:
        return await read_answer(stream(*args, **kwargs))

    return ask


class Book:
    """A book that can be ingested, searched and asked. Use it as `async with Book.open(settings) as book`."""

    def __init__(
        self,
        settings: Settings,
        *,
        say: Callable[[str], None],
        embedder: Embedder | None,
        pending_session: PendingSession | None,
    ) -> None:
        self._settings = settings
        self._say = say
        self._own_embedder = embedder
        self._pending_session = pending_session
        self._stack = AsyncExitStack()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._generator: AnswerGenerator | None = None
        self._entailment: tuple[CrossEncoder | None] | None = None
        """Opened apart from the reranker, if that is missing."""
        self._introduced: tuple[str, dict[str, Introduction]] = ("", {})
        self._database: Database | None = None
        self._conversations: Conversations | None = None
        self._database_lock = asyncio.Lock()
        self._model_lock = asyncio.Lock()
        self._spool_folder = settings.data_dir / "asked"
        self._answer_log = answer_log.AnswerLog(self._open_ratings, questions=settings.log_unanswered)

    @classmethod
    def open(
        cls,
        settings: Settings | AgentConfig,
        *,
        say: Callable[[str], None] = _ignore_message,
        embedder: Embedder | None = None,
        pending_session: PendingSession | None = None,
    ) -> Self:
        """A book with these settings. Nothing is opened before the context is entered; `say` gets download messages.

        An `embedder` replaces that of the settings. `pending_session` is the session of the default embedding model, if
        its loading has begun.
        """
        chosen = settings if isinstance(settings, Settings) else Settings.from_agent_config(settings)
        return cls(chosen, say=say, embedder=embedder, pending_session=pending_session)

    @classmethod
    async def opened(cls, settings: Settings | AgentConfig, **options: Any) -> Self:
        """An open book, for programs without a block to hold it: `close` it. The options are those of `open`."""
        return await cls.open(settings, **options).__aenter__()

    async def close(self) -> None:
        """Close everything that was opened."""
        await self.__aexit__(None, None, None)

    def check_open(self) -> None:
        """Raise a BookError if the book is not open, or was opened in another event loop."""
        if self._loop is None:
            raise BookError("the book is not open. Use `async with Book.open(settings) as book`.")
        with suppress(RuntimeError):
            if asyncio.get_running_loop() is not self._loop:
                raise BookError("the book was opened in another event loop. Open it in this one, or use SyncBook.")

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            if not active_listeners():
                content = self._settings.log_content
                stack.enter_context(install_listeners(LoggingListener(content=content)))
                if self._settings.log_level == "debug":
                    stack.enter_context(configure_logging(sys.stderr, level="debug", form="text", content=content))
            self._backend = await stack.enter_async_context(open_backend(self._settings.index_config()))
            embedder_id = await self._read_embedder_id()
            self._embedder_config = self._settings.embedder_config(embedder_id.model if embedder_id else "")
            self._hosted = (
                None if self._own_embedder else await open_remote_embedder(self._embedder_config, embedder_id, stack)
            )
            # A book that was ingested with another local model is read with that one.
            self._local_model = LOCAL_MODELS.get(embedder_id.model if embedder_id else "", DEFAULT_MODEL)
            identity = (self._own_embedder or self._hosted or self._local_model).identity
            self._index_provider = IndexProvider(self._backend.snapshot_loader(identity, self._count))
            stack.callback(self._index_provider.close)
            # The index opens while the embedding model loads. An index of another embedder is not opened: it can
            # only be rebuilt.
            preparing = asyncio.create_task(self._prepare_index()) if embedder_id == identity else None
            folder = self._settings.model_folder
            # What a first book needs is downloaded together, one model after the other.
            if fetch := not is_installed(folder, self._local_model.spec):
                await asyncio.to_thread(download, folder, self._local_model.spec, say=self._say)
            opening = installed_reranker(folder, fetch=fetch, say=self._say)
            reranker = asyncio.create_task(stack.enter_async_context(opening))
            stack.callback(reranker.cancel)
            # The session was begun before the book's model was known.
            pending = self._pending_session if self._local_model is DEFAULT_MODEL else None
            self._local = await stack.enter_async_context(
                installed_embedder(folder, self._local_model, say=self._say, pending=pending)
            )
            self.reranker = await reranker
            self.reader: Embedder = CachedEmbedder(self._local)
            """Scores the evidence and verifies answers."""
            foreign = self._own_embedder or self._hosted
            self.embedder: Embedder = CachedEmbedder(foreign) if foreign else self.reader
            """Embeds queries. The vectors of the index are from this embedder."""
            if preparing:
                await preparing
            self.retriever = Retriever(self.embedder, reranker=self.reranker)
            """A subclass of your own takes its place if it is assigned before the first question."""
            self._stack = stack.pop_all()
            self._loop = asyncio.get_running_loop()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._answer_log.close()
        self._loop = None
        await self._stack.aclose()

    async def _read_embedder_id(self) -> EmbedderId | None:
        """The embedder of the index. If the server does not respond now, the first question tries again."""
        with suppress(*_TRANSIENT):
            return await self._backend.read_embedder_id()
        return None

    async def _prepare_index(self) -> None:
        with suppress(*_TRANSIENT):
            await self._index_provider.prepare()

    def _count(self, text: str) -> int:
        """The embedder's token count of a text, for a collection without token counts."""
        return (self._own_embedder or self._hosted or self._local).count_tokens(text)

    async def ingest(
        self,
        *sources: PageSource | Path | str,
        progress: Progress = _ignore_progress,
        prune: bool = False,
        rebuild: bool = False,
    ) -> IngestReport:
        """Ingest these sources. Unchanged pages cost nothing; readers see the new index as a whole or not at all.

        Pages of other sources stay, unless `prune` is set. With `rebuild` every page is embedded again.
        """
        from bythebook.ingest.pipeline import ingest
        from bythebook.sources.factory import open_sources

        self.check_open()
        with ExitStack() as stack:
            opened = open_sources(self._settings.source_options(), sources, stack, progress=progress, keep=True)
            workspace = await self._backend.open_workspace(progress=progress)
            context = await self._ingest_context(workspace, progress, rebuild=rebuild)
            report = await ingest(context, opened, prune=prune, rebuild=rebuild)
            began = time.perf_counter()
            generation = await workspace.publish(chunking=asdict(context.sizes), progress=progress)
            if not generation:
                return report
            return replace(report, generation=generation, seconds=report.seconds + time.perf_counter() - began)

    async def plan_ingest(
        self,
        *sources: PageSource | Path | str,
        progress: Progress = _ignore_progress,
        prune: bool = False,
        rebuild: bool = False,
    ) -> IngestReport:
        """The report that `ingest` would give. Writes nothing."""
        from bythebook.ingest.pipeline import plan_ingest
        from bythebook.sources.factory import open_sources

        self.check_open()
        with ExitStack() as stack:
            opened = open_sources(self._settings.source_options(), sources, stack, progress=progress, keep=False)
            workspace = await self._backend.open_workspace(progress=progress)
            context = await self._ingest_context(workspace, progress, rebuild=rebuild)
            return await plan_ingest(context, opened, prune=prune, rebuild=rebuild)

    async def search(
        self,
        query: str,
        *,
        top_k: int | None = None,
        threshold: float = 0.0,
        filters: Filters | Mapping[str, str] = NO_FILTERS,
    ) -> RetrievalContext:
        """The passages that match the query best, best first: 1 to 20, each with at least the cosine `threshold`."""
        request = AgentRequest(query, filters=_to_filters(filters))
        limit = self._settings.retrieval_top_k if top_k is None else top_k
        if not 1 <= limit <= 20 or not 0 <= threshold <= 1:
            raise InputError("top_k must be from 1 to 20, and threshold from 0 to 1.")
        timer = StageTimer(
            Deadline.after(self._settings.answer_seconds, first_token=self._settings.first_token_seconds)
        )
        async with self.snapshot() as snapshot:
            found = await self.retriever.retrieve(
                snapshot, request.query, top_k=limit, filters=request.filters, stage_timeout=timer.limit
            )
            return found.context.drop_below(threshold)

    def stream(
        self,
        request: AgentRequest | str,
        *,
        session_id: str | None = None,
        user_id: str = "",
        history: Sequence[Mapping[str, Any]] = (),
        filters: Filters | Mapping[str, str] = NO_FILTERS,
        system_prompt: str = "",
    ) -> AsyncGenerator[Event]:
        """The events of a question. The last one is AnswerCompleted.

        `session_id` continues a session of `user_id`. Without one, `history` has the earlier messages in the format of
        OpenAI, and nothing is stored. `system_prompt` replaces the setting of this name for one answer.
        """
        self.check_open()
        asked = AgentRequest(request) if isinstance(request, str) else request
        asked = replace(
            asked,
            session_id=session_id or asked.session_id,
            filters=_to_filters(filters) or asked.filters,
            store=asked.store and self._settings.store_sessions and not history,
        )
        return self._pipeline.stream(
            asked, user_id=user_id, history=read_history(history), system_prompt=system_prompt.strip()
        )

    ask = _read_answer_of(stream)
    """The answer at the end of `stream`: an answer that the book proves, a refusal, or a question back."""

    async def pages(self) -> list[TocEntry]:
        """The pages of the book with their headings, in the order of the book."""
        async with self.snapshot() as snapshot:
            return snapshot.catalog.table_of_contents()

    async def status(self) -> BookStatus:
        """The state of the book: its index, its sources, its models and its calibration."""
        from bythebook.admin import read_status

        self.check_open()
        return await read_status(self._settings)

    def search_tool(self) -> FunctionTool:
        """The search of the book as a tool for an agent of the Agents SDK. Passages keep their numbers."""
        from bythebook.llm import GenerationResult
        from bythebook.llm.generator import SearchToolHandler, make_tool

        async def search(wanted: SearchArguments) -> Sequence[RetrievalResult]:
            found = await self.search(
                wanted.query, top_k=wanted.top_k, threshold=wanted.threshold, filters=wanted.filters
            )
            return found.results

        cap = self._settings.excerpt_characters
        return make_tool(SearchToolHandler(search, GenerationResult(), sys.maxsize, cap, sys.maxsize).answer)

    async def introduction(self, page: str = "") -> Introduction:
        """The book's name, its sections and some questions it answers, or those of the page with this URL.

        Both are computed once for each generation. Those of the book are also the result if it has no such page.
        """
        from bythebook.qa.suggestions import introduce, introduce_page

        async with self.snapshot() as snapshot:
            if self._introduced[0] != snapshot.name:
                self._introduced = (snapshot.name, {})
            known = self._introduced[1]
            if page and page not in known:
                found = await introduce_page(snapshot, self.reader, self.retriever, url=page)
                known |= {page: found} if found else {}
            if not known.keys() & {page, ""}:
                known[""] = await introduce(snapshot, self.reader, self.retriever, name=self._settings.book_name)
            return known.get(page) or known[""]

    async def read(self, chunk_id: str) -> tuple[Chunk, str, frozenset[str]]:
        """The chunk with this id, the whole text of its page and the headings in it. Raises NotFound."""
        async with self.snapshot() as snapshot:
            found = (await snapshot.store.fetch([chunk_id])).get(chunk_id)
            page = snapshot.catalog.get_page(found.chunk.url) if found else None
            if found is None or page is None:
                raise NotFound("this book has no such page any more. Ask again for the current one.")
            chunks = snapshot.catalog.chunks_of_pages([page.url])
            return found.chunk, page.text, frozenset(title for chunk in chunks for title in chunk.headings.split(" > "))

    async def conversation(self, session_id: str | None = None, *, user_id: str = "") -> Conversation:
        """The reader's conversation with this id, or a new conversation."""
        conversations = await self._open_conversations()
        if session_id is not None:
            return await conversations.load(session_id, user_id=user_id)
        conversation = new_conversation(self._agent_config, user_id=user_id)
        await conversations.create(conversation)
        return conversation

    async def conversations(self) -> Conversations:
        """The store of this book's conversations."""
        return await self._open_conversations()

    @cached_property
    def _agent_config(self) -> AgentConfig:
        return self._settings.agent_config()

    @cached_property
    def _pipeline(self) -> AnswerPipeline:
        return AnswerPipeline(
            self._index_provider,
            self.reader,
            self.retriever,
            self._agent_config,
            open_generator=self._open_generator,
            open_entailment=self.open_entailment,
            open_conversations=self._open_conversations,
            answer_log=self._answer_log,
            suggest_questions=self._suggest_questions,
        )

    async def _suggest_questions(self) -> tuple[str, ...]:
        return (await self.introduction()).questions

    def extractive_pipeline(self) -> AnswerPipeline:
        """Answers in the book's own sentences, whether or not there is a model. Records nothing."""
        return AnswerPipeline(
            self._index_provider,
            self.reader,
            self.retriever,
            self._agent_config,
            suggest_questions=self._suggest_questions,
        )

    def evaluation_pipeline(self) -> AnswerPipeline:
        """Answers as readers get them, with the model if there is one. Records nothing."""
        return replace(
            self.extractive_pipeline(), open_generator=self._open_generator, open_entailment=self.open_entailment
        )

    def extractive_model(self) -> ExtractiveModel:
        """The book's own sentences as a model of the Agents SDK, for an agent of your own."""
        from bythebook.llm.extractive_model import ExtractiveModel

        pipeline = self.extractive_pipeline()
        return ExtractiveModel(lambda question, history: pipeline.ask(AgentRequest(question), history=history))

    async def rate(self, response_id: str, rating: Rating | str, reason: str = "", *, user_id: str = "") -> Feedback:
        """Record the rating of an answer that this reader was given, `up` or `down`. A later rating replaces it.

        Raises NotFound for an answer of another reader.
        """
        given = Feedback(response_id, Rating(rating), reason)
        await self.flush()
        ratings = await self._open_ratings()
        try:
            return await ratings.rate(given, user_id=user_id)
        except NotFound:
            # Another process may have given the answer and may still be writing it.
            await asyncio.sleep(PENDING_WRITE_SECONDS)
            return await ratings.rate(given, user_id=user_id)

    async def unanswered_questions(
        self, *, since: datetime = LONG_AGO, limit: int = MOST_UNANSWERED
    ) -> list[AnswerLogEntry]:
        """The latest questions since then that were refused, asked back or rated down, of all readers."""
        await self.flush()
        ratings = await self._open_ratings()
        await ratings.add(list(answer_log.read_spool(self._spool_folder)))
        return await ratings.list_unanswered_questions(since=since, limit=limit)

    async def gaps(self, *, since: datetime = LONG_AGO, limit: int = 20) -> GapReport:
        """The topics that readers asked about since then and the book does not answer, at most `limit` of them."""
        from bythebook.feedback.gaps import find_gaps

        unanswered = await self.unanswered_questions(since=since, limit=MOST_UNANSWERED)
        total = await (await self._open_ratings()).count_unanswered_questions(since=since)
        async with self._index_provider.snapshot() as snapshot:
            found = await find_gaps(
                unanswered, snapshot=snapshot, embedder=self.reader, retriever=self.retriever, limit=limit
            )
        left_out = max(total - found.questions, 0)
        return replace(found, questions=found.questions + left_out, questions_left_out=left_out)

    async def flush(self) -> None:
        """Wait until the answer log contains every answer given so far."""
        await self._answer_log.flush()

    def defer_log_writes(self) -> None:
        """Leave the answer log in files, for a process that ends after one answer and opens no database."""
        self._answer_log.spool_to(self._spool_folder)

    async def _open_ratings(self) -> RatingStore:
        from bythebook.feedback.ratings import RatingStore

        return RatingStore(await self.database())

    async def _open_generator(self) -> AnswerGenerator | None:
        """The answer generator, opened for the first question that needs it. None without a provider."""
        if self._generator is None and (provider := self._agent_config.provider):
            # Its import and its table of tokens take seconds. In a thread they do not block other requests.
            await asyncio.to_thread(lambda: import_module("bythebook.llm.generator").count_tokens(""))
            from bythebook.llm.client import ChatEndpoint
            from bythebook.llm.generator import AnswerGenerator

            if self._generator is None:
                config = self._agent_config
                endpoint = ChatEndpoint(provider, temperature=config.temperature, max_tokens=config.max_tokens)
                self._stack.push_async_callback(endpoint.close)
                self._generator = AnswerGenerator(config, endpoint)
        return self._generator

    async def open_entailment(self) -> CrossEncoder | None:
        """The model that proves a model's sentences. None if it is missing: then a rule of terms proves less."""
        if self.reranker:
            return self.reranker.entailment
        async with self._model_lock:
            if self._entailment is None:
                self._entailment = (
                    await self._stack.enter_async_context(installed_entailment(self._settings.model_folder)),
                )
            return self._entailment[0]

    async def database(self) -> Database:
        """The open database of this book: conversations, answer log, API keys and rate limits."""
        self.check_open()
        async with self._database_lock:
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
        """Open the answer generator and the database now, so that the first question does not wait for them."""
        from bythebook.llm.context_budget import count_tokens

        if await self._open_generator():
            await self.open_entailment()
        await self._open_conversations()
        await asyncio.to_thread(count_tokens, "")

    def snapshot(self) -> AbstractAsyncContextManager[IndexSnapshot]:
        """The current generation of the index, open until the context ends."""
        self.check_open()
        return self._index_provider.snapshot()

    async def _ingest_context(self, workspace: IngestWorkspace, progress: Progress, *, rebuild: bool) -> IngestContext:
        from bythebook.chunking.splitter import ChunkSizes
        from bythebook.ingest.pipeline import IngestContext

        tokens, overlap = self._settings.chunk_tokens, self._settings.chunk_overlap
        sizes = ChunkSizes(
            limit=self._embedder_config.chunk_tokens if tokens == "auto" else tokens,
            overlap=self._embedder_config.chunk_overlap if overlap == "auto" else overlap,
        )
        reader = self.reader if self._own_embedder or self._hosted else None
        embedder = self._own_embedder or (
            self._hosted.for_ingest() if self._hosted else await self._local_for_ingest(rebuild=rebuild)
        )
        engine = self._engine(sizes, embedder)
        return IngestContext(
            workspace.folder, workspace.generations, embedder, sizes, progress, reader, self.reranker, engine
        )

    async def _local_for_ingest(self, *, rebuild: bool) -> LocalEmbedder:
        """The local embedder of the book; to rebuild it, the one that new books get."""
        if self._local_model is DEFAULT_MODEL:
            return self._local
        if not rebuild:
            self._say(
                f"This book was ingested with {self._local_model.spec.title}. `bythebook ingest --rebuild` embeds it "
                f"with {DEFAULT_MODEL.spec.title}, which finds more."
            )
            return self._local
        opening = installed_embedder(self._settings.model_folder, DEFAULT_MODEL, say=self._say, pending=None)
        # Kept for the next ingest of this process, as with --watch.
        self._local, self._local_model = await self._stack.enter_async_context(opening), DEFAULT_MODEL
        return self._local

    def _engine(self, sizes: ChunkSizes, embedder: Embedder) -> IngestEngine:
        from bythebook.ingest.pipeline import LOCAL_ENGINE

        settings = self._settings
        if settings.engine == "local":
            return LOCAL_ENGINE
        from bythebook.ingest.ray import RayEngine

        model = ModelFolder(settings.model_folder.absolute(), embedder.identity.model) if not self._hosted else None
        engine = RayEngine(sizes, model, settings.ray_address, settings.ray_workers)
        self._stack.callback(engine.close)
        return engine


@asynccontextmanager
async def open_key_store(settings: Settings) -> AsyncIterator[ApiKeyStore]:
    """The API keys of this book. Opens no model and no index."""
    from bythebook.database.engine import open_database

    async with open_database(settings.database_address) as database:
        yield make_key_store(settings, database)


def make_key_store(settings: Settings, database: Database) -> ApiKeyStore:
    """The API keys in this database. That there are any is remembered in the data folder too."""
    from bythebook.access.api_keys import ApiKeyStore

    closed_file = settings.data_dir / "keys-required"
    return ApiKeyStore(database, required=settings.require_keys, closed_file=closed_file)


class SyncBook:
    """An open book with the methods of `Book`, which return results instead of coroutines.

    Its event loop runs in a thread; any thread may call it. Use it as `with SyncBook(settings) as book`, or close it.
    """

    def __init__(self, settings: Settings | AgentConfig, **options: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="bythebook", daemon=True)
        self._thread.start()
        try:
            self.book = self._run(Book.opened(settings, **options))
        except BaseException:
            self._stop()
            raise

    def __getattr__(self, name: str) -> Any:
        member = getattr(Book, name)

        @wraps(member)
        def call(*args: Any, **kwargs: Any) -> Any:
            async def run() -> Any:
                result = member(self.book, *args, **kwargs)
                return await result if inspect.isawaitable(result) else result

            result: Any = self._run(run())
            return self._iterate(result) if isinstance(result, AsyncGenerator) else result

        return call

    def close(self) -> None:
        """Close the book and end its thread."""
        if not self._loop.is_closed():
            self._run(self.book.close())
            self._stop()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        if self._loop.is_closed():
            work.close()
            raise BookError("the book is closed.")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        finally:
            future.cancel()

    def _iterate(self, items: AsyncGenerator[T]) -> Iterator[T]:
        try:
            while True:
                yield self._run(items.__anext__())
        except StopAsyncIteration:
            return
        finally:
            self._run(items.aclose())

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
