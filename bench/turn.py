"""The processor time of a turn with a model, compared with the bare Agents SDK and the bare client.

python -m bench.turn [--turns 40] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bythebook.book import Book
from bythebook.settings import Settings
from bythebook.testing import CompletionRequest, ScriptedReply, ScriptedServer, ScriptedToolCall, ScriptedUsage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

BOOK = Path(__file__).parent.parent / "tests" / "books" / "lighthouse"
QUESTION = "How often does the fog horn sound, and what if it fails?"
ANSWER = (
    "The horn gives two blasts of three seconds every ninety seconds [1]. Ships know Brannock Point by this "
    "pattern [1]. When the visibility falls below two nautical miles, the fog horn is sounded [2]. If the compressor "
    "fails, ring the bell by hand once a minute and send the distress form to the harbour office at once [3]."
)
LIMITS = {"tool": 1.2, "prefetch": 0.8}


def script(request: CompletionRequest) -> ScriptedReply:
    """Call the search tool if there is one, then answer with about sixty tokens."""
    messages = request.body["messages"]
    if request.body.get("tools") and messages[-1]["role"] != "tool":
        return ScriptedReply(
            tool_calls=(ScriptedToolCall("search_docs", json.dumps({"query": QUESTION})),), usage=ScriptedUsage(200, 20)
        )
    return ScriptedReply(ANSWER, usage=ScriptedUsage(900, 70))


async def serve() -> None:
    async with ScriptedServer(script) as server:
        sys.stdout.write(f"{server.base_url}\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)


@contextmanager
def served() -> Iterator[str]:
    """The server in a separate process, so that its processor time is not counted."""
    command = [sys.executable, "-m", "bench.turn", "--serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        if process.stdout is None or process.stdin is None:
            raise RuntimeError("the server has no pipes")
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()


def cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


async def measured(work: dict[str, Callable[[], Awaitable[None]]], turns: int) -> dict[str, float]:
    """The median processor milliseconds of a turn of each kind. The kinds alternate."""
    spent: dict[str, list[float]] = {name: [] for name in work}
    for turn in range(turns + 3):
        for name, once in work.items():
            before = cpu()
            await once()
            if turn >= 3:
                spent[name].append((cpu() - before) * 1000)
    return {name: statistics.median(times) for name, times in spent.items()}


def bare_client(base_url: str) -> Callable[[], Awaitable[None]]:
    import openai

    client = openai.AsyncOpenAI(base_url=base_url, api_key="none", max_retries=0)
    tool: Any = {"type": "function", "function": {"name": "search_docs", "parameters": {"type": "object"}}}

    async def once() -> None:
        messages: list[Any] = [{"role": "system", "content": "Answer."}, {"role": "user", "content": QUESTION}]
        call: Any = None
        async for chunk in await client.chat.completions.create(
            model="m", messages=messages, tools=[tool], stream=True, stream_options={"include_usage": True}
        ):
            if chunk.choices and chunk.choices[0].delta.tool_calls:
                call = call or chunk.choices[0].delta.tool_calls[0]
        asked = {"id": call.id, "type": "function", "function": {"name": "search_docs", "arguments": "{}"}}
        messages += [
            {"role": "assistant", "tool_calls": [asked]},
            {"role": "tool", "tool_call_id": call.id, "content": "[]"},
        ]
        async for _ in await client.chat.completions.create(
            model="m", messages=messages, tools=[tool], stream=True, stream_options={"include_usage": True}
        ):
            pass

    return once


def bare_sdk(base_url: str) -> Callable[[], Awaitable[None]]:
    import openai
    from agents import Agent, OpenAIChatCompletionsModel, RunConfig, Runner, function_tool

    @function_tool
    def search_docs(query: str) -> str:
        """Search."""
        return f"[] {query}"

    client = openai.AsyncOpenAI(base_url=base_url, api_key="none", max_retries=0)
    model = OpenAIChatCompletionsModel(model="m", openai_client=client)
    agent: Agent[None] = Agent(name="book", instructions="Answer.", tools=[search_docs], model=model)

    async def once() -> None:
        run = Runner.run_streamed(agent, QUESTION, run_config=RunConfig(tracing_disabled=True))
        async for _ in run.stream_events():
            pass

    return once


async def compare(turns: int) -> dict[str, Any]:
    folder = Path(tempfile.mkdtemp())
    try:
        with served() as base_url:
            # Processor time is measured, so a busy machine must not cause a timeout.
            patient = {"first_token_seconds": 60.0, "answer_seconds": 120.0}
            chosen = {"data_dir": folder, "base_url": base_url} | patient
            tool = Book.open(Settings.load(chosen | {"retrieval_mode": "tool"}))
            prefetch = Book.open(Settings.load(chosen | {"retrieval_mode": "prefetch"}))
            extractive = Book.open(Settings.load({"data_dir": folder}))
            async with extractive, tool, prefetch:
                await extractive.ingest(BOOK)

                def asking(book: Book) -> Callable[[], Awaitable[None]]:
                    async def once() -> None:
                        book.retriever.clear_cache()
                        await book.ask(QUESTION)

                    return once

                return await measured(
                    {
                        "openai client": bare_client(base_url),
                        "agents sdk": bare_sdk(base_url),
                        "tool": asking(tool),
                        "prefetch": asking(prefetch),
                        "extractive": asking(extractive),
                    },
                    turns,
                )
    finally:
        shutil.rmtree(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve())
        return
    spent = asyncio.run(compare(options.turns))
    ratios = {name: spent[name] / spent["agents sdk"] for name in LIMITS}
    if options.json:
        print(json.dumps({"milliseconds": spent, "ratios": ratios}))
        return
    for name, value in spent.items():
        limit = f"  {ratios[name]:.2f} x the bare SDK (at most {LIMITS[name]})" if name in LIMITS else ""
        print(f"{name:<14} {value:7.1f} ms of processor time a turn{limit}")


if __name__ == "__main__":
    main()
