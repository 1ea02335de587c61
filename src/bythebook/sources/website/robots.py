"""robots.txt (RFC 9309): which pages may be read, and how often."""

from dataclasses import dataclass

from protego import Protego

from bythebook.errors import Unavailable
from bythebook.sources import Unreadable
from bythebook.sources.website.http_client import SiteClient
from bythebook.sources.website.urls import WebUrl, parse_url

ROBOT_NAME = "bythebook"
MAX_BYTES = 500_000
MAX_DELAY = 120.0
"""The maximum `Crawl-delay` that is obeyed. Larger values are mistakes."""


@dataclass(frozen=True, slots=True)
class RobotsRules:
    """The rules of one robots.txt for this crawler."""

    protego: Protego

    def is_allowed(self, url: WebUrl) -> bool:
        return bool(self.protego.can_fetch(str(url), ROBOT_NAME))

    @property
    def delay(self) -> float:
        """The minimum seconds between two requests."""
        delay = self.protego.crawl_delay(ROBOT_NAME)
        rate = self.protego.request_rate(ROBOT_NAME)
        slowest = max(delay or 0.0, rate.seconds / rate.requests if rate and rate.requests else 0.0)
        return float(min(slowest, MAX_DELAY))

    @property
    def sitemaps(self) -> list[str]:
        return list(self.protego.sitemaps)


async def fetch_robots(client: SiteClient, site: WebUrl) -> RobotsRules:
    """The rules of a site. Without a file everything is allowed; a file that cannot be fetched forbids everything.

    RFC 9309 demands this: a server that fails cannot say what it does not allow.
    """
    address = parse_url("/robots.txt", base=site)
    try:
        response = await client.get(address, max_bytes=MAX_BYTES)
    except Unreadable as exc:
        raise Unavailable(
            f"{address} cannot be read ({exc}), so no page of the site may be read. Nothing was changed."
        ) from exc
    text = response.body.decode("utf-8-sig", "replace") if response.status == 200 else ""
    # A site that serves an HTML page for every URL has no robots.txt.
    if response.media_type in ("text/html", "application/xhtml+xml"):
        text = ""
    return RobotsRules(Protego.parse(text))
