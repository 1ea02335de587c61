"""The book without `await`, for scripts, notebooks and Flask."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncGenerator, Coroutine, Iterator
from functools import wraps
from typing import TYPE_CHECKING, Any, Self, TypeVar

from bythebook.book import Book
from bythebook.errors import BookError

if TYPE_CHECKING:
    from bythebook.llm.config import AgentConfig
    from bythebook.settings import Settings

T = TypeVar("T")


class SyncBook:
    """An open book with the methods of `Book`, which return results instead of coroutines.

    Its event loop runs in a thread; any thread may call it. Use it as `with SyncBook(settings) as book`, or close it.
    """

    def __init__(self, settings: Settings | AgentConfig, **options: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="bythebook", daemon=True)
        self._thread.start()
        try:
            self.book = self._run(Book.opened(settings, **options))
        except BaseException:
            self._stop()
            raise

    def __getattr__(self, name: str) -> Any:
        member = getattr(Book, name)

        @wraps(member)
        def call(*args: Any, **kwargs: Any) -> Any:
            async def run() -> Any:
                result = member(self.book, *args, **kwargs)
                return await result if inspect.isawaitable(result) else result

            result: Any = self._run(run())
            return self._iterate(result) if isinstance(result, AsyncGenerator) else result

        return call

    def close(self) -> None:
        """Close the book and end its thread."""
        if not self._loop.is_closed():
            self._run(self.book.close())
            self._stop()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        if self._loop.is_closed():
            work.close()
            raise BookError("the book is closed.")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        finally:
            future.cancel()

    def _iterate(self, items: AsyncGenerator[T]) -> Iterator[T]:
        try:
            while True:
                yield self._run(items.__anext__())
        except StopAsyncIteration:
            return
        finally:
            self._run(items.aclose())

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
