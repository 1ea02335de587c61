"""A crew: several processes that answer readers on one socket, and one that looks after them.

Each worker is a process of its own, started anew and handed the socket. On its standard input it is given its work,
and from the end of it knows that whoever started it is gone. On its standard output it says that it is ready, or
what keeps it from being so.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bythebook.errors import BookError, Unavailable
from bythebook.serialization import as_error
from bythebook.server.serve import CLOSING_SECONDS, Ready
from bythebook.telemetry.prometheus import clean

if TYPE_CHECKING:
    import socket
    from asyncio.subprocess import Process
    from collections.abc import Callable

    from bythebook.server.signals import Stop
    from bythebook.settings import Settings

LONGEST_PAUSE = 30.0
"""How long, at most, before a worker that keeps failing is tried again."""

LASTING = 10.0
"""How long a worker must have been at work for its end to be an accident rather than the rule."""


@dataclass(eq=False, slots=True)
class Worker:
    """A process that is ready to answer."""

    process: Process
    report: Ready
    since: float = field(default_factory=time.monotonic)

    @property
    def lasted(self) -> bool:
        return time.monotonic() - self.since >= LASTING


@dataclass(eq=False, slots=True)
class Crew:
    """Workers on one socket. One that ends without having been told to is replaced."""

    settings: Settings
    bound: socket.socket
    stop: Stop
    say: Callable[[str], None]
    _processes: set[Process] = field(default_factory=set)

    async def work(self, *, ready: Callable[[Ready], None]) -> None:
        """Answer readers until told to stop. Raises what keeps the first workers from starting."""
        self.stop.at_once = self.kill
        clean(self.settings.metrics_folder)
        dismissing = asyncio.create_task(self._dismiss())
        try:
            workers = await asyncio.gather(*(self._start() for _ in range(self.settings.workers)))
            ready(workers[0].report)
            async with asyncio.TaskGroup() as group:
                for worker in workers:
                    group.create_task(self._keep(worker))
        except Unavailable:
            if not self.stop:  # Told to stop, a worker need not have become ready.
                raise
        finally:
            dismissing.cancel()
            self.kill()
            await asyncio.gather(*(process.wait() for process in self._processes))

    def kill(self) -> None:
        """End every worker there and then."""
        for process in self._processes:
            with suppress(ProcessLookupError):
                process.kill()

    async def _start(self) -> Worker:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "bythebook.server.worker"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            pass_fds=[self.bound.fileno()],
            start_new_session=True,  # Ctrl-C is for us alone, who then tell the workers.
        )
        self._processes.add(process)
        if process.stdin is None or process.stdout is None:
            raise AssertionError("both are pipes")
        process.stdin.write(self._job())
        report = await process.stdout.readline()
        if report:
            found = json.loads(report)
            if "error" not in found:
                return Worker(process, Ready(**found))
        code = await process.wait()
        self._processes.discard(process)
        raise as_error(found) if report else Unavailable(f"a worker ended with {code} before it was ready.")

    def _job(self) -> bytes:
        job = {"socket": self.bound.fileno(), "settings": self.settings.as_arguments()}
        return json.dumps(job).encode() + b"\n"

    async def _keep(self, worker: Worker | None) -> None:
        """Wait for the worker's end, and put another in its place, until told to stop."""
        pause = 0.0
        while worker is not None:
            code = await worker.process.wait()
            self._processes.discard(worker.process)
            if self.stop:
                return
            self.say(f"A worker ended with {code}. Another one takes its place.")
            pause = 0.0 if worker.lasted else _longer(pause)
            worker = await self._replacement(pause)

    async def _replacement(self, pause: float) -> Worker | None:
        """Another worker, after as many attempts as it takes; None when told to stop before."""
        while not await self._told_to_stop(within=pause):
            try:
                return await self._start()
            except BookError as error:
                self.say(f"A worker could not be started: {error}")
                pause = _longer(pause)
        return None

    async def _told_to_stop(self, *, within: float) -> bool:
        with suppress(TimeoutError):
            await asyncio.wait_for(self.stop.wait(), within)
        return bool(self.stop)

    async def _dismiss(self) -> None:
        """Once told to stop, tell the workers, and end those who take too long."""
        await self.stop.wait()
        for process in self._processes:
            with suppress(ProcessLookupError):
                process.terminate()
        await asyncio.sleep(self.settings.shutdown_seconds + CLOSING_SECONDS)
        self.kill()


def _longer(pause: float) -> float:
    return min(max(1.0, 2 * pause), LONGEST_PAUSE)
