"""A socket that scripted servers listen on."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from bythebook.testing.connection import ClientLeftError, Connection, UnreadableError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType
    from typing import Self

    from bythebook.testing.connection import Received

HOST = "127.0.0.1"


class Listener:
    """Hands every request that comes to `answer`, from `async with` to its end. An error in there ends it."""

    def __init__(self, answer: Callable[[Connection, Received], Awaitable[None]], *, port: int) -> None:
        self._answer = answer
        self.port = port
        """The one that was asked for; with 0, once it listens, the one it has."""
        self._connections: set[Connection] = set()

    async def __aenter__(self) -> Self:
        self._tasks = await asyncio.TaskGroup().__aenter__()
        loop = asyncio.get_running_loop()
        self._listening = await loop.create_server(lambda: Connection(self._opened), HOST, self.port)
        self.port = self._listening.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listening.close()
        for connection in self._connections:
            connection.abort()
        # The group is told only of its own cancelling: what failed in the body is for the caller to see as it is.
        ours = kind is not None and issubclass(kind, asyncio.CancelledError)
        await (self._tasks.__aexit__(kind, exc, trace) if ours else self._tasks.__aexit__(None, None, None))
        await self._listening.wait_closed()

    def _opened(self, connection: Connection) -> None:
        self._connections.add(connection)
        self._tasks.create_task(self._serve(connection))

    async def _serve(self, connection: Connection) -> None:
        try:
            while received := await connection.receive():
                await self._answer(connection, received)
        except ClientLeftError:
            pass
        except UnreadableError as exc:
            connection.send_json({"error": {"message": str(exc)}, "message": str(exc)}, status=400)
        finally:
            connection.close()
            self._connections.discard(connection)
