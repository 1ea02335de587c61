"""A process that ingests the source folder while the book is served, so that readers do not wait.

`python -m bythebook.cli.ingest_worker` takes its arguments as JSON on standard input, shows progress on standard error
and reports on standard output.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from bythebook.cli.console import echo, progress_bar, say
from bythebook.cli.ingest import print_omissions, summarize
from bythebook.errors import BookError
from bythebook.ingest import IngestReport
from bythebook.ingest.watcher import SourceWatcher
from bythebook.serialization import error_from_dict, error_to_dict, to_json
from bythebook.settings import Settings
from bythebook.sources import ExcludedPage, SkippedPage
from bythebook.sources.factory import open_source

NICENESS = 10
"""The niceness of the process: answers have priority over the ingest."""


class IngestWorker:
    """Ingests a folder with these settings, in a separate process for each run."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self._folder, self._settings = folder, settings
        self._watcher = SourceWatcher([open_source(settings.source_options(), folder)], self._read, say)

    async def ingest(self) -> None:
        """Ingest the folder for the first time."""
        await self._watcher.start()

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[None]:
        """Ingest the folder after each change, until the block ends."""
        task = asyncio.create_task(self._watcher.run())
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
            os.setpriority(os.PRIO_PROCESS, process.pid, NICENESS)
        job = {"folder": str(self._folder), "settings": self._settings.to_arguments()}
        try:
            output, _ = await process.communicate(json.dumps(job).encode())
        except asyncio.CancelledError:
            with suppress(ProcessLookupError):
                process.terminate()
            await process.wait()
            raise
        _print_report(output)


def _print_report(output: bytes) -> None:
    """Print the report. Raise the error of the worker if it failed."""
    if not output:
        raise BookError("the ingest worker ended without a report.")
    found: dict[str, Any] = json.loads(output)
    if "error" in found:
        raise error_from_dict(found)
    skipped = tuple(SkippedPage(**entry) for entry in found["skipped"])
    left_out = tuple(ExcludedPage(**entry) for entry in found["left_out"])
    report = IngestReport(**{**found, "skipped": skipped, "left_out": left_out})
    say(summarize(report, dry_run=False))
    print_omissions(report)


def main() -> None:
    """Ingest the folder that is named on standard input."""
    job = json.load(sys.stdin)
    try:
        report = asyncio.run(_ingest(Settings.load(job["settings"]), Path(job["folder"])))
    except BookError as error:
        echo(json.dumps(error_to_dict(error)))
    except KeyboardInterrupt:
        pass  # The next ingest resumes the unfinished work.
    else:
        echo(json.dumps(to_json(report)))


async def _ingest(settings: Settings, folder: Path) -> IngestReport:
    from bythebook.book import Book

    async with Book.open(settings, say=say) as book:
        with progress_bar() as progress:
            return await book.ingest(folder, progress=progress)


if __name__ == "__main__":
    main()
