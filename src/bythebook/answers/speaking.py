"""Speaking: how an answer is got from a model, with the passages in hand or by letting it search for them."""

from __future__ import annotations

import time
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bythebook.answers import prompts
from bythebook.answers.budget import fit, passage_tokens
from bythebook.answers.reply import Reply
from bythebook.answers.spoken import Began
from bythebook.answers.tool import DESCRIPTION, NAME, SCHEMA, RetrievalToolResponse, SearchArguments, shown
from bythebook.errors import BookError, InputError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

    from bythebook.answers.chat import TurnModel
    from bythebook.answers.spoken import Question, Spoken
    from bythebook.passages import RetrievalResult

    Search = Callable[[SearchArguments], Awaitable[Sequence[RetrievalResult]]]

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
