"""`bythebook chat`: a conversation with the book."""

from __future__ import annotations

import asyncio
import json as jsonlib
import signal
import sys
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bythebook.answers.events import Answered, Entered, Said, Searched, State
from bythebook.cli.ask import show_answer, show_passages
from bythebook.cli.console import INTERRUPTED, say, settings
from bythebook.cli.options import BaseUrl, DataDir, Json, Model  # noqa: TC001 - typer reads them
from bythebook.errors import BookError
from bythebook.serialization import as_json, error_response

if TYPE_CHECKING:
    from bythebook.answers import AgentResponse
    from bythebook.answers.events import Event
    from bythebook.book import Book

HELP = """\
/new       start a new conversation        /sources   the passages behind the last answer
/clear     forget what was said so far     /history   what was said so far
/save FILE write the conversation down     /exit      leave (also quit, exit, bye, q, Ctrl-D)"""
_LEAVING = {"/exit", "/quit", "quit", "exit", "bye", "q"}
_CLEARING = {"/clear", "clear", "reset", "/reset"}


def chat(
    session: Annotated[
        str | None, typer.Option(help="Go on with the conversation with this id.", show_default=False)
    ] = None,
    resume: Annotated[bool, typer.Option("--continue", help="Go on with the last conversation.")] = False,
    model: Model = None,
    base_url: BaseUrl = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Talk with the book: follow-ups are understood, Ctrl-C stops an answer, Ctrl-D ends the conversation."""
    from bythebook.book import Book

    chosen = settings(data_dir=data_dir, model=model, base_url=base_url)
    if sys.stdin.isatty():
        # Whoever was started in the background ignores Ctrl-C from birth; at a terminal it is how people leave.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with asyncio.Runner() as runner:
            book = runner.run(Book.open(chosen, say=say).__aenter__())
            try:
                talk = runner.run(_open(book, session, resume=resume))
                talk.as_json = json
                _converse(runner, talk)
            finally:
                runner.run(book.__aexit__(None, None, None))
    except KeyboardInterrupt:
        # Pressed once more while Python clears up, it would end as if it had been killed.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        say("")
        sys.exit(INTERRUPTED)


@dataclass(slots=True)
class _Talk:
    """A conversation at the terminal."""

    book: Book
    session_id: str
    as_json: bool = False
    last: AgentResponse | None = None
    found: tuple[Any, ...] = field(default_factory=tuple)


async def _open(book: Book, session: str | None, *, resume: bool) -> _Talk:
    if resume and session is None:
        latest = await (await book.conversations()).latest(user_id="", limit=1)
        session = latest[0].id if latest else None
    return _Talk(book, (await book.conversation(session)).id)


def _converse(runner: asyncio.Runner, talk: _Talk) -> None:
    at_terminal = sys.stdin.isatty() and not talk.as_json
    if at_terminal:
        with suppress(ImportError):
            import readline  # noqa: F401 - makes input() remember and edit lines
        say(f"Conversation {talk.session_id}. Ask the book; /help shows what else you can do.")
    while True:
        try:
            line = input("\n> " if at_terminal else "").strip()
        except EOFError:
            return
        if line.lower() in _LEAVING:
            return
        if line:
            _take(runner, talk, line)


def _take(runner: asyncio.Runner, talk: _Talk, line: str) -> None:
    """Do what a line asks for. Whatever goes wrong, the conversation goes on."""
    try:
        runner.run(_do(talk, line))
    except KeyboardInterrupt:
        say("\nStopped. The conversation goes on.")
    except BookError as error:
        if talk.as_json:
            _print_line("error", error_response(error))
        say(f"{typer.style('error:', fg='red', bold=True)} {error}")


async def _do(talk: _Talk, line: str) -> None:
    word, _, rest = line.partition(" ")
    command = word.lower()
    if line.lower() in _CLEARING:
        await (await talk.book.conversations()).reset(talk.session_id, user_id="")
        say("Forgotten. What would you like to know?")
    elif command == "/new":
        talk.session_id = (await talk.book.conversation()).id
        say(f"New conversation {talk.session_id}.")
    elif command == "/sources":
        show_passages(talk.found) if talk.found else say("There are no sources yet.")
    elif command == "/history":
        typer.echo(await _transcript(talk))
    elif command == "/save":
        path = Path(rest.strip() or f"{talk.session_id}.md")
        await asyncio.to_thread(path.write_text, await _transcript(talk) + "\n", encoding="utf-8")
        say(f"Saved to {path}.")
    elif command.startswith("/"):
        say(HELP)
    else:
        await _ask(talk, line)


async def _transcript(talk: _Talk) -> str:
    conversation = await talk.book.conversation(talk.session_id)
    spoken = [message for message in conversation.messages if message.role in {"user", "assistant"}]
    return "\n\n".join(f"**{'You' if m.role == 'user' else 'Book'}:** {m.content}" for m in spoken)


async def _ask(talk: _Talk, question: str) -> None:
    async with aclosing(talk.book.stream(question, session_id=talk.session_id)) as events:
        if talk.as_json:
            async for event in events:
                _remember(talk, event)
                _print_line(*_named(event))
        elif sys.stdout.isatty():
            await _show_live(talk, events)
        else:
            async for event in events:
                _remember(talk, event)
    if talk.last and not talk.as_json:
        show_answer(talk.last)


async def _show_live(talk: _Talk, events: Any) -> None:
    """The answer as it comes, in a place of its own that the proven answer then takes."""
    from rich.console import Console
    from rich.live import Live
    from rich.markdown import Markdown

    text = ""
    with Live(console=Console(), transient=True, refresh_per_second=12) as live:
        async for event in events:
            _remember(talk, event)
            if isinstance(event, Entered) and event.state is State.GENERATING:
                text = ""
            elif isinstance(event, Said):
                text += event.text
                live.update(Markdown(text))


def _remember(talk: _Talk, event: Event) -> None:
    if isinstance(event, Searched):
        talk.found = event.results
    elif isinstance(event, Answered):
        talk.last = event.response


def _named(event: Event) -> tuple[str, Any]:
    match event:
        case Entered(state):
            return "state", {"state": state}
        case Searched(results):
            return "sources", as_json(results)
        case Said(text):
            return "delta", {"text": text}
        case Answered(response):
            return "answer", as_json(response)


def _print_line(name: str, data: Any) -> None:
    typer.echo(jsonlib.dumps({"event": name, "data": data}, ensure_ascii=False))
