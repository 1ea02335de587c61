"""Hold a conversation about a book with a model, check every citation, and print it as Markdown.

python -m bench.transcript model FOLDER --base-url URL --model NAME > docs/transcripts/physical-ai.md
python -m bench.transcript tools > docs/transcripts/tool-calling.md
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections import Counter
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from bench.processes import ROOT
from bythebook import AgentRequest, Book, BookError, Citation, Settings
from bythebook.conversations import TurnState
from bythebook.evals.answers import is_exact_quote
from bythebook.testing import CompletionRequest, ScriptedReply, ScriptedServer, ScriptedToolCall, cooperative_model

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bythebook.conversations import ConversationTurn
    from bythebook.testing import RecordedExchange

LIGHTHOUSE = ROOT / "tests" / "books" / "lighthouse"
OFF_TOPIC = (
    "Who won the football world cup in 2018?",
    "How do I bake sourdough bread?",
    "What is the capital of Mongolia?",
    "Which mortgage has the lowest interest rate?",
    "Can you recommend a restaurant in Rome?",
)
QUESTIONS = (
    "What is ROS 2?",
    "How do its nodes talk to each other?",
    "Why?",
    "And what are services for?",
    "What is URDF used for?",
    "How do I describe a joint in it?",
    OFF_TOPIC[0],
    "What is Isaac Sim?",
    "How do I use it for synthetic data?",
    "Tell me more about the second source.",
    "What does domain randomization vary?",
    "What hardware does Isaac Sim need?",
    OFF_TOPIC[1],
    "What does Nav2 do for humanoid robots?",
    "How does it keep the robot from falling?",
    "Which recovery behaviors are there?",
    OFF_TOPIC[2],
    "How does Gazebo simulate sensors?",
    "What about LiDAR?",
    "What is Unity used for, then?",
    "Is it better than Gazebo for rendering?",
    "What is voice-to-action?",
    "Which model turns the speech into text?",
    "Why is that useful for a robot?",
    OFF_TOPIC[3],
    "What is in the edge kit?",
    "How much does it cost?",
    "Is there a cloud alternative?",
    "How is the capstone project assessed?",
    OFF_TOPIC[4],
)
TOO_MUCH = "How long does a mantle last?"
SEARCHED = (
    "How often does the fog horn sound?",
    "And what if it fails?",
    TOO_MUCH,
    "Who painted the Mona Lisa?",
)


@dataclass(slots=True)
class Held:
    """A finished conversation: its stored turns, and whether each citation is exact."""

    turns: list[ConversationTurn]
    checked: dict[int, list[bool]] = field(default_factory=dict)
    """By the number of the turn, in the order of its citations."""


async def hold(book: Book, questions: Sequence[str]) -> Held:
    """Ask all questions in one session, or the rest of an interrupted run. A failed turn is stored as failed."""
    conversations = await book.conversations()
    begun = [known.id for known in await conversations.latest(user_id="", limit=1)]
    session = begun[0] if begun else (await book.conversation()).id
    done = len(_ended(await conversations.turns(session, user_id="")))
    if done >= len(questions):
        session, done = (await book.conversation()).id, 0
    for number, question in enumerate(questions[done:], start=done + 1):
        try:
            outcome = str((await book.ask(AgentRequest(question, session_id=session))).outcome)
        except BookError as error:
            outcome = f"{error.code}: {error}"
        print(f"{number}/{len(questions)} {question} {outcome}", file=sys.stderr, flush=True)
    held = Held(_ended(await conversations.turns(session, user_id="")))
    async with book.snapshot() as snapshot:
        for turn in held.turns:
            held.checked[turn.number] = [await is_exact_quote(snapshot, citation) for citation in _citations(turn)]
    return held


def _ended(turns: Sequence[ConversationTurn]) -> list[ConversationTurn]:
    """The turns that were not interrupted."""
    return [turn for turn in turns if turn.response or (turn.state is TurnState.FAILED and turn.error != "cancelled")]


def _citations(turn: ConversationTurn) -> list[Citation]:
    """The citations of the answer as they were stored."""
    names = [known.name for known in fields(Citation)]
    stored = turn.response["citations"] if turn.response else []
    return [Citation(**{name: citation[name] for name in names}) for citation in stored]


def summary(held: Held) -> Iterator[str]:
    """The metrics of the conversation as a table."""
    outcomes = Counter(turn.response["outcome"] if turn.response else str(turn.state) for turn in held.turns)
    off_topic = [turn for turn in held.turns if turn.question in OFF_TOPIC]
    refused = [turn for turn in held.turns if turn.response and turn.response["outcome"] == "refused"]
    rightly = [turn for turn in refused if turn in off_topic]
    checked = [stood for turn in held.checked.values() for stood in turn]
    answers = [turn for turn in held.turns if turn.response and turn.response["outcome"] == "answered"]
    own_words = sum(1 for turn in answers if turn.response and turn.response["model"] == "extractive")
    yield from ("| | |", "|---|---|", f"| turns | {len(held.turns)} |")
    yield from (f"| {outcome} | {count} |" for outcome, count in outcomes.most_common())
    if off_topic:
        yield f"| off-topic questions refused | {len(rightly)} of {len(off_topic)} |"
        yield f"| questions about the book refused | {len(refused) - len(rightly)} |"
    yield f"| answers in the book's own sentences, because none of the model's could be proven | {own_words} |"
    yield f"| quotes that stand at their offsets, in the chunk and in the page | {sum(checked)} of {len(checked)} |"
    yield f"| sentences of the model that were removed | {sum(len(_removed(turn)) for turn in held.turns)} |"
    yield f"| seconds for a turn, median | {median(turn.duration_seconds or 0.0 for turn in held.turns):.1f} |"


def told(turn: ConversationTurn, stood: Sequence[bool]) -> Iterator[str]:
    """Format one turn."""
    yield from (f"## {turn.number}. {turn.question}", "")
    if turn.standalone_question not in ("", turn.question):
        yield from (f"Searched for: *{turn.standalone_question}*", "")
    if turn.response is None:
        yield from (f"The turn {turn.state}: `{turn.error}`.", "")
        return
    yield from (_quoted(turn.response["answer"]), "")
    citations = _citations(turn)
    for citation, stands_there in zip(citations, stood, strict=True):
        verdict = "" if stands_there else " **This quote does not stand there.**"
        place = f"{citation.title}, {citation.start} to {citation.end}"
        yield f"- [{citation.number}] {place}: “{_line(citation.quote)}”{verdict}"
    yield from [""] if citations else []
    if removed := _removed(turn):
        yield from ("Removed:", "", *(f"- {_line(sentence)}" for sentence in removed), "")
    yield from (f"*{turn.response['outcome']}, {turn.duration_seconds or 0.0:.1f} s, {turn.response['model']}*", "")


def _removed(turn: ConversationTurn) -> list[str]:
    return list(turn.response["metadata"]["removed"]) if turn.response else []


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines())


def _line(text: str) -> str:
    return " ".join(text.split())


async def with_a_model(given: argparse.Namespace, data: Path) -> str:
    """The conversation with a real model, which gets the passages in its prompt."""
    settings = Settings(
        data_dir=data,
        site_url="https://book.example/",
        base_url=given.base_url,
        api_key="any",
        model=given.model,
        retrieval_mode="prefetch",
        retrieval_top_k=3,
        max_history=4,
        temperature=0.0,
        max_tokens=160,
        first_token_seconds=600.0,
        answer_seconds=900.0,
    )
    async with Book.open(settings) as book:
        await book.ingest(given.folder)
        held = await hold(book, QUESTIONS[: given.turns])
    opening = (
        "# A conversation about a textbook of robotics",
        "",
        f"{len(held.turns)} questions to the *Physical AI & Humanoid Robotics* textbook (CC BY 4.0), answered by",
        f"{given.model}, which cannot call tools. It is handed {settings.retrieval_top_k} passages and the last",
        f"{settings.max_history} messages, so that it keeps up without an accelerator. No answer was edited:",
        f"this page was written by `python -m bench.transcript model`, {datetime.now(UTC):%Y-%m-%d}.",
        "",
    )
    turns = [line for turn in held.turns for line in told(turn, held.checked[turn.number])]
    return "\n".join([*opening, *summary(held), "", *turns])


def careless(request: CompletionRequest) -> ScriptedReply:
    """Search like the cooperative model, but with an invalid `top_k` first for one of the questions."""
    said = str(request.messages[-1].get("content"))
    if request.tools and said == TOO_MUCH:
        return ScriptedReply(
            tool_calls=(ScriptedToolCall("search_docs", json.dumps({"query": TOO_MUCH, "top_k": 500})),)
        )
    if request.tools and "invalid_input" in said:
        return ScriptedReply(tool_calls=(ScriptedToolCall("search_docs", json.dumps({"query": TOO_MUCH})),))
    return cooperative_model(request)


async def with_tools(data: Path) -> str:
    """The conversation with the scripted model, which calls the search tool."""
    async with ScriptedServer(careless) as server:
        settings = Settings(
            data_dir=data,
            site_url="https://lighthouse.example/",
            base_url=server.base_url,
            api_key="any",
            model="scripted",
            retrieval_mode="tool",
        )
        async with Book.open(settings) as book:
            await book.ingest(LIGHTHOUSE)
            held = await hold(book, SEARCHED)
        exchanges = list(server.exchanges)
    opening = (
        "# A conversation with a model that searches",
        "",
        "A small handbook of a lighthouse, asked through the scripted server of `bythebook.testing`: real requests",
        "over a socket, with tool calls. In its third turn the model asks for too much, is told so, and corrects",
        "itself. For the last question no model is asked at all. This page was written by",
        f"`python -m bench.transcript tools`, {datetime.now(UTC):%Y-%m-%d}.",
        "",
    )
    turns = [line for turn in held.turns for line in told(turn, held.checked[turn.number])]
    calls = [line for number, exchange in enumerate(exchanges, start=1) for line in _heard(number, exchange)]
    return "\n".join(
        [*opening, *summary(held), "", *turns, "## What the model was sent, and what it replied", "", *calls]
    )


def _heard(number: int, exchange: RecordedExchange) -> Iterator[str]:
    """One request to the model: the message it ended with, and the reply."""
    last: dict[str, Any] = dict(exchange.request.messages[-1])
    yield f"{number}. *{last['role']}*: {_short(str(last.get('content') or ''))}"
    for call in exchange.reply.tool_calls:
        yield f"   - calls `{call.name}` with `{call.arguments}`"
    if exchange.reply.text:
        yield f"   - says: {_short(exchange.reply.text)}"


def _short(text: str, most: int = 300) -> str:
    line = _line(text)
    return line if len(line) <= most else line[:most].rstrip() + " …"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.transcript", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    kinds = parser.add_subparsers(dest="kind", required=True)
    model = kinds.add_parser("model", help="with a real model, about a folder of pages")
    model.add_argument("folder", type=Path)
    model.add_argument("--base-url", required=True)
    model.add_argument("--model", required=True)
    model.add_argument("--turns", type=int, default=len(QUESTIONS))
    kinds.add_parser("tools", help="with the scripted model, about a small book")
    given = parser.parse_args()
    data = ROOT / ".bythebook" / "transcripts" / given.kind
    print(asyncio.run(with_a_model(given, data) if given.kind == "model" else with_tools(data)))


if __name__ == "__main__":
    main()
