"""`bythebook gaps`: questions of readers that the book does not answer."""

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from bythebook.cli.console import DataDir, Json, echo, load_settings, print_json, run_with_book
from bythebook.errors import InputError

_RELATIVE = re.compile(r"(\d{1,4})([hdw])")
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def gaps(
    since: Annotated[
        str,
        typer.Option(help="Only questions since then: 7d, 12h, 2w, or a date such as 2026-05-31."),
    ] = "",
    limit: Annotated[int, typer.Option(help="The maximum number of topics.", min=1, max=1000)] = 20,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Show unanswered questions of readers by topic, and where the answers would belong."""
    from bythebook.feedback.gaps import format_markdown, format_text

    moment = parse_moment(since, now=datetime.now(UTC))
    report = run_with_book(load_settings(data_dir=data_dir), lambda book: book.gaps(since=moment, limit=limit))
    if json:
        print_json(report)
    else:
        echo(format_markdown(report) if markdown else format_text(report))


def parse_moment(text: str, *, now: datetime) -> datetime:
    """Parse a period such as 7d, or a date. Without a time zone it is UTC; an empty text is the epoch."""
    if not text:
        return _EPOCH
    if ago := _RELATIVE.fullmatch(text):
        return now - int(ago[1]) * _UNITS[ago[2]]
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"{text!r} is not a time. Use 7d, 12h or 2w, or a date such as 2026-05-31.") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
