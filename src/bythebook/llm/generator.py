"""What is asked of a model, what it has been shown, and how its answer came about.

Speaking: how an answer is got from a model, with the passages in hand or by letting it search for them.

The agent: gets an answer from a model, by the way that suits the model.
"""

from __future__ import annotations

import time
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bythebook.conversations.followups.llm_rewrite import BUDGET as REWRITE_BUDGET
from bythebook.conversations.followups.llm_rewrite import rewrite_messages, rewritten
from bythebook.conversations.followups.rules import standalone
from bythebook.errors import BookError, InputError
from bythebook.llm import prompts
from bythebook.llm.client import Began, Reply, TurnModel
from bythebook.llm.context_budget import Budget, count, fit, passage_tokens
from bythebook.llm.search_tool import DESCRIPTION, NAME, SCHEMA, RetrievalToolResponse, SearchArguments, shown
from bythebook.upstream.client import unheard

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

    from bythebook.conversations.followups import Exchange
    from bythebook.llm.context_budget import Fitted
    from bythebook.retrieval import RetrievalResult

    Search = Callable[[SearchArguments], Awaitable[Sequence[RetrievalResult]]]

    from collections.abc import Callable, Sequence

    from bythebook.conversations.followups import Standalone
    from bythebook.llm.client import Endpoint
    from bythebook.llm.config import AgentConfig
    from bythebook.retrieval import RetrievalResult
    from bythebook.upstream import CallReport, Deadline


class Shown:
    """The passages of a turn, numbered once: a passage that is found again keeps its number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self.results: list[RetrievalResult] = []

    def number(self, results: Sequence[RetrievalResult]) -> list[tuple[int, RetrievalResult]]:
        numbered: list[tuple[int, RetrievalResult]] = []
        for result in results:
            if result.chunk_id not in self._numbers:
                self._numbers[result.chunk_id] = len(self.results) + 1
                self.results.append(result)
            numbered.append((self._numbers[result.chunk_id], result))
        return numbered


@dataclass(frozen=True, slots=True)
class Question:
    """What the model is to answer, and within which bounds."""

    text: str
    system: str
    history: tuple[Exchange, ...]
    budget: Budget


@dataclass(slots=True)
class Spoken:
    """How the answer came about."""

    shown: Shown = field(default_factory=Shown)
    """Every passage the model has seen, numbered."""
    text: str = ""
    searches: int = 0
    tokens_used: int = 0
    finish_reason: str = ""
    passages_left_out: int = 0
    exchanges_left_out: int = 0

    def note(self, fitted: Fitted) -> None:
        self.passages_left_out = fitted.passages_left_out
        self.exchanges_left_out = fitted.exchanges_left_out


MOST_SEARCHES = 5


async def with_passages(
    model: TurnModel, question: Question, passages: Sequence[tuple[int, RetrievalResult]], spoken: Spoken
) -> AsyncGenerator[str | Began]:
    """The answer of a model that is handed the passages, as it comes."""
    fitted = fit(
        question.budget, system=question.system, question=question.text, passages=passages, history=question.history
    )
    spoken.note(fitted)
    messages = prompts.with_passages(question.system, fitted.passages, fitted.history, question.text)
    async with aclosing(model.say(messages)) as heard:
        async for text in heard:
            if isinstance(text, Reply):
                spoken.text, spoken.finish_reason = text.text, text.finish_reason
            else:
                yield text


async def with_search(
    model: TurnModel, question: Question, search: Search, spoken: Spoken
) -> AsyncGenerator[str | Began]:
    """The answer of a model that searches the book itself, as it comes; nothing it says before searching is shown."""
    from agents import Agent, MaxTurnsExceeded, ModelBehaviorError, RunConfig, Runner
    from openai.types.responses import ResponseCreatedEvent, ResponseTextDeltaEvent

    system = question.system + prompts.SEARCH
    fitted = fit(question.budget, system=system, question=question.text, passages=(), history=question.history)
    spoken.note(fitted)
    desk = _Desk(search, spoken, room=question.budget.context)
    agent: Agent[None] = Agent(name="book", instructions=system, tools=[desk.tool()], model=model)
    run = Runner.run_streamed(
        agent,
        prompts.with_tool(fitted.history, question.text),
        max_turns=MOST_SEARCHES + 2,
        run_config=RunConfig(tracing_disabled=True),
    )
    try:
        async for event in run.stream_events():
            data = event.data if event.type == "raw_response_event" else None
            if isinstance(data, ResponseTextDeltaEvent) and spoken.searches:
                yield data.delta
            elif isinstance(data, ResponseCreatedEvent):
                yield Began()
    except (MaxTurnsExceeded, ModelBehaviorError):
        # It searches without end, or calls a tool that nobody offered. The book then speaks for itself.
        return
    except Exception as exc:
        raise _ours(exc) from exc
    finally:
        run.cancel()
    spoken.text = str(run.final_output or "")


def _ours(exc: BaseException) -> BaseException:
    """The error of ours that the SDK has wrapped, or its own."""
    inner: BaseException | None = exc
    while inner is not None:
        if isinstance(inner, BookError):
            return inner
        inner = inner.__cause__ or inner.__context__
    return exc


@dataclass(slots=True)
class _Desk:
    """Answers the model's searches, as many and as long as the budget allows."""

    search: Search
    spoken: Spoken
    room: int

    def tool(self) -> Any:
        from agents import FunctionTool

        return FunctionTool(
            name=NAME,
            description=DESCRIPTION,
            params_json_schema=SCHEMA,
            on_invoke_tool=self._invoke,
            strict_json_schema=False,
        )

    async def _invoke(self, _context: Any, arguments: str) -> str:
        started = time.perf_counter()
        try:
            wanted = SearchArguments.parse(arguments)
        except InputError as error:
            # The model is told what is wrong, so that it can correct itself; an outage is never told to it.
            return RetrievalToolResponse(error=error.code, message=str(error)).to_json()
        if self.spoken.searches >= MOST_SEARCHES:
            enough = "No more searches. Answer from what you have."
            return RetrievalToolResponse(query=wanted.query, message=enough).to_json()
        self.spoken.searches += 1
        passages = self._that_fit(self.spoken.shown.number(await self.search(wanted)))
        elapsed = time.perf_counter() - started
        return RetrievalToolResponse(shown(passages), query=wanted.query, execution_time=elapsed).to_json()

    def _that_fit(self, passages: Sequence[tuple[int, RetrievalResult]]) -> list[tuple[int, RetrievalResult]]:
        kept: list[tuple[int, RetrievalResult]] = []
        for number, result in passages:
            tokens = passage_tokens(number, result)
            if tokens <= self.room:
                self.room -= tokens
                kept.append((number, result))
            else:
                self.spoken.passages_left_out += 1
        return kept


