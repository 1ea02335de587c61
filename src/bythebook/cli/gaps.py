"""`bythebook gaps`: what readers asked and the book does not answer."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from bythebook.cli.console import echo, print_json, run, say, settings
from bythebook.cli.options import DataDir, Json  # noqa: TC001 - typer reads them
from bythebook.errors import InputError

if TYPE_CHECKING:
    from bythebook.feedback import GapReport
    from bythebook.settings import Settings

_AGO = re.compile(r"(\d{1,4})([hdw])")
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


def gaps(
    since: Annotated[
        str, typer.Option(help="Only questions since then: 7d, 12h, 2w, or a date as 2026-05-31.", show_default=False)
    ] = "",
    limit: Annotated[int, typer.Option(help="How many topics to show.", min=1, max=1000)] = 20,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Show what readers asked and the book does not answer, by topic, and where the answer would belong."""
    from bythebook.feedback.gap_report import as_markdown, as_text

    report = run(_gaps(settings(data_dir=data_dir), read_moment(since, now=datetime.now(UTC)), limit))
    if json:
        print_json(report)
    else:
        echo(as_markdown(report) if markdown else as_text(report))


async def _gaps(chosen: Settings, since: datetime, limit: int) -> GapReport:
    from bythebook.book import Book

    async with Book.open(chosen, say=say) as book:
        return await book.gaps(since=since, limit=limit)


def read_moment(text: str, *, now: datetime) -> datetime:
    """The moment a person means: so long ago, or a date. Without a zone it is UTC; without anything it is long ago."""
    if not text:
        return _LONG_AGO
    if ago := _AGO.fullmatch(text):
        return now - int(ago[1]) * _UNITS[ago[2]]
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"{text!r} is no time. Use 7d, 12h or 2w, or a date as 2026-05-31.") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
