"""Reading a folder in while the book is served: in a process of its own, so that readers do not wait for it.

`python -m bythebook.cli.reading` is that process. It is given its work on standard input, shows how far it has come on
standard error, and reports on standard output.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bythebook.cli.doing import echo, say, showing_progress
from bythebook.cli.ingest import show_skipped, summary
from bythebook.errors import BookError, Unavailable
from bythebook.ingest import Report
from bythebook.pages import Skipped
from bythebook.pages.folder import Folder
from bythebook.settings import Settings
from bythebook.web.watching import stamps, watch
from bythebook.wire import as_error, as_json, error_response

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from bythebook.web.watching import Stamps

LESS_URGENT = 10
"""How much readers come first, as `nice` counts it."""


@dataclass(slots=True)
class Reading:
    """A folder that is read into the book with these settings."""

    folder: Path
    settings: Settings
    _known: Stamps = field(default_factory=dict)
    _complaint: str = ""

    async def begin(self) -> None:
        """Read the folder in for the first time."""
        # Before reading, so that what is written meanwhile counts as a change.
        self._known = await stamps(Folder(self.folder))
        await self._read()

    @asynccontextmanager
    async def going_on(self) -> AsyncIterator[None]:
        """Read the folder in again whenever it changes, until the block ends."""
        task = asyncio.create_task(watch(Folder(self.folder), self._read_again, known=self._known))
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _read_again(self) -> bool:
        """Read in what has changed. What goes wrong is shown, and the book stays as it was. Says whether it is done."""
        try:
            await self._read()
        except BookError as error:
            if str(error) != self._complaint:
                say(f"Not read in: {error}")
            self._complaint = str(error)
            return not isinstance(error, Unavailable)
        self._complaint = ""
        return True

    async def _read(self) -> None:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "bythebook.cli.reading"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, process.pid, LESS_URGENT)
        job = {"folder": str(self.folder), "settings": self.settings.as_arguments()}
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
    report = Report(**{**found, "skipped": tuple(Skipped(**skipped) for skipped in found["skipped"])})
    say(summary(report, dry_run=False))
    show_skipped(report)


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
    from bythebook.assemble import Book

    async with Book.open(chosen, say=say) as book:
        with showing_progress() as progress:
            return await book.ingest(folder, progress=progress)


if __name__ == "__main__":
    main()
