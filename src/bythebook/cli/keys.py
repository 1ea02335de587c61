"""`bythebook keys`: API keys and site tokens."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from bythebook.access import ApiKey, Scope
from bythebook.cli.console import DataDir, Json, echo, load_settings, print_json, print_table, run, say
from bythebook.errors import InputError
from bythebook.serialization import to_json
from bythebook.settings import Settings

app = typer.Typer(no_args_is_help=True)

_SCRIPT = '<script src="https://YOUR-SERVER/widget.js" data-site="{}" async></script>'
_COLUMNS = ("id", "kind", "state", "scopes", "created", "expires", "today", "name", "origins")


@app.command()
def create(
    name: Annotated[str, typer.Option(help="A name for your records.")] = "",
    scope: Annotated[
        str, typer.Option(help=f"Its scopes, separated by commas: {', '.join(Scope)}.")
    ] = "ask,search,feedback",
    site: Annotated[
        list[str] | None,
        typer.Option(
            help="Create a public token for pages of this origin, such as https://example.org. May be repeated.",
        ),
    ] = None,
    budget: Annotated[int | None, typer.Option(help="The daily quota of questions of the site.")] = None,
    expires: Annotated[int | None, typer.Option(help="The number of days until it expires.")] = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Create an API key or a site token. Its secret is printed only once."""
    settings = load_settings(data_dir=data_dir, site_budget=budget)
    if budget is not None and not site:
        raise InputError("only a site token has a budget. Add --site ORIGIN or remove --budget.")
    key, secret = run(
        _create(settings, name, _parse_scopes(scope), sites=site or [], expires_at=_parse_expiry(expires))
    )
    if json:
        print_json(to_json(key) | {"secret": secret})
        return
    kind = f"The token of {' and '.join(sorted(key.origins))}" if key.origins else "The key"
    say(f"{kind} is shown only once. 'bythebook keys revoke {key.id}' revokes it.")
    if key.origins:
        say(f"In the pages, with the address of your server:\n  {_SCRIPT.format(secret)}")
        say("The server's own chat page needs a token for its own origin from now on: see the setting page_token.")
    echo(secret)


async def _create(
    settings: Settings, name: str, scopes: frozenset[Scope], *, sites: list[str], expires_at: datetime | None
) -> tuple[ApiKey, str]:
    from bythebook.book import open_key_store

    async with open_key_store(settings) as key_store:
        if not sites:
            return await key_store.create(name, scopes=scopes, expires_at=expires_at)
        budget = settings.site_budget
        return await key_store.create_site(name, sites, budget=budget, scopes=scopes, expires_at=expires_at)


def _parse_scopes(text: str) -> frozenset[Scope]:
    named = text.replace(",", " ").split()
    if unknown := [each for each in named if each not in set(Scope)]:
        raise InputError(f"there is no scope {unknown[0]!r}. Use some of {', '.join(Scope)}.")
    return frozenset(map(Scope, named))


def _parse_expiry(days: int | None) -> datetime | None:
    if days is None:
        return None
    if not 1 <= days <= 36500:
        raise InputError("--expires is a number of days, from 1 to 36500.")
    return datetime.now(UTC) + timedelta(days=days)


@app.command("list")
def list_keys(data_dir: DataDir = None, json: Json = False) -> None:
    """List all keys without their secrets, including expired and revoked ones, and today's usage of each site."""
    keys, usage = run(_list(load_settings(data_dir=data_dir)))
    if json:
        print_json({"open": not keys, "keys": [to_json(key) | {"spent_today": usage.get(key.id)} for key in keys]})
    elif not keys:
        say("There is no key, so anyone who can reach the server has access. 'bythebook keys create' restricts it.")
    else:
        print_table([_COLUMNS, *(_row(key, usage.get(key.id)) for key in keys)])


async def _list(settings: Settings) -> tuple[tuple[ApiKey, ...], dict[str, int]]:
    from bythebook.book import open_key_store

    async with open_key_store(settings) as key_store:
        return await key_store.list(), await key_store.usage_today()


def _row(key: ApiKey, usage: int | None) -> tuple[str, ...]:
    return (
        key.id,
        "site" if key.origins else "key",
        key.state,
        ",".join(sorted(key.scopes)),
        f"{key.created_at:%Y-%m-%d}",
        f"{key.expires_at:%Y-%m-%d}" if key.expires_at else "never",
        "-" if usage is None else f"{usage} of {key.budget}",
        key.name or "-",
        " ".join(sorted(key.origins)),
    )


@app.command()
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="As 'keys list' shows it.")],
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Revoke a key permanently."""
    key = run(_revoke(load_settings(data_dir=data_dir), key_id))
    if json:
        print_json(key)
    else:
        echo(f"{key.id} is revoked.")


async def _revoke(settings: Settings, key_id: str) -> ApiKey:
    from bythebook.book import open_key_store

    async with open_key_store(settings) as key_store:
        return await key_store.revoke(key_id)
