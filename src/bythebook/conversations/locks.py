"""Locks of conversations: the lease owner of a turn across processes, and fair queues within a process."""

import asyncio
import os
import socket
import sys
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import astuple, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class LeaseOwner:
    """One open store in one process on one machine."""

    place: str
    """The scope in which process ids are comparable: machine, boot and container."""
    pid: int
    started: str
    """Start time of the process, because ids are reused; empty if unknown."""
    store: str

    def __str__(self) -> str:
        return "|".join(map(str, astuple(self)))

    @classmethod
    def parse(cls, text: str) -> "LeaseOwner":
        place, pid, started, store = text.split("|")
        return cls(place, int(pid), started, store)

    @classmethod
    def current(cls) -> "LeaseOwner":
        """A new owner in this process."""
        return cls(_host_id(), os.getpid(), _start_time(os.getpid()) or "", uuid.uuid4().hex)

    def is_dead(self) -> bool:
        """True if the process has certainly ended. Always false for a process on another machine."""
        if self.place != _host_id():
            return False
        if self.started:
            return _start_time(self.pid) != self.started
        return not _is_alive(self.pid)


def _host_id() -> str:
    parts = [socket.gethostname().replace("|", "")]
    try:
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        parts.append(str(Path("/proc/self/ns/pid").stat().st_ino))
    except OSError:
        parts.append(sys.platform)
    return "/".join(parts)


def _start_time(pid: int) -> str | None:
    """Start time of the process in clock ticks (Linux); None if there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The process name is in parentheses and may contain any character, so count the fields after it.
    state, *fields = stat.rpartition(")")[2].split()
    return None if state in {"Z", "X"} else fields[18]


def _is_alive(pid: int) -> bool:
    if sys.platform == "win32":  # signal 0 would end the process on Windows
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


class TurnQueue:
    """The waiters of one conversation. Only the first polls whether it is free."""

    def __init__(self) -> None:
        self.head = asyncio.Lock()
        self.users = 0
        self._stirred = asyncio.Event()

    def wake(self) -> None:
        """Make the first waiter poll again immediately."""
        self._stirred.set()

    async def wait(self, seconds: float) -> None:
        """Wait until woken, at most this long: another process cannot wake us."""
        # On Python 3.11, `asyncio.wait_for` loses a cancellation that arrives together with the event.
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stirred.wait()
        self._stirred.clear()


class TurnQueues:
    """A queue for each conversation that has waiters."""

    def __init__(self) -> None:
        self._queues: dict[str, TurnQueue] = {}

    @asynccontextmanager
    async def acquire(self, name: str) -> AsyncIterator[TurnQueue]:
        """Hold the first place of the queue inside the block."""
        queue = self._queues.setdefault(name, TurnQueue())
        queue.users += 1
        try:
            async with queue.head:
                yield queue
        finally:
            queue.users -= 1
            if not queue.users:
                del self._queues[name]

    def wake(self, name: str) -> None:
        if name in self._queues:
            self._queues[name].wake()
