"""Sites that embed the widget: validation of their origins, identification of readers, and daily quotas."""

import hashlib
import re
import secrets
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import urlsplit

from bythebook.access import UNIT_SECONDS, ApiKey, Caller, RateLimit
from bythebook.access.rate_limiter import RateLimiter, Reservation
from bythebook.errors import ContextOverflow, InputError, NotFound, RateLimited, Unavailable

_READER = re.compile(r"[0-9A-Fa-f]{32,128}")
_HOST = re.compile(r"(?!-)[a-z0-9_.-]+(?<![.-])|\[[0-9a-f:.]+\]")
_MAX_NAME_LENGTH = 200
_DEFAULT_PORTS = {"http": 80, "https": 443}
_DAY = UNIT_SECONDS["day"]

REFUNDABLE_ERRORS = (InputError, NotFound, ContextOverflow, RateLimited, Unavailable)
"""The errors of a question that was rejected before the book was asked: its site is not charged."""


def validate_origin(text: str) -> str:
    """The origin, if it is written as browsers send it. Raises InputError with the normal form otherwise."""
    origin = _normalize_origin(text)
    if origin is None:
        raise InputError(f"{text!r} is not an origin. Use one such as https://example.org, without wildcards.")
    if origin != text:
        raise InputError(f"{text!r} is not how browsers write the origin. Use {origin!r}.")
    return origin


def _normalize_origin(text: str) -> str | None:
    """The origin of a URL as browsers write it; None if it has none."""
    try:
        parts = urlsplit(text.strip())
        host, port = (parts.hostname or "").encode("idna").decode().lower(), parts.port
    except ValueError:  # also raised for a host that IDNA cannot encode
        return None
    if ":" in host:
        host = f"[{host}]"
    if parts.scheme not in _DEFAULT_PORTS or not _HOST.fullmatch(host) or "@" in parts.netloc:
        return None
    return f"{parts.scheme}://{host}" + (f":{port}" if port not in (None, _DEFAULT_PORTS[parts.scheme]) else "")


def identify_reader(caller: Caller, reader: str | None) -> Caller:
    """The site's caller as one reader, identified by the random number that the reader's browser stores.

    Without a number, or with one short enough to guess, the reader gets a new identity. The number grants access to the
    reader's conversations like a password, so only its hash is used.
    """
    if reader is None or not _READER.fullmatch(reader):
        reader = secrets.token_hex(32)
    digest = hashlib.sha256(reader.lower().encode()).hexdigest()[:32]
    return replace(caller, user_id=f"site:{caller.key_id}:{digest}")


def name_reader(caller: Caller, reader: str) -> Caller:
    """The caller as one of its readers, by the name that it gives to this reader. Only a hash of the name is used."""
    if not reader:
        return caller
    if len(reader) > _MAX_NAME_LENGTH:
        raise InputError(f"X-Reader has at most {_MAX_NAME_LENGTH} characters.")
    return replace(caller, user_id=f"{caller.user_id}/{hashlib.sha256(reader.encode()).hexdigest()[:32]}")


def _subject(key_id: str, day: datetime) -> str:
    return f"budget:{key_id}:{day:%Y-%m-%d}"


class SiteQuotas:
    """The daily quotas of questions of sites. Other callers have no quota and are not charged."""

    def __init__(self, limiter: RateLimiter) -> None:
        self._limiter = limiter

    async def charge(self, caller: Caller) -> Reservation | None:
        """Charge a question. Raises RateLimited until midnight UTC when the quota is used up."""
        if caller.budget is None:
            return None
        today = datetime.now(UTC)
        try:
            # The subject contains the date, so that a quota starts at midnight and not with the first question.
            return await self._limiter.reserve(_subject(caller.key_id, today), RateLimit(caller.budget, _DAY))
        except RateLimited as error:
            wait = _DAY - today.hour * 3600 - today.minute * 60 - today.second
            message = f"this site has used its {caller.budget} questions of today. Ask again after midnight UTC."
            raise RateLimited(message, retry_after=wait) from error

    async def usage_today(self, sites: Collection[ApiKey]) -> dict[str, int]:
        """The number of questions of these sites today, by the id of the token."""
        today = datetime.now(UTC)
        usage = await self._limiter.usage([_subject(site.id, today) for site in sites])
        # The counter is one above the quota if a question was rejected.
        return {site.id: min(usage.get(_subject(site.id, today), 0), site.budget or 0) for site in sites}

    async def refund(self, charge: Reservation | None) -> None:
        """Undo the charge of a question that was not answered."""
        if charge is not None:
            await self._limiter.release(charge)
