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

from bythebook.answers import AgentResponse, AnswerCompleted, Event, SourcesFound, State, StateChanged, TextDelta
from bythebook.cli.ask import print_answer, print_passages
from bythebook.cli.console import INTERRUPTED, BaseUrl, DataDir, Json, Model, load_settings, require_book, say
from bythebook.errors import BookError
from bythebook.serialization import error_to_dict, to_json

if TYPE_CHECKING:
    from bythebook.book import Book
    from bythebook.conversations import Message

HELP = """\
/new       start a new conversation        /sources   the passages behind the last answer
/clear     clear the conversation          /history   show the conversation
/save FILE save the conversation           /exit      leave (also quit, exit, bye, q, Ctrl-D)"""
_EXIT_COMMANDS = {"/exit", "/quit", "quit", "exit", "bye", "q"}
_CLEAR_COMMANDS = {"/clear", "clear", "reset", "/reset"}
_COMPLETED = ("/new", "/clear", "/save ", "/sources", "/history", "/help", "/exit")


def chat(
    session: Annotated[str | None, typer.Option(help="Continue the conversation with this id.")] = None,
    resume: Annotated[bool, typer.Option("--continue", help="Continue the latest conversation.")] = False,
    model: Model = None,
    base_url: BaseUrl = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Have a conversation with the book. Ctrl-C stops an answer, Ctrl-D ends the conversation."""
    from bythebook.book import Book

    chosen = load_settings(data_dir=data_dir, model=model, base_url=base_url)
    require_book(chosen)
    if sys.stdin.isatty():
        # A background process inherits an ignored SIGINT. At a terminal, Ctrl-C must work.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with asyncio.Runner() as runner:
            book = runner.run(Book.open(chosen, say=say).__aenter__())
            try:
                talk = runner.run(_open(book, session, resume=resume))
                talk.as_json = json
                _read_lines(runner, talk)
            finally:
                runner.run(book.__aexit__(None, None, None))
    except KeyboardInterrupt:
        # A second Ctrl-C during the cleanup would end the process with the wrong exit code.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        say("")
        sys.exit(INTERRUPTED)


@dataclass(slots=True)
class _ChatSession:
    """A conversation at the terminal."""

    book: Book
    session_id: str
    as_json: bool = False
    last: AgentResponse | None = None
    found: tuple[Any, ...] = field(default_factory=tuple)


async def _open(book: Book, session: str | None, *, resume: bool) -> _ChatSession:
    if resume and session is None:
        latest = await (await book.conversations()).latest(user_id="", limit=1)
        session = latest[0].id if latest else None
    return _ChatSession(book, (await book.conversation(session)).id)


def _read_lines(runner: asyncio.Runner, talk: _ChatSession) -> None:
    at_terminal = sys.stdin.isatty() and not talk.as_json
    if at_terminal:
        _complete_commands()
        say(f"Conversation {talk.session_id}. Ask the book; /help lists the commands.")
    while True:
        try:
            line = input("\n> " if at_terminal else "").strip()
        except EOFError:
            return
        if line.lower() in _EXIT_COMMANDS:
            return
        if line:
            _handle_line(runner, talk, line)


def _complete_commands() -> None:
    """Let input() remember and edit lines, and complete commands with Tab."""
    with suppress(ImportError):
        import readline

        def complete(text: str, state: int) -> str | None:
            return next(iter([name for name in _COMPLETED if name.startswith(text)][state:]), None)

        readline.set_completer(complete)
        readline.set_completer_delims(" ")
        readline.parse_and_bind("tab: complete")


def _handle_line(runner: asyncio.Runner, talk: _ChatSession, line: str) -> None:
    """Handle a line of input. Errors are printed and do not end the conversation."""
    try:
        runner.run(_run_command(talk, line))
    except KeyboardInterrupt:
        say("\nStopped. The conversation continues.")
    except BookError as error:
        if talk.as_json:
            _print_line("error", error_to_dict(error))
        say(f"{typer.style('error:', fg='red', bold=True)} {error}")


async def _run_command(talk: _ChatSession, line: str) -> None:
    word, _, rest = line.partition(" ")
    command = word.lower()
    if line.lower() in _CLEAR_COMMANDS:
        await (await talk.book.conversations()).reset(talk.session_id, user_id="")
        say("Forgotten. What would you like to know?")
    elif command == "/new":
        talk.session_id = (await talk.book.conversation()).id
        say(f"New conversation {talk.session_id}.")
    elif command == "/sources":
        print_passages(talk.found) if talk.found else say("There are no sources yet.")
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


async def _transcript(talk: _ChatSession) -> str:
    conversation = await talk.book.conversation(talk.session_id)
    spoken = [message for message in conversation.messages if message.role in {"user", "assistant"}]
    return "\n\n".join(_quote_message(message) for message in spoken)


def _quote_message(message: Message) -> str:
    """The message as Markdown, with the links of its citations."""
    links = [f"[{c['number']}] [{c['title']}]({c['url']})" for c in map(to_json, message.citations)]
    said = f"**{'You' if message.role == 'user' else 'Book'}:** {message.content}"
    return "\n\n".join(filter(None, (said, "  \n".join(links))))


async def _ask(talk: _ChatSession, question: str) -> None:
    async with aclosing(talk.book.stream(question, session_id=talk.session_id)) as events:
        if talk.as_json:
            async for event in events:
                _record(talk, event)
                _print_line(*_to_wire(event))
        elif sys.stdout.isatty():
            await _print_live(talk, events)
        else:
            async for event in events:
                _record(talk, event)
    if talk.last and not talk.as_json:
        print_answer(talk.last)


async def _print_live(talk: _ChatSession, events: Any) -> None:
    """Show the streamed text in a temporary area, which the verified answer then replaces."""
    from rich.console import Console
    from rich.live import Live
    from rich.markdown import Markdown

    text = ""
    with Live(console=Console(), transient=True, refresh_per_second=12) as live:
        async for event in events:
            _record(talk, event)
            if isinstance(event, StateChanged) and event.state is State.GENERATING:
                text = ""
            elif isinstance(event, TextDelta):
                text += event.text
                live.update(Markdown(text))


def _record(talk: _ChatSession, event: Event) -> None:
    if isinstance(event, SourcesFound):
        talk.found = event.results
    elif isinstance(event, AnswerCompleted):
        talk.last = event.response


def _to_wire(event: Event) -> tuple[str, Any]:
    match event:
        case StateChanged(state):
            return "state", {"state": state}
        case SourcesFound(results):
            return "sources", to_json(results)
        case TextDelta(text):
            return "delta", {"text": text}
        case AnswerCompleted(response):
            return "answer", to_json(response)


def _print_line(name: str, data: Any) -> None:
    typer.echo(jsonlib.dumps({"event": name, "data": data}, ensure_ascii=False))