REWRITE_TOKENS = 200
"""How long a question that was made to stand alone may be."""


class Speaker:
    """Speaks through one provider's model. Remembers when the model turns out not to call tools."""

    def __init__(self, config: AgentConfig, endpoint: Endpoint) -> None:
        self._config = config
        self._endpoint = endpoint
        self._calls_tools = endpoint.provider.calls_tools

    @property
    def model(self) -> str:
        return self._endpoint.provider.model

    @property
    def instructions(self) -> str:
        """What the model is told about its task."""
        return self._config.system_prompt

    async def speak(
        self,
        text: str,
        found: Sequence[RetrievalResult],
        *,
        history: Sequence[Exchange],
        search: Search,
        deadline: Deadline,
        report: Callable[[CallReport], None],
    ) -> AsyncGenerator[Began | str | Spoken]:
        """The words of the answer as they come, and at the end how it came about."""
        question = Question(text, self._config.system_prompt, tuple(history), self._budget())
        model = TurnModel(self._endpoint, deadline=deadline, report=report)
        spoken = Spoken()
        yield Began()
        async with aclosing(self._once(model, question, found, search=search, spoken=spoken)) as words:
            async for word in words:
                if isinstance(word, str):
                    model.begun()
                yield word
        spoken.tokens_used = model.prompt_tokens + model.completion_tokens
        yield spoken

    async def restate(
        self, question: str, history: Sequence[Exchange], *, deadline: Deadline
    ) -> tuple[Standalone, int]:
        """The question made to stand alone, and the tokens it took.

        One short call, tried once. A rule of ours stands in for whatever goes wrong with it: the answer is what the
        reader waits for.
        """
        budget = min(REWRITE_BUDGET, self._config.context_window - REWRITE_TOKENS)
        messages = rewrite_messages(question, history, count=count, budget=budget)
        if sum(count(message.content) for message in messages) > budget:
            return standalone(question, history), 0
        model = TurnModel(self._endpoint, deadline=deadline, report=unheard, attempts=1)
        said = ""
        asked = model.say([m.to_api_format() for m in messages], temperature=0.0, max_tokens=REWRITE_TOKENS)
        try:
            async with aclosing(asked) as heard:
                async for word in heard:
                    said = word.text if isinstance(word, Reply) else said
        except BookError:
            said = ""
        return rewritten(said, question, history), model.prompt_tokens + model.completion_tokens

    async def _once(
        self,
        model: TurnModel,
        question: Question,
        found: Sequence[RetrievalResult],
        *,
        search: Search,
        spoken: Spoken,
    ) -> AsyncGenerator[str | Began]:
        """By letting the model search, or with the passages in hand where it cannot or did not."""
        if self._config.retrieval_mode == "tool" or (self._config.retrieval_mode == "auto" and self._calls_tools):
            try:
                async with aclosing(with_search(model, question, search, spoken)) as words:
                    async for word in words:
                        yield word
            except InputError:
                # The provider has refused the request itself: a model without tools.
                self._calls_tools = False
            if spoken.searches and spoken.text:
                return
        numbered = spoken.shown.number(found)
        async with aclosing(with_passages(model, question, numbered, spoken)) as words:
            async for word in words:
                yield word

    def _budget(self) -> Budget:
        """The shares of the usual window, in proportion when the model's is smaller."""
        usual = Budget()
        scale = min(1.0, self._config.context_window / usual.window)
        return Budget(
            window=self._config.context_window,
            context=int(usual.context * scale),
            history=int(usual.history * scale),
            answer=self._config.max_tokens,
        )
