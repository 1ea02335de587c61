"""The extractive answer through the Agents SDK is the same as without it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from agents import Agent, RunConfig, Runner
from openai.types.responses import ResponseOutputMessage, ResponseOutputText, ResponseTextDeltaEvent

from bythebook import AgentRequest, Book
from bythebook.errors import InputError

Opened = Callable[..., AbstractAsyncContextManager[Book]]

QUESTIONS = [
    pytest.param("How often does the fog horn sound?", id="answered"),
    pytest.param("When does the fog horn sound and how is the log kept?", id="several citations"),
    pytest.param("What is the boiling point of mercury?", id="refused"),
]
QUIET = RunConfig(tracing_disabled=True)


def cited(output: Any) -> list[tuple[str, str, str]]:
    """The mark, title and address of each annotation."""
    assert isinstance(output, ResponseOutputMessage)
    (said,) = output.content
    assert isinstance(said, ResponseOutputText)
    return [
        (said.text[note.start_index : note.end_index], note.title, note.url)
        for note in said.annotations
        if note.type == "url_citation"
    ]


@pytest.mark.parametrize("question", QUESTIONS)
async def test_an_agent_gives_the_same_answer_as_the_book(opened: Opened, question: str) -> None:
    async with opened(None) as book:
        plain = await book.ask(question)
        agent: Agent[None] = Agent(name="book", model=book.extractive_model())
        run = await Runner.run(agent, question, run_config=QUIET)
        streamed = Runner.run_streamed(agent, question, run_config=QUIET)
        words = [
            event.data.delta
            async for event in streamed.stream_events()
            if event.type == "raw_response_event" and isinstance(event.data, ResponseTextDeltaEvent)
        ]
    expected = [(f"[{citation.number}]", citation.title, citation.url) for citation in plain.citations]
    assert run.final_output == streamed.final_output == "".join(words) == plain.answer
    assert cited(run.raw_responses[-1].output[0]) == cited(streamed.raw_responses[-1].output[0]) == expected
    assert bool(expected) == plain.grounded


async def test_resolves_a_follow_up_to_the_previous_run(opened: Opened) -> None:
    async with opened(None) as book:
        session = (await book.conversation()).id
        await book.ask(AgentRequest("How long does a mantle last?", session_id=session))
        plain = await book.ask(AgentRequest("How do I change it?", session_id=session))
        agent: Agent[None] = Agent(name="book", model=book.extractive_model())
        first = await Runner.run(agent, "How long does a mantle last?", run_config=QUIET)
        after = [*first.to_input_list(), {"role": "user", "content": "How do I change it?"}]
        second = await Runner.run(agent, after, run_config=QUIET)  # type: ignore[arg-type] # the SDK's own example
    assert second.final_output == plain.answer


async def test_rejects_input_without_a_question(opened: Opened) -> None:
    async with opened(None) as book:
        agent: Agent[None] = Agent(name="book", model=book.extractive_model())
        with pytest.raises(InputError, match="no question"):
            await Runner.run(agent, [], run_config=QUIET)
