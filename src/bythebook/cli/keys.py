"""`bythebook keys`: who may ask over the network."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from bythebook.access import Scope
from bythebook.cli.console import bold, echo, print_json, run, say, settings
from bythebook.cli.options import DataDir, Json  # noqa: TC001 - typer reads them
from bythebook.errors import InputError
from bythebook.serialization import as_json

if TYPE_CHECKING:
    from bythebook.access import Key
    from bythebook.settings import Settings

app = typer.Typer(no_args_is_help=True)

_COLUMNS = ("id", "kind", "state", "scopes", "created", "expires", "today", "name", "origins")


@app.command()
def create(
    name: Annotated[str, typer.Option(help="What you will know it by.")] = "",
    scope: Annotated[
        str, typer.Option(help=f"What it may do, with commas between: {', '.join(Scope)}.")
    ] = "ask,search,feedback",
    site: Annotated[
        list[str] | None,
        typer.Option(
            help="Make a public token for pages of this origin, as https://example.org. May be repeated.",
            show_default=False,
        ),
    ] = None,
    budget: Annotated[
        int | None, typer.Option(help="How many questions a day the site may ask.", show_default=False)
    ] = None,
    expires: Annotated[int | None, typer.Option(help="After how many days it is refused.", show_default=False)] = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Make a key, or the token of a site. Its secret is printed now and never again."""
    chosen = settings(data_dir=data_dir, site_budget=budget)
    if budget is not None and not site:
        raise InputError("only the token of a site has a budget. Add --site ORIGIN, or leave --budget out.")
    key, secret = run(_create(chosen, name, _scopes(scope), sites=site or [], expires_at=_moment(expires)))
    if json:
        print_json(as_json(key) | {"secret": secret})
        return
    kind = f"The token of {' and '.join(sorted(key.origins))}" if key.origins else "The key"
    say(f"{kind} is shown this once. 'bythebook keys revoke {key.id}' ends it.")
    echo(secret)


async def _create(
    chosen: Settings, name: str, scopes: frozenset[Scope], *, sites: list[str], expires_at: datetime | None
) -> tuple[Key, str]:
    from bythebook.book import open_keyring

    async with open_keyring(chosen) as keyring:
        if not sites:
            return await keyring.create(name, scopes=scopes, expires_at=expires_at)
        budget = chosen.site_budget
        return await keyring.create_site(name, sites, budget=budget, scopes=scopes, expires_at=expires_at)


def _scopes(text: str) -> frozenset[Scope]:
    named = text.replace(",", " ").split()
    if unknown := [each for each in named if each not in set(Scope)]:
        raise InputError(f"there is no scope {unknown[0]!r}. Use some of {', '.join(Scope)}.")
    return frozenset(map(Scope, named))


def _moment(days: int | None) -> datetime | None:
    if days is None:
        return None
    if not 1 <= days <= 36500:
        raise InputError("--expires is a number of days, from 1 to 36500.")
    return datetime.now(UTC) + timedelta(days=days)


@app.command("list")
def list_keys(data_dir: DataDir = None, json: Json = False) -> None:
    """Show every key, without its secret, also expired and revoked ones, and what each site has asked today."""
    keys, spent = run(_list(settings(data_dir=data_dir)))
    if json:
        print_json({"open": not keys, "keys": [as_json(key) | {"spent_today": spent.get(key.id)} for key in keys]})
    elif not keys:
        say("There is no key, so anyone who reaches the server may ask. 'bythebook keys create' closes it.")
    else:
        _show([_COLUMNS, *(_row(key, spent.get(key.id)) for key in keys)])


async def _list(chosen: Settings) -> tuple[tuple[Key, ...], dict[str, int]]:
    from bythebook.book import open_keyring

    async with open_keyring(chosen) as keyring:
        return await keyring.list(), await keyring.spent_today()


def _row(key: Key, spent: int | None) -> tuple[str, ...]:
    return (
        key.id,
        "site" if key.origins else "key",
        key.state,
        ",".join(sorted(key.scopes)),
        f"{key.created_at:%Y-%m-%d}",
        f"{key.expires_at:%Y-%m-%d}" if key.expires_at else "never",
        "-" if spent is None else f"{spent} of {key.budget}",
        key.name or "-",
        " ".join(sorted(key.origins)),
    )


def _show(rows: list[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for number, row in enumerate(rows):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        echo(bold(line) if number == 0 else line)


@app.command()
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="As 'keys list' shows it.", show_default=False)],
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Refuse a key from now on, for good."""
    key = run(_revoke(settings(data_dir=data_dir), key_id))
    if json:
        print_json(key)
    else:
        echo(f"{key.id} is revoked.")


async def _revoke(chosen: Settings, key_id: str) -> Key:
    from bythebook.book import open_keyring

    async with open_keyring(chosen) as keyring:
        return await keyring.revoke(key_id)
