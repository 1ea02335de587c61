"""A process that reads the source folder again while the book is served, so that readers do not wait.

`python -m bythebook.cli.ingest_worker` takes its arguments as JSON on standard input, shows progress on standard error
and reports on standard output.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bythebook.cli.console import echo, say, showing_progress
from bythebook.cli.ingest import show_rest, summary
from bythebook.errors import BookError
from bythebook.ingest import Report
from bythebook.ingest.watcher import Keeping
from bythebook.serialization import as_error, as_json, error_response
from bythebook.settings import Settings
from bythebook.sources import LeftOut, Skipped
from bythebook.sources.factory import open_source

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

LESS_URGENT = 10
"""How much readers come first, as `nice` counts it."""


class Reading:
    """A folder that is read into the book with these settings."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self._folder, self._settings = folder, settings
        self._keeping = Keeping([open_source(settings.source_options(), folder)], self._read, say)

    async def begin(self) -> None:
        """Read the folder in for the first time."""
        await self._keeping.begin()

    @asynccontextmanager
    async def going_on(self) -> AsyncIterator[None]:
        """Read the folder in again whenever it changes, until the block ends."""
        task = asyncio.create_task(self._keeping.go_on())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _read(self) -> None:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "bythebook.cli.ingest_worker"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, process.pid, LESS_URGENT)
        job = {"folder": str(self._folder), "settings": self._settings.as_arguments()}
        try:
            output, _ = await process.communicate(json.dumps(job).encode())
        except asyncio.CancelledError:
            with suppress(ProcessLookupError):
                process.terminate()
            await process.wait()
            raise
        _show(output)


def _show(output: bytes) -> None:
    """Say what was done. Raises what went wrong."""
    if not output:
        raise BookError("the folder was not read in: the process that was to do it has ended.")
    found: dict[str, Any] = json.loads(output)
    if "error" in found:
        raise as_error(found)
    skipped = tuple(Skipped(**entry) for entry in found["skipped"])
    left_out = tuple(LeftOut(**entry) for entry in found["left_out"])
    report = Report(**{**found, "skipped": skipped, "left_out": left_out})
    say(summary(report, dry_run=False))
    show_rest(report)


def main() -> None:
    """Read a folder in, as standard input says."""
    job = json.load(sys.stdin)
    try:
        report = asyncio.run(_ingest(Settings.load(job["settings"]), Path(job["folder"])))
    except BookError as error:
        echo(json.dumps(error_response(error)))
    except KeyboardInterrupt:
        pass  # What was not finished is taken up the next time.
    else:
        echo(json.dumps(as_json(report)))


async def _ingest(chosen: Settings, folder: Path) -> Report:
    from bythebook.book import Book

    async with Book.open(chosen, say=say) as book:
        with showing_progress() as progress:
            return await book.ingest(folder, progress=progress)


if __name__ == "__main__":
    main()
