"""`bythebook demo`: ask the manual of By the Book."""

from __future__ import annotations

import json as jsonlib
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bythebook.answers import AgentRequest
from bythebook.cli import console
from bythebook.cli.ask import print_answer
from bythebook.cli.console import DataDir, Json
from bythebook.cli.ingest import summarize
from bythebook.errors import NotFound

if TYPE_CHECKING:
    from bythebook.answers import AgentResponse
    from bythebook.book import Book
    from bythebook.server.serve import StartupReport
    from bythebook.settings import Settings

EXCLUDED_FOLDERS = ("transcripts",)
"""Transcripts of conversations about other books would answer the questions in them."""
QUESTION = "How does By the Book prove an answer?"


def demo(
    question: Annotated[str, typer.Argument(help="A question about By the Book.")] = QUESTION,
    open_page: Annotated[bool, typer.Option("--open", help="Open its chat page in the browser.")] = False,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Ingest the manual as a book and ask it a question, or open its chat page."""
    folder = console.load_settings(data_dir=data_dir).data_dir / "demo"
    # Never use the Qdrant server of the settings: it has another book.
    if open_page:
        _serve_page(
            console.load_settings(data_dir=folder, qdrant_url="", host="127.0.0.1", port=0, workers=1), as_json=json
        )
        return

    async def ask(book: Book) -> AgentResponse:
        await _ingest_manual(book)
        book.defer_log_writes()
        return await book.ask(AgentRequest(question, store=False))

    response = console.run_with_book(console.load_settings(data_dir=folder, qdrant_url=""), ask)
    if json:
        console.print_json(response)
        return
    console.echo(console.bold(f"> {question}") + "\n")
    print_answer(response)


async def _ingest_manual(book: Book) -> None:
    from bythebook.sources.folder import Folder

    with console.progress_bar() as progress:
        report = await book.ingest(Folder(find_manual(), exclude=EXCLUDED_FOLDERS), progress=progress)
    console.say(summarize(report, dry_run=False) + "\n")


def _serve_page(settings: Settings, *, as_json: bool) -> None:
    """Serve the manual on this machine until Ctrl-C, and open it in the browser."""
    from bythebook.cli.serve import run_server
    from bythebook.server import serve

    console.run_with_book(settings, _ingest_manual)
    announce = partial(_announce, as_json=as_json)
    if serve.run_event_loop(run_server(settings, None, watching=False, announce=announce)):
        console.say("Stopped.")
        raise typer.Exit(console.INTERRUPTED)


def _announce(url: str, _found: StartupReport, *, as_json: bool) -> None:
    opened = _open_browser(url)
    console.say(f"The manual is at {url}, Ctrl-C to stop." + ("" if opened else " Open it in a browser."))
    if as_json:
        console.echo(jsonlib.dumps({"url": url, "pid": os.getpid(), "opened": opened}))


def _open_browser(url: str) -> bool:
    """Open the URL in a graphical browser. A text browser would take over the terminal."""
    import webbrowser

    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return False
    is_text_browser = type(browser) is webbrowser.GenericBrowser and not os.environ.get("BROWSER")
    return not is_text_browser and browser.open(url)


def find_manual() -> Path:
    """The folder of the manual: in the installed package, or at the top of a clone."""
    here = Path(__file__).resolve().parent.parent
    for folder in (here / "manual", here.parent.parent / "docs"):
        if (folder / "index.md").exists():
            return folder
    raise NotFound("the manual is missing from this installation. Install bythebook again.")
