"""Answer generation: gets an answer from a model, by tool calls or with the passages in the prompt."""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from agents import Agent, FunctionTool, MaxTurnsExceeded, ModelBehaviorError, RunConfig, Runner, RunResultStreaming
from openai.types.responses import ResponseCreatedEvent, ResponseTextDeltaEvent

from bythebook.conversations.followups import Exchange, StandaloneQuestion
from bythebook.conversations.followups.llm_rewrite import BUDGET as REWRITE_BUDGET
from bythebook.conversations.followups.llm_rewrite import parse_rewrite, rewrite_messages
from bythebook.conversations.followups.rules import make_standalone
from bythebook.errors import BookError, ConfigurationError, InputError
from bythebook.llm import GenerationResult, GenerationStarted, prompts, search_tool
from bythebook.llm.client import ChatEndpoint, ModelReply, TurnModel
from bythebook.llm.config import AgentConfig
from bythebook.llm.context_budget import ContextBudget, FittedContext, count_tokens, fit_context, fit_passages
from bythebook.retrieval import RetrievalResult
from bythebook.upstream.client import CallReport, ignore_report
from bythebook.upstream.deadline import Deadline

Search = Callable[[search_tool.SearchArguments], Awaitable[Sequence[RetrievalResult]]]


MOST_SEARCHES = 5
REWRITE_TOKENS = 200
"""The longest rewritten question, in tokens."""


class AnswerGenerator:
    """Generates answers with one provider's model. Remembers that a model does not support tools."""

    def __init__(self, config: AgentConfig, endpoint: ChatEndpoint) -> None:
        self._config = config
        self._endpoint = endpoint
        self._instructions = prompts.build_instructions(config.system_prompt)
        tokens, room = count_tokens(self._instructions + prompts.SEARCH), self._budget().system
        if tokens > room:
            raise ConfigurationError(
                f"system_prompt is too long: with the rules it has {tokens} tokens, and {room} are for both."
            )
        self._calls_tools = endpoint.provider.calls_tools

    def with_system_prompt(self, system_prompt: str) -> "AnswerGenerator":
        """The same model with other instructions of the author."""
        return AnswerGenerator(replace(self._config, system_prompt=system_prompt), self._endpoint)

    @property
    def model(self) -> str:
        return self._endpoint.provider.model

    @property
    def instructions(self) -> str:
        """The system prompt."""
        return self._instructions

    async def generate(
        self,
        question: str,
        found: Sequence[RetrievalResult],
        *,
        history: Sequence[Exchange],
        search: Search,
        deadline: Deadline,
        report: Callable[[CallReport], None] = ignore_report,
    ) -> AsyncGenerator[GenerationStarted | str | GenerationResult]:
        """Yield the text of the answer as it arrives, and a GenerationResult at the end.

        The model searches with a tool if it can. A model that cannot, or did not, gets the passages that were `found`.
        """
        model = TurnModel(self._endpoint, deadline=deadline, report=report)
        budget, result = self._budget(), GenerationResult()
        yield GenerationStarted()
        if self._config.retrieval_mode == "tool" or (self._config.retrieval_mode == "auto" and self._calls_tools):
            system = self.instructions + prompts.SEARCH
            fitted = fit_context(budget, system=system, question=question, passages=(), history=history)
            _record_left_out(result, fitted)
            handler = SearchToolHandler(search, result, budget.context, self._config.excerpt_characters)
            tool = make_tool(handler.answer_and_record)
            agent: Agent[None] = Agent(name="book", instructions=system, tools=[tool], model=model)
            async with self._run_agent(agent, prompts.with_tool(fitted.history, question)) as run:
                async for event in run.stream_events():
                    data = event.data if event.type == "raw_response_event" else None
                    # Text that comes before the first search is not based on the book.
                    if isinstance(data, ResponseTextDeltaEvent) and result.searches:
                        model.record_first_token_time()
                        yield data.delta
                    elif isinstance(data, ResponseCreatedEvent):
                        yield GenerationStarted()
                result.text = str(run.final_output or "")
        if not (result.searches and result.text):
            numbered = result.passages.number(found)
            fitted = fit_context(
                budget, system=self.instructions, question=question, passages=numbered, history=history
            )
            _record_left_out(result, fitted)
            messages = prompts.with_passages(self.instructions, fitted.passages, fitted.history, question)
            async with aclosing(model.stream_reply(messages)) as parts:
                async for part in parts:
                    if isinstance(part, ModelReply):
                        result.text, result.finish_reason = part.text, part.finish_reason
                        continue
                    if isinstance(part, str):
                        model.record_first_token_time()
                    yield part
        result.tokens_used = model.prompt_tokens + model.completion_tokens
        result.tokens_estimated = model.tokens_estimated
        yield result

    @asynccontextmanager
    async def _run_agent(self, agent: Agent[None], messages: list[Any]) -> AsyncIterator[RunResultStreaming]:
        """Run the agent during the block. A model that fails at tool calls ends the block without an error."""
        run = Runner.run_streamed(
            agent, messages, max_turns=MOST_SEARCHES + 2, run_config=RunConfig(tracing_disabled=True)
        )
        try:
            yield run
        except (MaxTurnsExceeded, ModelBehaviorError):
            # It searches without end or calls an unknown tool. It then gets the passages in the prompt.
            return
        except Exception as exc:
            error = _unwrap_error(exc)
            if not isinstance(error, InputError):
                raise error from exc
            # The provider refused the request: the model does not support tools.
            self._calls_tools = False
        finally:
            run.cancel()

    async def rewrite_question(
        self, question: str, history: Sequence[Exchange], *, deadline: Deadline
    ) -> tuple[StandaloneQuestion, int, bool]:
        """Rewrite a follow-up as a standalone question. Return it with the tokens used, and whether they are estimated.

        One short call without retries. If it fails, the local rule rewrites the question: the reader waits for the
        answer, not for this.
        """
        budget = min(REWRITE_BUDGET, self._config.context_window - REWRITE_TOKENS)
        messages = rewrite_messages(question, history, count=count_tokens, budget=budget)
        if sum(count_tokens(message.content) for message in messages) > budget:
            return make_standalone(question, history), 0, False
        model = TurnModel(self._endpoint, deadline=deadline, report=ignore_report, attempts=1)
        reply = ""
        options = {"temperature": 0.0, "max_tokens": REWRITE_TOKENS}
        stream = model.stream_reply([message.to_api_format() for message in messages], **options)
        try:
            async with aclosing(stream) as parts:
                async for part in parts:
                    reply = part.text if isinstance(part, ModelReply) else reply
        except BookError:
            reply = ""
        used = model.prompt_tokens + model.completion_tokens
        return parse_rewrite(reply, question, history), used, model.tokens_estimated

    def _budget(self) -> ContextBudget:
        """The default shares of the window, scaled down if the model's window is smaller."""
        default = ContextBudget()
        scale = min(1.0, self._config.context_window / default.window)
        return ContextBudget(
            window=self._config.context_window,
            context=int(default.context * scale),
            history=int(default.history * scale),
            answer=self._config.max_tokens,
        )


