"""Supervisor: starts several worker processes on one socket and replaces those that exit.

A worker is a new process that inherits the socket. It gets its settings on standard input, and treats the end of
standard input as the exit of the supervisor. On standard output it reports that it is ready, or why it cannot start.
"""

import asyncio
import json
import socket
import sys
import time
from asyncio.subprocess import Process
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from bythebook.errors import BookError, Unavailable
from bythebook.serialization import error_from_dict
from bythebook.server.serve import CLOSE_SECONDS, StartupReport
from bythebook.server.signals import StopSignal
from bythebook.settings import Settings
from bythebook.telemetry.prometheus import clear_folder

MAX_BACKOFF_SECONDS = 30.0
"""The longest delay before a worker that keeps failing is started again."""

HEALTHY_SECONDS = 10.0
"""A worker that ran at least this long is replaced without delay."""


@dataclass(eq=False, slots=True)
class WorkerProcess:
    """A worker process that is ready."""

    process: Process
    report: StartupReport
    since: float = field(default_factory=time.monotonic)

    @property
    def was_healthy(self) -> bool:
        return time.monotonic() - self.since >= HEALTHY_SECONDS


@dataclass(eq=False, slots=True)
class Supervisor:
    """Keeps the configured number of workers running until the stop signal."""

    settings: Settings
    listener: socket.socket
    stop: StopSignal
    say: Callable[[str], None]
    _processes: set[Process] = field(default_factory=set)

    async def run(self, *, ready: Callable[[StartupReport], None]) -> None:
        """Serve until the stop signal. Raises the error of the first workers if they cannot start."""
        self.stop.before_exit = self.kill
        clear_folder(self.settings.metrics_folder)
        terminating = asyncio.create_task(self._terminate_on_stop())
        try:
            workers = await asyncio.gather(*(self._start() for _ in range(self.settings.workers)))
            ready(workers[0].report)
            async with asyncio.TaskGroup() as group:
                for worker in workers:
                    group.create_task(self._supervise(worker))
        except Unavailable:
            if not self.stop:  # After a stop signal, a worker need not have become ready.
                raise
        finally:
            terminating.cancel()
            self.kill()
            await asyncio.gather(*(process.wait() for process in self._processes))

    def kill(self) -> None:
        """Kill every worker immediately."""
        for process in self._processes:
            with suppress(ProcessLookupError):
                process.kill()

    async def _start(self) -> WorkerProcess:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "bythebook.server.worker"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            pass_fds=[self.listener.fileno()],
            start_new_session=True,  # Ctrl-C reaches only the supervisor, which stops the workers.
        )
        self._processes.add(process)
        if process.stdin is None or process.stdout is None:
            raise AssertionError("both are pipes")
        process.stdin.write(self._encode_job())
        report = await process.stdout.readline()
        if report:
            fields = json.loads(report)
            if "error" not in fields:
                return WorkerProcess(process, StartupReport(**fields))
        code = await process.wait()
        self._processes.discard(process)
        raise (
            error_from_dict(fields) if report else Unavailable(f"a worker exited with code {code} before it was ready.")
        )

    def _encode_job(self) -> bytes:
        job = {"socket": self.listener.fileno(), "settings": self.settings.to_arguments()}
        return json.dumps(job).encode() + b"\n"

    async def _supervise(self, worker: WorkerProcess | None) -> None:
        """Replace the worker whenever it exits, until the stop signal."""
        delay = 0.0
        while worker is not None:
            code = await worker.process.wait()
            self._processes.discard(worker.process)
            if self.stop:
                return
            self.say(f"A worker exited with code {code}. Starting another one.")
            delay = 0.0 if worker.was_healthy else _next_backoff(delay)
            worker = await self._restart(delay)

    async def _restart(self, delay: float) -> WorkerProcess | None:
        """Start another worker, with as many attempts as needed; None if the stop signal comes first."""
        while not await self._wait_for_stop(within=delay):
            try:
                return await self._start()
            except BookError as error:
                self.say(f"A worker could not be started: {error}")
                delay = _next_backoff(delay)
        return None

    async def _wait_for_stop(self, *, within: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self.stop.wait()
        return bool(self.stop)

    async def _terminate_on_stop(self) -> None:
        """On the stop signal, terminate the workers, and kill those that take too long."""
        await self.stop.wait()
        for process in self._processes:
            with suppress(ProcessLookupError):
                process.terminate()
        await asyncio.sleep(self.settings.shutdown_seconds + CLOSE_SECONDS)
        self.kill()


def _next_backoff(delay: float) -> float:
    return min(max(1.0, 2 * delay), MAX_BACKOFF_SECONDS)
