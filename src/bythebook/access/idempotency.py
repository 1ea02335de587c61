"""Repeats: a request that comes again under the same key is answered once, and every time the same.

The first one holds the key until it has its answer, which is then kept for a day. What fails is not kept, so that it
can be tried again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, delete, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import IntegrityError

from bythebook.conversations.locks import Owner
from bythebook.conversations.models import is_uuid4
from bythebook.database.schema import Clock, repeats
from bythebook.errors import Conflict, NotFound

if TYPE_CHECKING:
    from sqlalchemy import Connection, RowMapping

    from bythebook.database.engine import Database

LEASE_SECONDS = 120.0
"""How long a key may be held: more than the deadline of any answer."""

KEEP_SECONDS = 86_400.0

_NOW = Clock()
_THIS = (repeats.c.user_id == bindparam("reader"), repeats.c.key == bindparam("this"))
_FIND = select(repeats, (repeats.c.until < _NOW).label("overdue")).where(*_THIS)
_INSERT: dict[str, Any] = {
    name: insert(repeats).values(until=_NOW + LEASE_SECONDS).on_conflict_do_nothing()
    for name, insert in (("sqlite", sqlite.insert), ("postgresql", postgresql.insert))
}
_HELD = (*_THIS, repeats.c.owner == bindparam("me"), repeats.c.answer.is_(None))
_KEEP = update(repeats).where(*_HELD).values(until=_NOW + KEEP_SECONDS)
_LET_GO = delete(repeats).where(*_HELD)
_FORGET = delete(repeats).where(*_THIS, repeats.c.owner == bindparam("other"))
_EXPIRE = delete(repeats).where(repeats.c.until < _NOW)


@dataclass(frozen=True, slots=True)
class Repeat:
    """A request that may come again: whose it is, under which key, and what it asks."""

    user_id: str
    key: str
    asked: str
    """A fingerprint of the whole request: the same key for another one is a mistake."""
    session_id: str | None = None


class Repeats:
    """Every key that is held or has its answer."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._owner = str(Owner.here())

    async def answer(self, repeat: Repeat) -> str | None:
        """The answer that was given, None if there is none yet. Raises Conflict when the key is another request's."""
        return await self._database.read(lambda connection: _answer(self._row(connection, repeat), repeat))

    async def hold(self, repeat: Repeat) -> bool:
        """Hold the key, unless somebody does already or the answer is there."""
        return await self._database.write(lambda connection: self._held(connection, repeat))

    async def keep(self, repeat: Repeat, answer: str) -> None:
        """Keep the answer under the key that is held here."""
        given = self._named(repeat) | {"me": self._owner, "answer": answer}
        await self._database.write(lambda connection: connection.execute(_KEEP, given))

    async def let_go(self, repeat: Repeat) -> None:
        """Give the key up without an answer."""
        given = self._named(repeat) | {"me": self._owner}
        await self._database.write(lambda connection: connection.execute(_LET_GO, given))

    async def expire(self) -> None:
        """Forget what is older than a day."""
        await self._database.write(lambda connection: connection.execute(_EXPIRE))

    def _held(self, connection: Connection, repeat: Repeat) -> bool:
        row = self._row(connection, repeat)
        if row is not None and _is_over(row):
            connection.execute(_FORGET, self._named(repeat) | {"other": row["owner"]})
            row = None
        if row is not None:
            _answer(row, repeat)
            return False
        if repeat.session_id is not None and not is_uuid4(repeat.session_id):
            raise NotFound("there is no such conversation.")
        values = {
            "user_id": repeat.user_id,
            "key": repeat.key,
            "asked": repeat.asked,
            "session_id": repeat.session_id,
            "owner": self._owner,
        }
        try:
            return bool(connection.execute(_INSERT[connection.dialect.name], values).rowcount)
        except IntegrityError as exc:
            raise NotFound("there is no such conversation.") from exc

    def _row(self, connection: Connection, repeat: Repeat) -> RowMapping | None:
        return connection.execute(_FIND, self._named(repeat)).mappings().one_or_none()

    def _named(self, repeat: Repeat) -> dict[str, Any]:
        return {"reader": repeat.user_id, "this": repeat.key}


def _is_over(row: RowMapping) -> bool:
    """Whether nobody will ever answer under this key, or the answer is too old."""
    return bool(row["overdue"]) or (row["answer"] is None and Owner.parse(row["owner"]).is_gone())


def _answer(row: RowMapping | None, repeat: Repeat) -> str | None:
    if row is None or _is_over(row):
        return None
    if row["asked"] != repeat.asked:
        raise Conflict("this Idempotency-Key was used for another request. Use a new key for a new question.")
    answer: str | None = row["answer"]
    return answer
