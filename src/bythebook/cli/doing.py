"""What every command does the same way: read settings, run, print, complain, show how far it has come."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from bythebook.settings import Settings
from bythebook.wire import as_json, error_response

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

    from bythebook.errors import BookError
    from bythebook.ingest import Progress

FAILED, WRONG, SOME_SKIPPED, INTERRUPTED = 1, 2, 3, 130

T = TypeVar("T")

DataDir = Annotated[
    Path | None, typer.Option(help="The folder that holds the book. Default: .bythebook", show_default=False)
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
TopK = Annotated[int | None, typer.Option(help="How many passages to find, 1 to 10.", show_default=False)]
Model = Annotated[str | None, typer.Option(help="The model to ask.", show_default=False)]
BaseUrl = Annotated[str | None, typer.Option(help="An OpenAI-compatible address to ask it at.", show_default=False)]
Filtered = Annotated[
    list[str] | None,
    typer.Option(
        "--filter", help="Look only in module=NAME, chapter=ID or url=PREFIX. May be repeated.", show_default=False
    ),
]


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a command's work to its end. Ctrl-C ends it cleanly: what was published stays, what was not is resumed."""
    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        say("Interrupted. Nothing is lost.")
        raise typer.Exit(INTERRUPTED) from None


def say(text: str) -> None:
    """Something for the person at the terminal that is not the answer."""
    typer.echo(text, err=True)


def settings(**arguments: Any) -> Settings:
    return Settings.load(arguments)


def print_json(value: Any) -> None:
    typer.echo(json.dumps(as_json(value), ensure_ascii=False, indent=2))


def complain(error: BookError, *, as_object: bool) -> None:
    """Say what failed: to the person, and to the program that asked for JSON."""
    if as_object:
        print_json(error_response(error))
    say(f"{typer.style('error:', fg='red', bold=True)} {error}")


@contextmanager
def showing_progress() -> Iterator[Progress]:
    """A bar on standard error while it is a terminal, and silence otherwise."""
    if not sys.stderr.isatty():
        yield lambda _stage, _done, _total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description:<10}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, Any] = {}

        def show(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total)
            bars.update(tasks[stage], completed=done, total=total)

        yield show
