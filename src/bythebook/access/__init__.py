"""Access control: callers, scopes, API keys, site tokens and rate limits.

Without any key, a server is open: no caller needs one. After the first key is created, every caller needs a key, even
if that key is revoked. An API key is a secret between programs. The token of a site is public, because it is part of
the site's pages, so it has few rights: it works only from the origins of that site, within a daily quota, and cannot be
used as a key.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

UNIT_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
_RATE_LIMIT = re.compile(r"\s*([1-9][0-9]{0,8})\s*(?:/|per)\s*(second|minute|hour|day)\s*")


class Scope(StrEnum):
    """What a caller may do."""

    ASK = "ask"
    SEARCH = "search"
    FEEDBACK = "feedback"
    METRICS = "metrics"
    ADMIN = "admin"
    """All scopes, including future ones."""


SITE_SCOPES = frozenset({Scope.ASK, Scope.SEARCH, Scope.FEEDBACK})
"""The largest set of scopes of a site token, and the default of a key."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request."""

    user_id: str
    """The owner of conversations, feedback and idempotency keys."""
    scopes: frozenset[Scope]
    key_id: str = ""
    """Empty for a caller without a key on an open server."""
    origins: frozenset[str] = frozenset()
    """The only origins from which the site's token works."""
    budget: int | None = None
    """The daily quota of questions that all readers of the site share."""

    @property
    def is_site_reader(self) -> bool:
        """Whether this is a reader of a site, identified by its public token."""
        return bool(self.origins)

    def has_scope(self, scope: Scope) -> bool:
        return scope in self.scopes or Scope.ADMIN in self.scopes


ANONYMOUS = Caller("", frozenset(Scope) - {Scope.ADMIN})
"""The caller of an open server: the same user as on the command line."""


@dataclass(frozen=True, slots=True)
class ApiKey:
    """An API key or site token without its secret."""

    id: str
    name: str
    scopes: frozenset[Scope]
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    origins: frozenset[str] = frozenset()
    budget: int | None = None

    @property
    def state(self) -> str:
        """`active`, `expired` or `revoked`."""
        if self.revoked_at:
            return "revoked"
        return "expired" if self.expires_at and self.expires_at <= datetime.now(UTC) else "active"


@dataclass(frozen=True, slots=True)
class RateLimit:
    """A maximum number of requests in a window of time."""

    max_requests: int
    seconds: float

    @classmethod
    def parse(cls, text: str) -> "RateLimit":
        """Parse a limit such as `60/minute`."""
        match = _RATE_LIMIT.fullmatch(text)
        if match is None:
            raise ValueError("use a limit such as 60/minute; second, hour and day work too")
        return cls(int(match[1]), UNIT_SECONDS[match[2]])
