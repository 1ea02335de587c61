"""Keys and the tokens of sites, kept in the database as hashes.

A secret is `btb_ID_RANDOM`, or `btbsite_ID_RANDOM` for a site. The id is no secret: it finds the row, and the rest is
compared in constant time. The hash is of the whole secret, kind and all, so one kind cannot pass for the other.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from typing import TYPE_CHECKING

from sqlalchemy import bindparam, exists, insert, select, update

from bythebook.access import ANYONE, SITE_SCOPES, Caller, Key, Scope
from bythebook.access.rate_limiter import Rates
from bythebook.access.site_tokens import Budgets, checked_origin, reading
from bythebook.conversations.models import in_utc, now
from bythebook.database.schema import keys
from bythebook.errors import InputError, NotFound

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from sqlalchemy import Connection, RowMapping

    from bythebook.database.engine import Database

LONGEST_NAME = 100

_SECRET = re.compile(r"(?P<kind>btb|btbsite)_(?P<id>[0-9a-f]{12})_[A-Za-z0-9_-]{43}")
_NOBODYS = "0" * 64
"""Compared with when there is no such key, so that its absence takes as long to notice."""

_COLUMNS = [column for column in keys.c if column.name != "digest"]
_FIND = select(keys).where(keys.c.id == bindparam("this"))
_LIST = select(*_COLUMNS).order_by(keys.c.created_at, keys.c.id)
_ANY = select(exists(select(keys.c.id)))
_REVOKE = update(keys).where(keys.c.id == bindparam("this"), keys.c.revoked_at.is_(None))


class Keyring:
    """Every key there is."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._closed = False

    async def create(
        self, name: str, *, scopes: Collection[Scope] = SITE_SCOPES, expires_at: datetime | None = None
    ) -> tuple[Key, str]:
        """A new key and its secret, which nobody can be shown again."""
        if not scopes:
            raise InputError("a key needs a scope, or it can do nothing.")
        return await self._keep(Key(_new_id(), name, frozenset(scopes), now(), expires_at), "btb")

    async def create_site(
        self,
        name: str,
        origins: Collection[str],
        *,
        budget: int,
        scopes: Collection[Scope] = SITE_SCOPES,
        expires_at: datetime | None = None,
    ) -> tuple[Key, str]:
        """A new token for a site with these origins, whose readers may ask `budget` questions a day together."""
        if not scopes or not SITE_SCOPES.issuperset(scopes):
            raise InputError(f"the token of a site is public: its scopes are among {', '.join(sorted(SITE_SCOPES))}.")
        if not origins:
            raise InputError("the token of a site needs the site's origin, such as https://example.org.")
        if budget < 1:
            raise InputError("the budget of a site is a number of questions a day, at least 1.")
        key = Key(
            _new_id(),
            name,
            frozenset(scopes),
            now(),
            expires_at,
            origins=frozenset(map(checked_origin, origins)),
            budget=budget,
        )
        return await self._keep(key, "btbsite")

    async def _keep(self, key: Key, kind: str) -> tuple[Key, str]:
        if not key.name.isprintable() or len(key.name) > LONGEST_NAME:
            raise InputError(f"the name of a key is at most {LONGEST_NAME} printable characters.")
        secret = f"{kind}_{key.id}_{secrets.token_urlsafe(32)}"
        row = {
            "id": key.id,
            "digest": _digest(secret),
            "name": key.name,
            "scopes": " ".join(sorted(key.scopes)),
            "origins": " ".join(sorted(key.origins)),
            "budget": key.budget,
            "created_at": key.created_at,
            "expires_at": in_utc(key.expires_at) if key.expires_at else None,
        }
        await self._database.write(lambda connection: connection.execute(insert(keys), row))
        return key, secret

    async def list(self) -> tuple[Key, ...]:
        """Every key, the oldest first, also expired and revoked ones."""
        rows = await self._database.read(lambda connection: connection.execute(_LIST).mappings().all())
        return tuple(map(_to_key, rows))

    async def spent_today(self) -> dict[str, int]:
        """How many questions each site has asked since midnight UTC, by the id of its token."""
        sites = [key for key in await self.list() if key.origins]
        return await Budgets(Rates(self._database)).spent_today(sites)

    async def revoke(self, key_id: str) -> Key:
        """Refuse the key from now on, for good. Raises NotFound when there is none with this id."""

        def revoked(connection: Connection) -> RowMapping | None:
            connection.execute(_REVOKE, {"this": key_id, "revoked_at": now()})
            return connection.execute(_FIND, {"this": key_id}).mappings().one_or_none()

        row = await self._database.write(revoked) if key_id.isalnum() else None
        if row is None:
            raise NotFound(f"there is no key {key_id!r}. 'bythebook keys list' shows them all.")
        return _to_key(row)

    async def find(self, secret: str) -> Caller | None:
        """Whose secret this is; None for one that was never given out, has expired or was revoked."""
        written = _SECRET.fullmatch(secret)
        if written is None:
            return None
        row = await self._database.read(
            lambda connection: connection.execute(_FIND, {"this": written["id"]}).mappings().one_or_none()
        )
        same = hmac.compare_digest(row["digest"] if row else _NOBODYS, _digest(secret))
        if row is None or not same:
            return None
        key = _to_key(row)
        return _caller(key, written["kind"]) if key.state == "active" else None

    async def is_open(self) -> bool:
        """Whether anyone may ask, because there was never a key."""
        if not self._closed:
            # Keys are revoked, never removed: once closed it stays so, and nobody has to look again.
            self._closed = bool(await self._database.read(lambda connection: connection.scalar(_ANY)))
        return not self._closed

    async def admit(self, secret: str) -> Caller | None:
        """The caller with this secret, or without one if it is empty. None: nobody who may come in."""
        if await self.is_open():
            return ANYONE
        return await self.find(secret)

    async def origins(self) -> frozenset[str]:
        """Every origin that a site's token is good for. A browser asks for them before it shows a token."""
        return frozenset().union(*(key.origins for key in await self.list() if key.state == "active"))


def _new_id() -> str:
    return secrets.token_hex(6)


def _digest(secret: str) -> str:
    # A fast hash will do: 256 random bits are not guessed, however fast.
    return hashlib.sha256(secret.encode()).hexdigest()


def _caller(key: Key, kind: str) -> Caller | None:
    """Who has this key. A site's token is one by its row and by its name, and comes as a reader nobody knows."""
    if (kind == "btbsite") is not bool(key.origins):
        return None
    if not key.origins:
        return Caller(f"key:{key.id}", key.scopes, key.id)
    return reading(Caller("", key.scopes & SITE_SCOPES, key.id, key.origins, key.budget or 0), None)


def _to_key(row: RowMapping) -> Key:
    return Key(
        id=row["id"],
        name=row["name"],
        scopes=frozenset(map(Scope, row["scopes"].split())),
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        revoked_at=row["revoked_at"],
        origins=frozenset(row["origins"].split()),
        budget=row["budget"],
    )
