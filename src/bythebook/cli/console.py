"""Shared by all commands: load settings, run, print, report errors, show progress.

This module does not import typer, because `bythebook ask` runs without it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TextIO, TypeVar

import typer

from bythebook.errors import BookError, NotFound
from bythebook.serialization import CONTROL, error_to_dict, to_json
from bythebook.settings import Settings
from bythebook.telemetry import Progress, redact
from bythebook.telemetry.redaction import register_secrets

if TYPE_CHECKING:
    from bythebook.book import Book

_ESCAPE = f"[{os.urandom(8).hex()}]"
"""Stands for the escape character. No page can guess it."""
FAILED, USAGE_ERROR, PAGES_SKIPPED, INTERRUPTED = 1, 2, 3, 130

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run the coroutine of a command. After Ctrl-C, published work is kept and the rest can be resumed."""
    import asyncio

    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        say("Interrupted. Nothing is lost.")
        sys.exit(INTERRUPTED)


def run_with_book(settings: Settings, work: Callable[[Book], Coroutine[Any, Any, T]]) -> T:
    """Run the coroutine of a command with the open book."""

    async def open_and_work() -> T:
        from bythebook.book import Book

        async with Book.open(settings, say=say) as book:
            return await work(book)

    return run(open_and_work())


def exit_now() -> NoReturn:
    """End the process immediately with exit code 0, for a command that only reads.

    Closing the book would rewrite the unchanged files of the index engine, which delays the return to the shell.
    Open files of a reader need no other cleanup than the end of the process.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def echo(text: str) -> None:
    """Print to standard output: the result of the command."""
    print(_to_terminal(text), flush=True)  # noqa: T201 - standard output is where answers go


def say(text: str) -> None:
    """Print to standard error: messages that are not part of the result."""
    print(_to_terminal(text), file=sys.stderr, flush=True)  # noqa: T201 - and standard error is for everything else


def _to_terminal(text: str) -> str:
    """Remove what a terminal would obey: pages, titles and models may contain it. Only our own styles stay."""
    return CONTROL.sub("", text).replace(_ESCAPE, "\x1b")


def bold(text: str) -> str:
    return _style(text, "1", sys.stdout)


def dim(text: str) -> str:
    return _style(text, "2", sys.stdout)


def code(text: str) -> str:
    """Inline code: coloured instead of between backticks. The text around it may be bold."""
    return f"{_ESCAPE}[36m{text.strip('`')}{_ESCAPE}[39m" if _has_styles(sys.stdout) else text


def link(text: str, url: str) -> str:
    """The text as a hyperlink, for terminals that know them (OSC 8). Others show the text."""
    return f"{_ESCAPE}]8;;{url}{_ESCAPE}\\{text}{_ESCAPE}]8;;{_ESCAPE}\\" if _has_styles(sys.stdout) else text


def _style(text: str, code: str, stream: TextIO) -> str:
    """Add ANSI codes if the stream is a terminal."""
    return f"{_ESCAPE}[{code}m{text}{_ESCAPE}[0m" if _has_styles(stream) else text


def _has_styles(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def load_settings(**arguments: Any) -> Settings:
    loaded = Settings.load(arguments)
    register_secrets(loaded.secrets())
    for warning in loaded.ignored:
        say(f"warning: {warning}")
    return loaded


def require_book(settings: Settings) -> None:
    """Raise NotFound if there is no book on this disk, before anything is downloaded or loaded."""
    folder = settings.data_dir
    # A folder that is none is reported where it is opened.
    elsewhere = settings.qdrant_url or (folder.exists() and not folder.is_dir())
    if not elsewhere and not any((folder / name).exists() for name in ("index/CURRENT", "attached.json")):
        raise NotFound(f"there is no book yet in {str(folder)!r}. Run 'bythebook ingest FOLDER' first.")


def print_table(rows: Sequence[tuple[str, ...]]) -> None:
    """Print aligned columns. The first row is the header."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for number, row in enumerate(rows):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        echo(bold(line) if number == 0 else line)


def print_field(name: str, value: str) -> None:
    echo(f"{bold(f'{name:<11}')} {value}")


def print_json(value: Any) -> None:
    text = json.dumps(to_json(value), ensure_ascii=False, indent=2)
    echo(CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def report_error(error: BookError, *, as_object: bool) -> None:
    """Print the error as a message and, if asked for, as JSON."""
    if as_object:
        print_json(error_to_dict(error))
    say(f"{_style('error:', '1;31', sys.stderr)} {redact(str(error))}")


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A progress bar if standard error is a terminal."""
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


DataDir = Annotated[Path | None, typer.Option(help="The folder of the book. Default: .bythebook")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
TopK = Annotated[int | None, typer.Option(help="The number of passages, 1 to 10.")]
Model = Annotated[str | None, typer.Option(help="The model.")]
BaseUrl = Annotated[str | None, typer.Option(help="An OpenAI-compatible URL of the model.")]
FilterOption = Annotated[
    list[str] | None,
    typer.Option("--filter", help="Search only module=NAME, chapter=ID or url=PREFIX. May be repeated."),
]
