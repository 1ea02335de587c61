"""`bythebook demo`: the manual as a book, answering questions about itself."""

from __future__ import annotations

import json as jsonlib
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bythebook.cli.ask import show_answer
from bythebook.cli.console import INTERRUPTED, bold, echo, print_json, run, say, settings, showing_progress
from bythebook.cli.ingest import summary
from bythebook.cli.options import DataDir, Json  # noqa: TC001 - typer reads them
from bythebook.errors import NotFound

if TYPE_CHECKING:
    from bythebook.answers import AgentResponse
    from bythebook.book import Book
    from bythebook.server.serve import Ready
    from bythebook.settings import Settings

NOT_THE_MANUAL = ("transcripts",)
"""Conversations about other books are kept beside the manual; they would answer what they were asked."""
QUESTION = "How does By the Book prove an answer?"


def demo(
    question: Annotated[str, typer.Argument(help="A question about By the Book.")] = QUESTION,
    open_page: Annotated[bool, typer.Option("--open", help="Open its chat page in the browser instead.")] = False,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Read the manual into a book of its own and ask it a question, or open its chat page."""
    folder = settings(data_dir=data_dir).data_dir / "demo"
    # Never on the server the settings name: another book is kept there.
    if open_page:
        _serve_page(settings(data_dir=folder, qdrant_url="", host="127.0.0.1", port=0, workers=1), as_json=json)
        return
    response = run(_demo(settings(data_dir=folder, qdrant_url=""), question))
    if json:
        print_json(response)
        return
    echo(bold(f"> {question}") + "\n")
    show_answer(response)


async def _demo(chosen: Settings, question: str) -> AgentResponse:
    from bythebook.book import Book

    async with Book.open(chosen, say=say) as book:
        await _read_in(book)
        book.part()
        return await book.ask(question)


async def _read_in(book: Book) -> None:
    from bythebook.sources.folder import Folder

    with showing_progress() as progress:
        report = await book.ingest(Folder(manual(), exclude=NOT_THE_MANUAL), progress=progress)
    say(summary(report, dry_run=False) + "\n")


def _serve_page(chosen: Settings, *, as_json: bool) -> None:
    """Serve the manual to this machine until Ctrl-C, and show it in the reader's browser."""
    from bythebook.cli.serve import serve_until_stopped
    from bythebook.server import serve

    run(_prepare(chosen))
    announce = partial(_announce, as_json=as_json)
    if serve.run(serve_until_stopped(chosen, None, watching=False, announce=announce)):
        say("Stopped.")
        raise typer.Exit(INTERRUPTED)


async def _prepare(chosen: Settings) -> None:
    from bythebook.book import Book

    async with Book.open(chosen, say=say) as book:
        await _read_in(book)


def _announce(url: str, _found: Ready, *, as_json: bool) -> None:
    opened = _show(url)
    say(f"The manual is at {url}, Ctrl-C to stop." + ("" if opened else " Open it in a browser."))
    if as_json:
        echo(jsonlib.dumps({"url": url, "pid": os.getpid(), "opened": opened}))


def _show(url: str) -> bool:
    """Open the address in a browser with a window. One that lives in the terminal would take it from us."""
    import webbrowser

    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return False
    in_the_terminal = type(browser) is webbrowser.GenericBrowser and not os.environ.get("BROWSER")
    return not in_the_terminal and browser.open(url)


def manual() -> Path:
    """The folder of the manual: beside the package when installed, at the top of a clone otherwise."""
    here = Path(__file__).resolve().parent.parent
    for folder in (here / "manual", here.parent.parent / "docs"):
        if (folder / "index.md").exists():
            return folder
    raise NotFound("the manual is missing from this installation. Install bythebook again.")
