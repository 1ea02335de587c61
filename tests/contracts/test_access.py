"""What keys and rates promise, on SQLite and on a real PostgreSQL server."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from sqlalchemy import func, select, update

from bythebook.access import ANYONE, SITE_SCOPES, Caller, Limit, Scope
from bythebook.access.api_keys import Keyring
from bythebook.access.rate_limiter import Rates
from bythebook.access.site_tokens import Budgets, reading
from bythebook.database.engine import Database, open_database
from bythebook.database.schema import METADATA, keys, rates
from bythebook.errors import InputError, NotFound, ProviderError, RateLimited, Unavailable
from tests.support.rate_limit_process import passes, spawn

if TYPE_CHECKING:
    from sqlalchemy import Connection

T = TypeVar("T")

SITE = "https://docs.example"
THRICE = Limit(3, 3600)
READER = "0123456789abcdef" * 2


@pytest.fixture
def keyring(database: Database) -> Keyring:
    return Keyring(database)


@pytest.fixture
def counting(database: Database) -> Rates:
    return Rates(database)


async def test_a_key_opens_and_its_secret_is_kept_nowhere(keyring: Keyring, database: Database) -> None:
    key, secret = await keyring.create("laptop", scopes={Scope.SEARCH})
    assert await keyring.find(secret) == Caller(f"key:{key.id}", frozenset({Scope.SEARCH}), key.id)
    assert await keyring.list() == (key,)

    def everything(connection: Connection) -> str:
        return str([connection.execute(select(table)).all() for table in METADATA.sorted_tables])

    kept = await database.read(everything)
    assert key.id in kept
    assert secret.split("_", 2)[2] not in kept


async def test_secrets_are_long_and_never_the_same(keyring: Keyring) -> None:
    made = {(await keyring.create("same"))[1].split("_", 2)[2] for _ in range(5)}
    assert len(made) == 5
    assert {len(random) for random in made} == {43}, "256 bits in base 64"


def _other(letter: str) -> str:
    return "A" if letter != "A" else "B"


def _forged(secret: str) -> dict[str, str]:
    kind_and_id, random, digest = secret[:-43], secret[-43:], hashlib.sha256(secret.encode()).hexdigest()
    return {
        "nothing": "",
        "the last letter": secret[:-1] + _other(secret[-1]),
        "the first letter": kind_and_id + _other(random[0]) + random[1:],
        "cut short": secret[:-1],
        "too long": secret + "A",
        "a space": f" {secret}",
        "a line break": f"{secret}\n",
        "another case": secret.swapcase(),
        "the other kind": secret.replace("btb_", "btbsite_"),
        "only what is random": random,
        "another id": f"btb_{'0' * 12}_{random}",
        "what is stored": digest,
        "what is stored, with the id": kind_and_id + digest[:43],
        "NUL": f"{secret[:-1]}\0",
        "half a character": f"{secret[:-1]}\ud800",
        "SQL": "btb_' OR 1=1 --",
        "very long": "btb_" + "a" * 100_000,
    }


async def test_nothing_but_the_secret_opens(keyring: Keyring) -> None:
    _, secret = await keyring.create("")
    opened = {name: await keyring.admit(forged) for name, forged in _forged(secret).items()}
    assert opened == dict.fromkeys(_forged(secret))


async def test_a_server_is_open_until_there_is_a_key_and_never_again(keyring: Keyring, database: Database) -> None:
    worker = Keyring(database)
    assert await worker.admit("") == ANYONE
    assert await worker.admit("sk-whatever-a-client-sends") == ANYONE
    key, secret = await keyring.create("first")
    assert await worker.admit("") is None
    assert (await worker.admit(secret)) is not None
    await keyring.revoke(key.id)
    assert [await each.admit(secret) for each in (keyring, worker, Keyring(database))] == [None, None, None]
    assert await Keyring(database).admit("") is None


async def test_a_site_also_closes_the_server(keyring: Keyring) -> None:
    await keyring.create_site("docs", [SITE], budget=10)
    assert await keyring.admit("") is None


async def test_a_revoked_key_is_refused_at_once_and_stays_on_the_list(keyring: Keyring) -> None:
    key, secret = await keyring.create("lost")
    other, others = await keyring.create("kept")
    revoked = await keyring.revoke(key.id)
    assert revoked.state == "revoked"
    assert await keyring.find(secret) is None
    assert await keyring.find(others) is not None
    assert await keyring.revoke(key.id) == revoked, "the moment it was first revoked"
    assert await keyring.list() == (revoked, other)


async def test_no_other_key_is_revoked_by_mistake(keyring: Keyring) -> None:
    _, secret = await keyring.create("")
    for key_id in ("", "000000000000", "' OR 1=1", "a\0b", "\ud800"):
        with pytest.raises(NotFound, match="keys list"):
            await keyring.revoke(key_id)
    assert await keyring.find(secret) is not None


async def test_a_key_is_good_until_it_expires(keyring: Keyring) -> None:
    now = datetime.now(UTC)
    _, fresh = await keyring.create("", expires_at=now + timedelta(days=1))
    expired, stale = await keyring.create("", expires_at=now)
    assert await keyring.find(fresh) is not None
    assert await keyring.find(stale) is None
    assert expired.state == "expired"


async def test_the_token_of_a_site_brings_readers_who_may_do_little(keyring: Keyring) -> None:
    site, token = await keyring.create_site("docs", [SITE, "http://localhost:3000"], budget=7)
    caller = await keyring.find(token)
    assert caller is not None
    assert caller.site
    assert (caller.scopes, caller.budget, caller.key_id) == (SITE_SCOPES, 7, site.id)
    assert caller.origins == {SITE, "http://localhost:3000"}
    assert await keyring.list() == (site,)


async def test_readers_of_a_site_who_do_not_say_who_they_are_share_nothing(keyring: Keyring) -> None:
    site, token = await keyring.create_site("docs", [SITE], budget=7)
    found = [await keyring.find(token) for _ in range(3)]
    readers = {caller.user_id for caller in found if caller}
    assert len(readers) == 3
    assert all(reader.startswith(f"site:{site.id}:") for reader in readers)


async def test_no_key_can_be_made_of_a_sites_token(keyring: Keyring) -> None:
    site, token = await keyring.create_site("docs", [SITE], budget=7)
    derived = [token.replace("btbsite_", "btb_"), f"btb_{token}", f"btb_{site.id}_{READER}{'A' * 11}"]
    assert [await keyring.find(each) for each in derived] == [None, None, None]


async def test_a_site_gets_no_further_even_where_its_row_says_so(keyring: Keyring, database: Database) -> None:
    _, token = await keyring.create_site("docs", [SITE], budget=7)
    more = update(keys).values(scopes=" ".join(Scope), budget=None)
    await database.write(lambda connection: connection.execute(more))
    caller = await keyring.find(token)
    assert caller is not None
    assert (caller.scopes, caller.budget) == (SITE_SCOPES, 0)
    await database.write(lambda connection: connection.execute(update(keys).values(origins="")))
    assert await keyring.find(token) is None


async def test_the_origins_are_those_of_sites_that_are_still_good(keyring: Keyring) -> None:
    assert await keyring.origins() == frozenset()
    await keyring.create("a key has none")
    await keyring.create_site("one", [SITE], budget=1)
    gone, _ = await keyring.create_site("two", ["https://gone.example"], budget=1)
    await keyring.create_site("three", ["https://old.example"], budget=1, expires_at=datetime.now(UTC))
    await keyring.revoke(gone.id)
    assert await keyring.origins() == {SITE}


WRONG: dict[str, dict[str, Any]] = {
    "its scopes are among": {"scopes": {Scope.ASK, Scope.ADMIN}},
    "is public": {"scopes": ()},
    "needs the site's origin": {"origins": []},
    "no origin": {"origins": ["*"]},
    "at least 1": {"budget": 0},
    "printable": {"name": "\x1b[2J"},
    "at most 100": {"name": "n" * 101},
    "no zone": {"expires_at": datetime(2030, 1, 1)},  # noqa: DTZ001 - that is the point
}


async def test_what_no_site_can_have(keyring: Keyring) -> None:
    for complaint, wrong in WRONG.items():
        given: dict[str, Any] = {"name": "docs", "origins": [SITE], "budget": 5} | wrong
        with pytest.raises(InputError, match=complaint):
            await keyring.create_site(given.pop("name"), given.pop("origins"), **given)
    assert await keyring.is_open()


async def test_a_key_that_can_do_nothing_is_not_made(keyring: Keyring) -> None:
    with pytest.raises(InputError, match="needs a scope"):
        await keyring.create("", scopes=())


async def refused(rates: Rates, subject: str, limit: Limit) -> float:
    with pytest.raises(RateLimited) as caught:
        await rates.hit(subject, limit)
    assert caught.value.retry_after is not None
    return caught.value.retry_after


async def test_the_limit_passes_and_not_one_more(counting: Rates, database: Database) -> None:
    for _ in range(3):
        await counting.hit("a", THRICE)
    wait = await refused(counting, "a", THRICE)
    assert 3000 <= wait <= 3600
    assert wait == int(wait)
    await refused(counting, "a", THRICE)
    await refused(Rates(database), "a", THRICE)
    await counting.hit("b", THRICE)


async def test_counting_starts_afresh_when_the_time_is_over(counting: Rates, database: Database) -> None:
    for _ in range(3):
        await counting.hit("a", THRICE)
    await refused(Rates(database), "a", THRICE)
    await _turn_the_clock(database, 3601)
    for _ in range(3):
        await counting.hit("a", THRICE)
    await refused(counting, "a", THRICE)


async def _turn_the_clock(database: Database, seconds: float) -> None:
    """Let every window end so much earlier, which is the same as to wait."""
    earlier = update(rates).values(until=rates.c.until - seconds)
    await database.write(lambda connection: connection.execute(earlier))


class Watched:
    """A database that counts what is asked of it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.asked = 0

    async def read(self, work: Callable[[Connection], T]) -> T:
        self.asked += 1
        return await self._database.read(work)

    async def write(self, work: Callable[[Connection], T]) -> T:
        self.asked += 1
        return await self._database.write(work)

    async def close(self) -> None: ...


