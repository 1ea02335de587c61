"""robots.txt: what the owner of a site lets programs read, and how gently."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from protego import Protego

from bythebook.errors import Unavailable
from bythebook.sources import Unreadable
from bythebook.sources.website.urls import Location, locate

if TYPE_CHECKING:
    from bythebook.sources.website.http_client import Client

AGENT = "bythebook"
LARGEST = 500_000
LONGEST_DELAY = 120.0
"""Seconds between requests beyond which a `Crawl-delay` is a misunderstanding."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What one robots.txt says to us."""

    text: Protego

    def allow(self, location: Location) -> bool:
        return bool(self.text.can_fetch(str(location), AGENT))

    @property
    def delay(self) -> float:
        """The seconds asked for between two requests."""
        asked = self.text.crawl_delay(AGENT)
        rate = self.text.request_rate(AGENT)
        slowest = max(asked or 0.0, rate.seconds / rate.requests if rate and rate.requests else 0.0)
        return float(min(slowest, LONGEST_DELAY))

    @property
    def sitemaps(self) -> list[str]:
        return list(self.text.sitemaps)


async def ask_rules(client: Client, site: Location) -> Rules:
    """The rules of a site. Without a file everything is allowed; one that cannot be had forbids everything.

    That is RFC 9309: a server that fails may just be unable to say what it does not want.
    """
    address = locate("/robots.txt", base=site)
    try:
        answer = await client.get(address, most=LARGEST)
    except Unreadable as exc:
        raise Unavailable(
            f"{address} cannot be read ({exc}), and so nothing of the site is. Nothing was changed."
        ) from exc
    text = answer.body.decode("utf-8-sig", "replace") if answer.status == 200 else ""
    # A site that answers everything with a page has no rules, whatever the page says.
    if answer.media_type in ("text/html", "application/xhtml+xml"):
        text = ""
    return Rules(Protego.parse(text))
