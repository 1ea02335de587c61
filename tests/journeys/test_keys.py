"""`bythebook keys`: create, list and revoke."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bythebook.access import Caller, Scope
from bythebook.access.api_keys import ApiKeyStore
from bythebook.access.rate_limiter import RateLimiter
from bythebook.access.site_tokens import SiteQuotas
from bythebook.book import open_key_store
from bythebook.cli import main
from bythebook.database.engine import open_database
from bythebook.errors import RateLimited
from bythebook.settings import PREFIX, Settings

Said = tuple[int, str, str]
Keys = Callable[..., Said]


@pytest.fixture
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Keys:
    """Runs `bythebook keys` in an empty folder. Returns the exit code and both outputs."""
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith(PREFIX):
            monkeypatch.delenv(name)

    def run(*arguments: str) -> Said:
        monkeypatch.setattr(sys, "argv", ["bythebook", "keys", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        said = capsys.readouterr()
        return int(left.value.code or 0), said.out, said.err

    return run


def find(secret: str) -> Caller | None:
    async def found() -> Caller | None:
        async with open_key_store(Settings.load()) as key_store:
            return await key_store.find(secret)

    return asyncio.run(found())


def test_the_lifecycle_of_a_key(keys: Keys) -> None:
    code, out, err = keys("list")
    assert (code, out) == (0, "")
    assert "no key" in err

    code, out, err = keys("create", "--name", "laptop", "--scope", "ask,search", "--expires", "30")
    assert code == 0
    secret = out.removesuffix("\n")
    caller = find(secret)
    assert caller is not None
    assert caller.scopes == {Scope.ASK, Scope.SEARCH}
    assert "shown only once" in err
    assert secret not in err

    code, out, _ = keys("list")
    assert code == 0
    assert caller.key_id in out
    assert "laptop" in out
    assert secret.split("_", 2)[2] not in out

    assert keys("revoke", caller.key_id)[:2] == (0, f"{caller.key_id} is revoked.\n")
    assert find(secret) is None
    assert "revoked" in keys("list")[1]


def test_the_lifecycle_of_a_key_in_json(keys: Keys) -> None:
    assert json.loads(keys("list", "--json")[1]) == {"open": True, "keys": []}
    made = json.loads(keys("create", "--site", "https://docs.example", "--budget", "7", "--json")[1])
    secret = made.pop("secret")
    assert secret.startswith("btbsite_")
    assert (made["origins"], made["budget"], made["state"]) == (["https://docs.example"], 7, "active")
    assert json.loads(keys("list", "--json")[1]) == {"open": False, "keys": [made | {"spent_today": 0}]}
    revoked = json.loads(keys("revoke", made["id"], "--json")[1])
    assert revoked == made | {"state": "revoked", "revoked_at": revoked["revoked_at"]}


def test_the_list_shows_the_usage_of_a_site_today(keys: Keys) -> None:
    keys("create", "--name", "laptop")
    token = keys("create", "--site", "https://docs.example", "--budget", "2")[1].removesuffix("\n")

    async def ask_thrice() -> None:
        async with open_database(Settings.load().database_address) as database:
            caller, quotas = await ApiKeyStore(database).find(token), SiteQuotas(RateLimiter(database))
            assert caller is not None
            for _ in range(2):
                await quotas.charge(caller)
            with pytest.raises(RateLimited):
                await quotas.charge(caller)

    asyncio.run(ask_thrice())
    listed = json.loads(keys("list", "--json")[1])["keys"]
    assert [key["spent_today"] for key in listed] == [None, 2]
    assert "2 of 2" in keys("list")[1]


def test_the_budget_of_a_site_is_a_setting(keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BYTHEBOOK_SITE_BUDGET", "33")
    assert json.loads(keys("create", "--site", "https://docs.example", "--json")[1])["budget"] == 33


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        pytest.param(["create", "--scope", "ask,everything"], 2, "Use some of ask, search", id="no such scope"),
        pytest.param(["create", "--scope", ""], 2, "needs a scope", id="no scope"),
        pytest.param(["create", "--budget", "5"], 2, "Add --site", id="a budget without a site"),
        pytest.param(["create", "--site", "https://Docs.example/"], 2, "Use 'https://docs.example'", id="a spelling"),
        pytest.param(["create", "--site", "https://docs.example", "--scope", "admin"], 2, "public", id="too much"),
        pytest.param(["create", "--expires", "0"], 2, "from 1 to", id="expired already"),
        pytest.param(["revoke", "nobody"], 1, "'bythebook keys list'", id="no such key"),
    ],
)
def test_invalid_arguments_are_errors(keys: Keys, arguments: list[str], code: int, complaint: str) -> None:
    assert keys(*arguments)[0] == code
    exited, out, err = keys(*arguments, "--json")
    assert exited == code
    assert complaint in err
    assert json.loads(out)["message"]
    assert json.loads(keys("list", "--json")[1])["open"], "no key was made"


def test_a_server_that_required_keys_requires_them_without_its_database(keys: Keys, tmp_path: Path) -> None:
    async def is_open(settings: Settings) -> bool:
        async with open_key_store(settings) as key_store:
            return await key_store.is_open()

    assert asyncio.run(is_open(Settings.load()))
    assert not asyncio.run(is_open(Settings.load({"require_keys": True})))
    keys("create")
    for file in (tmp_path / ".bythebook").glob("conversations.db*"):
        assert file.stat().st_mode & 0o077 == 0
        file.unlink()
    assert not asyncio.run(is_open(Settings.load()))


def test_a_book_with_keys_from_an_older_version_remembers_them(keys: Keys, tmp_path: Path) -> None:
    keys("create")
    (tmp_path / ".bythebook" / "keys-required").unlink()

    async def is_open() -> bool:
        async with open_key_store(Settings.load()) as key_store:
            return await key_store.is_open()

    assert not asyncio.run(is_open())
    (tmp_path / ".bythebook" / "conversations.db").unlink()
    assert not asyncio.run(is_open())