async def test_a_flood_costs_the_database_nothing(database: Database) -> None:
    watched = Watched(database)
    counting = Rates(watched)
    for _ in range(3):
        await counting.hit("a", THRICE)
    for _ in range(100):
        await refused(counting, "a", THRICE)
    assert watched.asked == 4, "one for each that passed, and one for the first that did not"


async def test_what_is_over_is_cleaned_away(counting: Rates, database: Database) -> None:
    for number in range(5):
        await counting.hit(f"address:192.0.2.{number}", THRICE)
    await _turn_the_clock(database, 3601)
    await Rates(database, clean_every=0).hit("key:a", THRICE)
    left = await database.read(lambda connection: connection.execute(select(rates.c.subject)).scalars().all())
    assert left == ["key:a"]


async def test_what_was_given_back_can_be_taken_again(counting: Rates) -> None:
    taken = [await counting.take("a", THRICE) for _ in range(3)]
    for _ in range(4):
        with pytest.raises(RateLimited):
            await counting.take("a", THRICE)
    await counting.give_back(taken[0])
    again = await counting.take("a", THRICE)
    assert again == replace(taken[0], until=again.until)
    with pytest.raises(RateLimited):
        await counting.take("a", THRICE)


async def test_what_an_earlier_window_took_is_not_given_back_to_this_one(counting: Rates, database: Database) -> None:
    old = await counting.take("a", THRICE)
    await _turn_the_clock(database, 3601)
    await counting.take("a", THRICE)
    await counting.give_back(old)
    assert await database.read(lambda connection: connection.scalar(select(rates.c.taken))) == 1


