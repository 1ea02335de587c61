"""API keys and site tokens, stored in the database as hashes.

A secret is `btb_ID_RANDOM`, or `btbsite_ID_RANDOM` for a site. The id is public: it selects the row, and the hashes are
compared in constant time. The hash covers the whole secret with its prefix, so a site token cannot be used as a key.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Collection
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection, RowMapping, bindparam, exists, insert, select, update

from bythebook.access import ANONYMOUS, SITE_SCOPES, ApiKey, Caller, Scope
from bythebook.access.rate_limiter import RateLimiter
from bythebook.access.site_tokens import SiteQuotas, identify_reader, validate_origin
from bythebook.conversations.models import to_utc, utc_now
from bythebook.database.engine import Database
from bythebook.database.schema import keys
from bythebook.errors import InputError, NotFound

MAX_NAME_LENGTH = 100

_SECRET = re.compile(r"(?P<kind>btb|btbsite)_(?P<id>[0-9a-f]{12})_[A-Za-z0-9_-]{43}")
_DUMMY_DIGEST = "0" * 64
"""Compared if the key is unknown, so that the check takes the same time."""

_COLUMNS = [column for column in keys.c if column.name != "digest"]
_FIND = select(keys).where(keys.c.id == bindparam("this"))
_LIST = select(*_COLUMNS).order_by(keys.c.created_at, keys.c.id)
_ANY = select(exists(select(keys.c.id)))
_REVOKE = update(keys).where(keys.c.id == bindparam("this"), keys.c.revoked_at.is_(None))


class ApiKeyStore:
    """Creates, lists, revokes and checks keys and site tokens."""

    def __init__(self, database: Database, *, required: bool = False, closed_file: Path | None = None) -> None:
        """`required`: a key is required even if none was created. `closed_file` exists from the first key on: a server
        whose database is lost must not open.
        """
        self._database = database
        self._closed = required
        self._closed_file = closed_file

    async def create(
        self, name: str, *, scopes: Collection[Scope] = SITE_SCOPES, expires_at: datetime | None = None
    ) -> tuple[ApiKey, str]:
        """Create a key. Returns it with its secret, which is not stored."""
        if not scopes:
            raise InputError("a key needs a scope, or it can do nothing.")
        return await self._insert(ApiKey(_new_id(), name, frozenset(scopes), utc_now(), expires_at), "btb")

    async def create_site(
        self,
        name: str,
        origins: Collection[str],
        *,
        budget: int,
        scopes: Collection[Scope] = SITE_SCOPES,
        expires_at: datetime | None = None,
    ) -> tuple[ApiKey, str]:
        """Create a token for a site with these origins. Its readers share a quota of `budget` questions a day."""
        if not scopes or not SITE_SCOPES.issuperset(scopes):
            raise InputError(f"the token of a site is public: its scopes are among {', '.join(sorted(SITE_SCOPES))}.")
        if not origins:
            raise InputError("the token of a site needs the site's origin, such as https://example.org.")
        if budget < 1:
            raise InputError("the budget of a site is a number of questions a day, at least 1.")
        site = frozenset(map(validate_origin, origins))
        key = ApiKey(_new_id(), name, frozenset(scopes), utc_now(), expires_at, origins=site, budget=budget)
        return await self._insert(key, "btbsite")

    async def _insert(self, key: ApiKey, kind: str) -> tuple[ApiKey, str]:
        if not key.name.isprintable() or len(key.name) > MAX_NAME_LENGTH:
            raise InputError(f"the name of a key is at most {MAX_NAME_LENGTH} printable characters.")
        secret = f"{kind}_{key.id}_{secrets.token_urlsafe(32)}"
        row = asdict(key) | {
            "digest": _digest(secret),
            "scopes": " ".join(sorted(key.scopes)),
            "origins": " ".join(sorted(key.origins)),
            "expires_at": to_utc(key.expires_at) if key.expires_at else None,
        }
        await self._database.write(lambda connection: connection.execute(insert(keys), row))
        self._remember_closed()
        return key, secret

    async def list(self) -> tuple[ApiKey, ...]:
        """All keys, oldest first, including expired and revoked ones."""
        rows = await self._database.read(lambda connection: connection.execute(_LIST).mappings().all())
        return tuple(map(_to_key, rows))

    async def usage_today(self) -> dict[str, int]:
        """The number of questions of each site since midnight UTC, by the id of its token."""
        sites = [key for key in await self.list() if key.origins]
        return await SiteQuotas(RateLimiter(self._database)).usage_today(sites)

    async def revoke(self, key_id: str) -> ApiKey:
        """Revoke a key permanently. Raises NotFound if the id is unknown."""

        def update_and_read(connection: Connection) -> RowMapping | None:
            connection.execute(_REVOKE, {"this": key_id, "revoked_at": utc_now()})
            return connection.execute(_FIND, {"this": key_id}).mappings().one_or_none()

        row = await self._database.write(update_and_read) if key_id.isalnum() else None
        if row is None:
            raise NotFound(f"there is no key {key_id!r}. 'bythebook keys list' shows them all.")
        return _to_key(row)

    async def find(self, secret: str) -> Caller | None:
        """The caller with this secret; None if it is unknown, expired or revoked."""
        match = _SECRET.fullmatch(secret)
        if match is None:
            return None
        row = await self._database.read(
            lambda connection: connection.execute(_FIND, {"this": match["id"]}).mappings().one_or_none()
        )
        same = hmac.compare_digest(row["digest"] if row else _DUMMY_DIGEST, _digest(secret))
        if row is None or not same:
            return None
        key = _to_key(row)
        return _to_caller(key, match["kind"]) if key.state == "active" else None

    async def is_open(self) -> bool:
        """Whether no key is required, because none was ever created."""
        self._closed = self._closed or bool(self._closed_file and self._closed_file.exists())
        # Keys are revoked but never deleted, so a closed server stays closed and the result can be cached.
        if not self._closed and await self._database.read(lambda connection: bool(connection.scalar(_ANY))):
            self._remember_closed()
        return not self._closed

    def _remember_closed(self) -> None:
        self._closed = True
        if self._closed_file:
            with suppress(OSError):  # On a read-only disk, the database is the only memory.
                self._closed_file.touch()

    async def authenticate(self, secret: str) -> Caller | None:
        """The caller with this secret; ANONYMOUS on an open server. None: access denied."""
        if await self.is_open():
            return ANONYMOUS
        return await self.find(secret)

    async def origins(self) -> frozenset[str]:
        """The origins of all active site tokens. A preflight request names an origin but no token."""
        return frozenset().union(*(key.origins for key in await self.list() if key.state == "active"))


def _new_id() -> str:
    return secrets.token_hex(6)


def _digest(secret: str) -> str:
    # A fast hash is sufficient: 256 random bits cannot be guessed.
    return hashlib.sha256(secret.encode()).hexdigest()


def _to_caller(key: ApiKey, kind: str) -> Caller | None:
    """The caller with this key. The prefix of the secret and the row must agree on whether it is a site token."""
    if (kind == "btbsite") is not bool(key.origins):
        return None
    if not key.origins:
        return Caller(f"key:{key.id}", key.scopes, key.id)
    return identify_reader(Caller("", key.scopes & SITE_SCOPES, key.id, key.origins, key.budget or 0), None)


def _to_key(row: RowMapping) -> ApiKey:
    values = {name: row[name] for name in ApiKey.__slots__}
    scopes, origins = frozenset(map(Scope, row["scopes"].split())), frozenset(row["origins"].split())
    return ApiKey(**values | {"scopes": scopes, "origins": origins})
