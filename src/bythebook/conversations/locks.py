"""Who is answering a turn, so that another process can tell whether it still does.

Waiting for one's turn inside this process: first come, first served, by conversation.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import uuid
from contextlib import asynccontextmanager, suppress
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@dataclass(frozen=True, slots=True)
class Owner:
    """One open store in one process on one machine."""

    place: str
    """Where process ids mean the same process: machine, start-up of it, and container."""
    pid: int
    started: str
    """When the process was started, since ids are used again; empty where it cannot be known."""
    store: str

    def __str__(self) -> str:
        return "|".join(map(str, astuple(self)))

    @classmethod
    def parse(cls, text: str) -> Owner:
        place, pid, started, store = text.split("|")
        return cls(place, int(pid), started, store)

    @classmethod
    def here(cls) -> Owner:
        """A new owner in this process."""
        return cls(_place(), os.getpid(), _started(os.getpid()) or "", uuid.uuid4().hex)

    def is_gone(self) -> bool:
        """Whether the process is certainly no more. From another machine nobody can tell."""
        if self.place != _place():
            return False
        if self.started:
            return _started(self.pid) != self.started
        return not _runs(self.pid)


def _place() -> str:
    parts = [socket.gethostname().replace("|", "")]
    try:
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        parts.append(str(Path("/proc/self/ns/pid").stat().st_ino))
    except OSError:
        parts.append(sys.platform)
    return "/".join(parts)


def _started(pid: int) -> str | None:
    """The moment Linux started the process, in its own count; None when there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The name stands in brackets and may contain anything, so the fields are counted from behind it.
    state, *fields = stat.rpartition(")")[2].split()
    return None if state in {"Z", "X"} else fields[18]


def _runs(pid: int) -> bool:
    if sys.platform == "win32":  # where signal 0 would end the process
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


class Queue:
    """Those who wait for one conversation. Only the first of them looks whether it is free."""

    def __init__(self) -> None:
        self.head = asyncio.Lock()
        self.users = 0
        self._stirred = asyncio.Event()

    def stir(self) -> None:
        """Have the first look again at once."""
        self._stirred.set()

    async def pause(self, seconds: float) -> None:
        """Wait until stirred, and no longer than this: another process cannot stir us."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stirred.wait(), seconds)
        self._stirred.clear()


class Queues:
    """A queue for each conversation somebody waits for, and none for the others."""

    def __init__(self) -> None:
        self._queues: dict[str, Queue] = {}

    @asynccontextmanager
    async def first_in(self, name: str) -> AsyncIterator[Queue]:
        """Be the first in the queue until the block ends."""
        queue = self._queues.setdefault(name, Queue())
        queue.users += 1
        try:
            async with queue.head:
                yield queue
        finally:
            queue.users -= 1
            if not queue.users:
                del self._queues[name]

    def stir(self, name: str) -> None:
        if name in self._queues:
            self._queues[name].stir()
