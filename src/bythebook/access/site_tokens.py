"""Sites that carry the book in their pages: their origins, their readers, and what they may ask in a day."""

from __future__ import annotations

import hashlib
import re
import secrets
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from bythebook.access import SECONDS, Limit
from bythebook.errors import ContextOverflow, InputError, NotFound, RateLimited, Unavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection

    from bythebook.access import Caller, Key
    from bythebook.access.rate_limiter import Rates, Taken

_READER = re.compile(r"[0-9A-Fa-f]{32,128}")
_HOST = re.compile(r"(?!-)[a-z0-9_.-]+(?<![.-])|\[[0-9a-f:.]+\]")
_USUAL_PORTS = {"http": 80, "https": 443}
_DAY = SECONDS["day"]

NOT_ANSWERED = (InputError, NotFound, ContextOverflow, RateLimited, Unavailable)
"""How a question ends that was never put to the book: its site does not pay for it."""


def checked_origin(text: str) -> str:
    """The origin, if it is written as browsers send it. Raises InputError with the right spelling otherwise."""
    right = _spelled(text)
    if right is None:
        raise InputError(f"{text!r} is no origin. Use one such as https://example.org, without wildcards.")
    if right != text:
        raise InputError(f"{text!r} is not how browsers write the origin. Use {right!r}.")
    return right


def _spelled(text: str) -> str | None:
    """The origin of an address as browsers write it, or None when it has none."""
    try:
        parts = urlsplit(text.strip())
        host, port = (parts.hostname or "").encode("idna").decode().lower(), parts.port
    except ValueError:  # also what is no name in any alphabet
        return None
    if ":" in host:
        host = f"[{host}]"
    if parts.scheme not in _USUAL_PORTS or not _HOST.fullmatch(host) or "@" in parts.netloc:
        return None
    return f"{parts.scheme}://{host}" + (f":{port}" if port not in (None, _USUAL_PORTS[parts.scheme]) else "")


def reading(caller: Caller, reader: str | None) -> Caller:
    """The site's caller as one reader of it, by the random number that the reader's browser keeps.

    Without one, or with one that could be guessed, it is a reader who was never here and never comes back. The number
    is as good as a password to what the reader asked, so only its hash is used.
    """
    if reader is None or not _READER.fullmatch(reader):
        reader = secrets.token_hex(32)
    marked = hashlib.sha256(reader.lower().encode()).hexdigest()[:32]
    return replace(caller, user_id=f"site:{caller.key_id}:{marked}")


def _subject(key_id: str, day: datetime) -> str:
    return f"budget:{key_id}:{day:%Y-%m-%d}"


class Budgets:
    """How many questions each site has left today. Callers who are no readers of a site have no budget to spend."""

    def __init__(self, rates: Rates) -> None:
        self._rates = rates

    async def spend(self, caller: Caller) -> Taken | None:
        """Take one question from the day's budget. Raises RateLimited until midnight UTC when none is left."""
        if caller.budget is None:
            return None
        today = datetime.now(UTC)
        try:
            # Each day is a subject of its own, so that budgets start afresh at midnight and not at some first question.
            return await self._rates.take(_subject(caller.key_id, today), Limit(caller.budget, _DAY))
        except RateLimited as error:
            wait = _DAY - today.hour * 3600 - today.minute * 60 - today.second
            complaint = f"this site has asked its {caller.budget} questions of today. Ask again after midnight UTC."
            raise RateLimited(complaint, retry_after=wait) from error

    async def spent_today(self, sites: Collection[Key]) -> dict[str, int]:
        """How many questions each of these sites has asked today, by the id of its token."""
        today = datetime.now(UTC)
        taken = await self._rates.taken([_subject(site.id, today) for site in sites])
        # One above the budget is how a question that was refused is counted.
        return {site.id: min(taken.get(_subject(site.id, today), 0), site.budget or 0) for site in sites}

    async def refund(self, spent: Taken | None) -> None:
        """Give back what was spent on a question that was not answered."""
        if spent is not None:
            await self._rates.give_back(spent)

    @asynccontextmanager
    async def spending(self, caller: Caller) -> AsyncIterator[None]:
        """Spend one question on what happens inside. It is given back when that was shed or could not be asked.

        A reader who leaves has asked all the same: otherwise leaving early would make questions free.
        """
        spent = await self.spend(caller)
        try:
            yield
        except NOT_ANSWERED:
            await self.refund(spent)
            raise
