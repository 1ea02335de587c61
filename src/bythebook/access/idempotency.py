"""Idempotency-Key: requests with the same key are answered once, and all get the same answer.

This holds whichever process they reach. The first request locks the key until its answer is stored, for a day. A failed
request releases the key, so that it can be retried.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, RowMapping, bindparam, delete, func, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError

from bythebook.concurrency import spawn_background_task
from bythebook.conversations.locks import LeaseOwner
from bythebook.conversations.models import is_uuid4
from bythebook.database.engine import Database
from bythebook.database.schema import Clock, conversations, repeats
from bythebook.errors import BookError, Conflict, InputError, NotFound

LEASE_SECONDS = 120.0
"""How long a key may be locked: longer than the deadline of any answer."""

RETENTION_SECONDS = 86_400.0

_NOW = Clock()
_THIS = (repeats.c.user_id == bindparam("reader"), repeats.c.key == bindparam("this"))
_FIND = select(repeats, (repeats.c.until < _NOW).label("overdue")).where(*_THIS)
_INSERT: dict[str, Any] = {
    name: insert(repeats).values(until=_NOW + LEASE_SECONDS).on_conflict_do_nothing()
    for name, insert in (("sqlite", sqlite.insert), ("postgresql", postgresql.insert))
}
_LOCKED = (*_THIS, repeats.c.owner == bindparam("me"), repeats.c.answer.is_(None))
_SAVE = (
    update(repeats)
    .where(*_LOCKED)
    .values(until=_NOW + RETENTION_SECONDS, session_id=func.coalesce(bindparam("session"), repeats.c.session_id))
)
_THEIRS = select(conversations.c.id).where(
    conversations.c.id == bindparam("session_id"), conversations.c.user_id == bindparam("user_id")
)
_RELEASE = delete(repeats).where(*_LOCKED)
_DELETE = delete(repeats).where(*_THIS, repeats.c.owner == bindparam("other"))
_EXPIRE = delete(repeats).where(repeats.c.until < _NOW)


@dataclass(frozen=True, slots=True)
class IdempotentRequest:
    """A request with an idempotency key."""

    user_id: str
    key: str
    fingerprint: str
    """A fingerprint of the whole request: the same key with another request is a conflict."""
    session_id: str | None = None


class IdempotencyStore:
    """The keys of users, each locked or with its answer."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._owner = str(LeaseOwner.current())

    async def find_answer(self, request: IdempotentRequest) -> str | None:
        """The stored answer, or None. Raises Conflict if the key belongs to another request."""
        return await self._database.read(lambda connection: _stored_answer(self._row(connection, request), request))

    async def acquire(self, request: IdempotentRequest) -> bool:
        """Lock the key. Returns False if it is locked or answered already."""
        return await self._database.write(lambda connection: self._lock(connection, request))

    async def save_answer(self, request: IdempotentRequest, answer: str, *, session_id: str | None) -> None:
        """Store the answer of a key that is locked by this process. It is deleted with its session."""
        parameters = _key_parameters(request) | {"me": self._owner, "answer": answer, "session": session_id}
        await self._database.write(lambda connection: connection.execute(_SAVE, parameters))

    async def release(self, request: IdempotentRequest) -> None:
        """Unlock the key without an answer."""
        parameters = _key_parameters(request) | {"me": self._owner}
        await self._database.write(lambda connection: connection.execute(_RELEASE, parameters))

    async def delete_stale_rows(self) -> None:
        """Delete keys older than a day."""
        await self._database.write(lambda connection: connection.execute(_EXPIRE))

    def _lock(self, connection: Connection, request: IdempotentRequest) -> bool:
        row = self._row(connection, request)
        if row is not None and _is_stale(row):
            connection.execute(_DELETE, _key_parameters(request) | {"other": row["owner"]})
            row = None
        if row is not None:
            _stored_answer(row, request)
            return False
        # Another user's session looks like none.
        if request.session_id is not None and not (
            is_uuid4(request.session_id)
            and connection.scalar(_THEIRS, {"session_id": request.session_id, "user_id": request.user_id})
        ):
            raise NotFound("there is no such conversation.")
        values = {
            "user_id": request.user_id,
            "key": request.key,
            "asked": request.fingerprint,
            "session_id": request.session_id,
            "owner": self._owner,
        }
        try:
            return bool(connection.execute(_INSERT[connection.dialect.name], values).rowcount)
        except IntegrityError as exc:
            raise NotFound("there is no such conversation.") from exc

    def _row(self, connection: Connection, request: IdempotentRequest) -> RowMapping | None:
        return connection.execute(_FIND, _key_parameters(request)).mappings().one_or_none()


def _key_parameters(request: IdempotentRequest) -> dict[str, Any]:
    return {"reader": request.user_id, "this": request.key}


def _is_stale(row: RowMapping) -> bool:
    """Whether the process that locked the key is gone, or the lock or the answer has expired."""
    return bool(row["overdue"]) or (row["answer"] is None and LeaseOwner.parse(row["owner"]).is_dead())


def _stored_answer(row: RowMapping | None, request: IdempotentRequest) -> str | None:
    if row is None or _is_stale(row):
        return None
    if row["asked"] != request.fingerprint:
        raise Conflict("this Idempotency-Key was used for another request. Use a new key for a new question.")
    answer: str | None = row["answer"]
    return answer


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

    async def save_answer(self, answer: str, *, session_id: str | None) -> None:
        """Save the answer under the key. If that fails, the reader still gets the answer."""
        saving = self._store.save_answer(self._request, answer, session_id=session_id)
        with suppress(BookError):
            await asyncio.shield(spawn_background_task(saving))

    async def release(self) -> None:
        """Release the key without an answer, so that the request can be retried."""
        if self._acquired:
            await asyncio.shield(spawn_background_task(self._store.release(self._request)))
