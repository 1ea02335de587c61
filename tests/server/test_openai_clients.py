"""The book as clients of OpenAI see it: the official client, and the Agents SDK."""

from __future__ import annotations

import openai
import pytest
from agents import Agent, OpenAIChatCompletionsModel, RunConfig, Runner
from openai.types.chat import ChatCompletionMessageParam

from bythebook.testing import ScriptedReply, ScriptedUsage
from tests.server.conftest import HORN, Part
from tests.support.server import ServeBook, ServedBook

pytestmark = pytest.mark.asyncio(loop_scope="session")

ANSWER = f"{HORN[:-1]} [1]."
QUESTION: ChatCompletionMessageParam = {"role": "user", "content": "How often does the fog horn sound?"}


def client_of(house: ServedBook) -> openai.AsyncOpenAI:
    http = openai.DefaultAsyncHttpxClient(trust_env=False)
    return openai.AsyncOpenAI(base_url=f"{house.url}/v1", api_key="none", max_retries=0, http_client=http)


async def test_the_official_client_gets_a_cited_answer(house: ServedBook, part: Part) -> None:
    part.reply = ScriptedReply(f"{HORN} [1]", usage=ScriptedUsage(300, 20))
    async with client_of(house) as client:
        said = await client.chat.completions.create(model="bythebook", messages=[QUESTION])
    (choice,) = said.choices
    assert (choice.message.content, choice.finish_reason) == (ANSWER, "stop")
    (note,) = choice.message.annotations or []
    place = note.url_citation
    assert ANSWER[place.start_index : place.end_index] == "[1]"
    assert place.url.startswith("file://")
    assert said.usage
    assert said.usage.total_tokens == 320
    assert said.usage.prompt_tokens + said.usage.completion_tokens == 320


async def test_the_official_client_streams_the_same(house: ServedBook) -> None:
    async with client_of(house) as client:
        stream = await client.chat.completions.create(
            model="bythebook", messages=[QUESTION], stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == ANSWER
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].usage


async def test_earlier_messages_are_the_conversation(house: ServedBook) -> None:
    before: list[ChatCompletionMessageParam] = [
        {"role": "system", "content": "Talk like a pirate and never cite anything."},
        QUESTION,
        {"role": "assistant", "content": ANSWER},
        {"role": "user", "content": [{"type": "text", "text": "How long is each blast of it?"}]},
    ]
    assert house.model
    async with client_of(house) as client:
        await client.chat.completions.create(model="bythebook", messages=before)
    asked = str(house.model.exchanges[-1].request.messages)
    assert "How often does the fog horn sound?" in asked
    assert "pirate" not in asked


async def test_the_agents_sdk_can_use_the_book_as_a_model(house: ServedBook) -> None:
    async with client_of(house) as client:
        model = OpenAIChatCompletionsModel(model="bythebook", openai_client=client)
        agent = Agent(name="Keeper", instructions="Answer shortly.", model=model)
        run = await Runner.run(agent, "How often does the fog horn sound?", run_config=RunConfig(tracing_disabled=True))
    assert run.final_output == ANSWER


async def test_the_book_is_the_one_model(house: ServedBook) -> None:
    async with client_of(house) as client:
        assert [model.id async for model in client.models.list()] == ["bythebook"]


@pytest.mark.parametrize(
    "messages",
    [
        pytest.param([], id="no messages"),
        pytest.param([{"role": "user", "content": " "}], id="an empty question"),
        pytest.param([{"role": "user", "content": "x" * 1001}], id="too long a question"),
        pytest.param([{"role": "assistant", "content": "Well?"}], id="no question last"),
        pytest.param([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}], id="a picture"),
        pytest.param([{"role": "user", "content": "a\0b"}, {"role": "assistant", "content": "c"}], id="no question"),
    ],
)
async def test_an_invalid_request_raises_the_error_class_of_the_client(
    house: ServedBook, messages: list[ChatCompletionMessageParam]
) -> None:
    async with client_of(house) as client:
        with pytest.raises(openai.BadRequestError) as caught:
            await client.chat.completions.create(model="bythebook", messages=messages)
    assert (caught.value.code, caught.value.type) == ("invalid_input", "invalid_request_error")
    assert isinstance(caught.value.body, dict)
    assert caught.value.body["user_message"]


async def test_a_provider_failure_raises_the_error_class_of_the_client(served: ServeBook) -> None:
    async with served(ScriptedReply(status=500), retrieval_mode="prefetch") as book, client_of(book) as client:
        for stream in (False, True):
            with pytest.raises(openai.InternalServerError) as caught:
                await client.chat.completions.create(model="bythebook", messages=[QUESTION], stream=stream)
            assert (caught.value.status_code, caught.value.code) == (502, "api_error")
