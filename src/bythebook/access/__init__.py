"""Access: who is asking, what they may do, and how often.

A server is open while there is no key: anyone may ask. With the first key it is closed for everyone without one, and
stays closed when that key is revoked. A key is a secret between programs. The token of a site is public, as it stands
in the site's pages, so it can do little: it works from that site's origins only, asks so many questions a day, and
never becomes a key.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
_LIMIT = re.compile(r"\s*([1-9][0-9]{0,8})\s*(?:/|per)\s*(second|minute|hour|day)\s*")


class Scope(StrEnum):
    """What a caller may do."""

    ASK = "ask"
    SEARCH = "search"
    FEEDBACK = "feedback"
    METRICS = "metrics"
    ADMIN = "admin"
    """Everything, also what is added later."""


SITE_SCOPES = frozenset({Scope.ASK, Scope.SEARCH, Scope.FEEDBACK})
"""All that the token of a site can ever do, and what a key can do unless more is asked for."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever sent a request."""

    user_id: str
    """Whose conversations, feedback and repeated answers are theirs."""
    scopes: frozenset[Scope]
    key_id: str = ""
    """Empty for a caller without a key, on an open server."""
    origins: frozenset[str] = frozenset()
    """The only origins a site's token works from."""
    budget: int | None = None
    """How many questions a day a site's readers may ask together."""

    @property
    def site(self) -> bool:
        """Whether this is a reader of a site, who came with its public token."""
        return bool(self.origins)

    def may(self, scope: Scope) -> bool:
        return scope in self.scopes or Scope.ADMIN in self.scopes


ANYONE = Caller("", frozenset(Scope) - {Scope.ADMIN})
"""The caller of an open server: the same reader as the command line."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key or a site's token, without its secret."""

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
class Limit:
    """So many times in so many seconds."""

    most: int
    seconds: float

    @classmethod
    def parse(cls, text: str) -> Limit:
        """Read a limit such as `60/minute`."""
        found = _LIMIT.fullmatch(text)
        if found is None:
            raise ValueError("use a limit such as 60/minute; second, hour and day work too")
        return cls(int(found[1]), SECONDS[found[2]])
