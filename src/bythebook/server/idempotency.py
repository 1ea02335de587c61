"""Idempotency-Key: requests with the same key are answered by one question, whichever process they reach."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from bythebook.concurrency import spawn_background_task
from bythebook.errors import BookError, InputError

if TYPE_CHECKING:
    from bythebook.access.idempotency import IdempotencyStore, IdempotentRequest

POLL_SECONDS = 0.05
"""How often a request looks for the answer of the request that holds its key."""

MAX_KEY_LENGTH = 255


def validate_key(key: str) -> str:
    """Return the key. Raises InputError if the header's value is not a valid key."""
    if not key.isascii() or not key.isprintable() or len(key) > MAX_KEY_LENGTH:
        raise InputError(f"an Idempotency-Key is at most {MAX_KEY_LENGTH} printable ASCII characters.")
    return key


class IdempotencyLock:
    """The lock on the key of one request, from its first event to its answer or failure."""

    def __init__(self, store: IdempotencyStore, request: IdempotentRequest) -> None:
        self._store = store
        self._request = request
        self._acquired = False

    async def acquire(self) -> str | None:
        """Wait until the key is free and lock it, or return the answer that another request got under it."""
        while not await self._store.acquire(self._request):
            answer = await self._store.find_answer(self._request)
            if answer is not None:
                return answer
            await asyncio.sleep(POLL_SECONDS)
        self._acquired = True
        return None

    async def save_answer(self, answer: str) -> None:
        """Save the answer under the key. If that fails, the reader still gets the answer."""
        with suppress(BookError):
            await asyncio.shield(spawn_background_task(self._store.save_answer(self._request, answer)))

    async def release(self) -> None:
        """Release the key without an answer, so that the request can be retried."""
        if self._acquired:
            await asyncio.shield(spawn_background_task(self._store.release(self._request)))