async def test_many_at_once_pass_no_limit(counting: Rates) -> None:
    assert await passes(counting, 60, 7) == 7


async def test_two_processes_at_once_pass_no_limit(url: str) -> None:
    # SQLite's users wait for each other; on a busy machine nobody shall give up.
    patient = f"{url}?timeout=60" if url.startswith("sqlite") else url
    async with open_database(patient) as database:
        with spawn(patient, 40, 30) as other:
            assert other.stdout is not None
            assert other.stdin is not None
            assert other.stdout.readline() == "open\n"
            other.stdin.write("go\n")
            other.stdin.flush()
            passed = [await passes(Rates(database), 40, 30), int(other.communicate()[0])]
    assert sum(passed) == 30, f"they let {passed} through"


async def _site(keyring: Keyring, budget: int) -> Caller:
    _, token = await keyring.create_site("docs", [SITE], budget=budget)
    caller = await keyring.find(token)
    assert caller is not None
    return caller


async def test_a_site_asks_so_many_questions_a_day_whoever_reads_it(keyring: Keyring, counting: Rates) -> None:
    site, other = await _site(keyring, 2), await _site(keyring, 2)
    budgets = Budgets(counting)
    await budgets.spend(reading(site, None))
    await budgets.spend(reading(site, READER))
    with pytest.raises(RateLimited, match="its 2 questions of today") as caught:
        await budgets.spend(reading(site, READER))
    assert 1 <= (caught.value.retry_after or 0) <= 86400
    await budgets.spend(other)


async def test_those_without_a_budget_spend_none(keyring: Keyring, counting: Rates, database: Database) -> None:
    _, secret = await keyring.create("")
    for caller in (ANYONE, await keyring.find(secret)):
        assert caller is not None
        assert await Budgets(counting).spend(caller) is None
        await Budgets(counting).refund(None)
    assert await database.read(lambda connection: connection.scalar(select(func.count()).select_from(rates))) == 0


@pytest.mark.parametrize(
    ("error", "left"),
    [
        pytest.param(InputError("too long"), 1, id="a question that cannot be asked is free"),
        pytest.param(Unavailable("all places are taken"), 1, id="a question that was shed is free"),
        pytest.param(NotFound("no such session"), 1, id="a question to nobody's session is free"),
        pytest.param(ProviderError("cut"), 0, id="a question the model was asked is not"),
        pytest.param(GeneratorExit(), 0, id="a question whose reader left is not"),
    ],
)
async def test_what_a_question_costs_its_site(
    keyring: Keyring, counting: Rates, error: BaseException, left: int
) -> None:
    site, budgets = await _site(keyring, 1), Budgets(counting)
    with pytest.raises(type(error)):
        async with budgets.spending(site):
            raise error
    for _ in range(left):
        await budgets.spend(site)
    with pytest.raises(RateLimited):
        await budgets.spend(site)
