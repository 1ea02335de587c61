"""Trust: when a page need not be asked for, because the site says that it has not changed.

A sitemap's `lastmod` is a statement, not a proof: some generators write the day of the build, some never change it.
It spares a request only where it could show a change, and only as long as the site has never been caught out:

- it is the same as when the page was last asked for, and lies before that time, by a day if it is no more than a date;
- the page was asked for within the last week;
- a few of the pages that would be spared, those not asked for the longest, are asked for all the same. When one of
  them has changed although its `lastmod` has not, the site's `lastmod` is never believed again.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bythebook.pages.site.archive import Archive, Asked

AT_LEAST_EVERY = timedelta(days=7)
"""How long a page may be spared."""
TRIED = 5
"""How many of the spared pages are asked for in every run."""

_CAUGHT = "lastmod is not believed"


def moment(lastmod: str) -> datetime | None:
    """The latest moment a `lastmod` can mean; None where it is no time."""
    try:
        said = datetime.fromisoformat(lastmod)
    except ValueError:
        return None
    if "T" not in lastmod.upper() and " " not in lastmod:
        # A day begins and ends at other times elsewhere: nobody knows in which time zone it was written.
        return said.replace(tzinfo=UTC) + timedelta(days=1, hours=14)
    return said if said.tzinfo else said.replace(tzinfo=UTC) + timedelta(hours=14)


def says_unchanged(asked: Asked | None, lastmod: str) -> bool:
    """Whether the sitemap states that a page is as it was when it was last asked for."""
    said = moment(lastmod)
    return bool(asked and said and asked.lastmod == lastmod and said.timestamp() < asked.at)


def is_believed(archive: Archive) -> bool:
    return not archive.fact(_CAUGHT)


def catch_out(archive: Archive) -> None:
    archive.state(_CAUGHT, "yes")


def is_recent(asked: Asked, now: float) -> bool:
    return now - asked.at < AT_LEAST_EVERY.total_seconds()
