"""What every command does the same way: read settings, run, print, complain, show how far it has come.

Nothing here imports typer: a plain question is answered without it.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from bythebook.serialization import as_json, error_response
from bythebook.settings import Settings
from bythebook.telemetry import masked
from bythebook.telemetry.redaction import hide

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator
    from typing import TextIO

    from bythebook.errors import BookError
    from bythebook.telemetry import Progress

FAILED, WRONG, SOME_SKIPPED, INTERRUPTED = 1, 2, 3, 130

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a command's work to its end. Ctrl-C ends it cleanly: what was published stays, what was not is resumed."""
    import asyncio

    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        say("Interrupted. Nothing is lost.")
        sys.exit(INTERRUPTED)


def leave() -> NoReturn:
    """End this process, successfully and at once, for a command that only reads.

    Closing the book would have the engine write its files to disk again, though nothing in them has changed, and
    keep whoever asked waiting. What a reader has open needs no more than the end of its process.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def echo(text: str) -> None:
    """A part of the answer."""
    print(text, flush=True)  # noqa: T201 - standard output is where answers go


def say(text: str) -> None:
    """Something for the person at the terminal that is not the answer."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - and standard error is for everything else


def bold(text: str) -> str:
    return _styled(text, "1", sys.stdout)


def dim(text: str) -> str:
    return _styled(text, "2", sys.stdout)


def _styled(text: str, code: str, stream: TextIO) -> str:
    """The text as a terminal shows it, or plain where nobody looks at it."""
    return f"\x1b[{code}m{text}\x1b[0m" if stream.isatty() and not os.environ.get("NO_COLOR") else text


def settings(**arguments: Any) -> Settings:
    loaded = Settings.load(arguments)
    hide(loaded.secrets())
    return loaded


def print_json(value: Any) -> None:
    echo(json.dumps(as_json(value), ensure_ascii=False, indent=2))


def complain(error: BookError, *, as_object: bool) -> None:
    """Say what failed: to the person, and to the program that asked for JSON."""
    if as_object:
        print_json(error_response(error))
    say(f"{_styled('error:', '1;31', sys.stderr)} {masked(str(error))}")


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