def _record_left_out(result: GenerationResult, fitted: FittedContext) -> None:
    result.passages_left_out = fitted.passages_left_out
    result.exchanges_left_out = fitted.exchanges_left_out


def _unwrap_error(exc: BaseException) -> BaseException:
    """The BookError that the SDK has wrapped, or the SDK's own error."""
    inner: BaseException | None = exc
    while inner is not None:
        if isinstance(inner, BookError):
            return inner
        inner = inner.__cause__ or inner.__context__
    return exc


def make_tool(invoke: Callable[[Any, str], Awaitable[str]]) -> FunctionTool:
    """The search tool for the Agents SDK."""
    return FunctionTool(
        name=search_tool.NAME,
        description=search_tool.DESCRIPTION,
        params_json_schema=search_tool.SCHEMA,
        on_invoke_tool=invoke,
        strict_json_schema=False,
    )


@dataclass(slots=True)
class SearchToolHandler:
    """Handles the model's tool calls, as many searches and as many passages as the budget allows."""

    search: Search
    result: GenerationResult
    room: int
    """The tokens left for passages."""
    excerpt_characters: int = 0
    most_searches: int = MOST_SEARCHES

    async def answer_and_record(self, context: Any, arguments: str) -> str:
        """The response to a tool call, which is kept for the conversation."""
        response = await self.answer(context, arguments)
        self.result.tool_calls.append((context.tool_call_id, arguments, response))
        return response

    async def answer(self, _context: Any, arguments: str) -> str:
        """The response to a tool call, as JSON."""
        started = time.perf_counter()
        try:
            wanted = search_tool.SearchArguments.parse(arguments)
        except InputError as error:
            # The model gets the error message to correct itself. Failures of the search itself are raised.
            return search_tool.RetrievalToolResponse(error=error.code, message=str(error)).to_json()
        if self.result.searches >= self.most_searches:
            message = "No more searches. Answer from what you have."
            return search_tool.RetrievalToolResponse(query=wanted.query, message=message).to_json()
        self.result.searches += 1
        passages = self._fit(self.result.passages.number(await self.search(wanted)))
        elapsed = time.perf_counter() - started
        return search_tool.RetrievalToolResponse(
            search_tool.describe_passages(passages, longest=self.excerpt_characters),
            query=wanted.query,
            execution_time=elapsed,
        ).to_json()

    def _fit(self, passages: Sequence[tuple[int, RetrievalResult]]) -> tuple[tuple[int, RetrievalResult], ...]:
        fitting, used = fit_passages(passages, self.room)
        self.room -= used
        self.result.passages_left_out += len(passages) - len(fitting)
        return fitting
