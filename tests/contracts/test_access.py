"""What keys and rates promise, on SQLite and on a real PostgreSQL server."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from sqlalchemy import func, select, update

from bythebook.access import ANONYMOUS, SITE_SCOPES, Caller, RateLimit, Scope
from bythebook.access.api_keys import ApiKeyStore
from bythebook.access.rate_limiter import RateLimiter
from bythebook.access.site_tokens import SiteQuotas, identify_reader
from bythebook.database.engine import Database, open_database
from bythebook.database.schema import METADATA, keys, rates
from bythebook.errors import InputError, NotFound, ProviderError, RateLimited, Unavailable
from bythebook.server.streams import AnswerStream, StreamKey, run_question
from tests.support.rate_limit_process import passes, spawn

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from bythebook.answers import Event

T = TypeVar("T")

SITE = "https://docs.example"
THRICE = RateLimit(3, 3600)
READER = "0123456789abcdef" * 2


@pytest.fixture
def key_store(database: Database) -> ApiKeyStore:
    return ApiKeyStore(database)


@pytest.fixture
def counting(database: Database) -> RateLimiter:
    return RateLimiter(database)


async def test_a_key_authenticates_and_its_secret_is_not_stored(key_store: ApiKeyStore, database: Database) -> None:
    key, secret = await key_store.create("laptop", scopes={Scope.SEARCH})
    assert await key_store.find(secret) == Caller(f"key:{key.id}", frozenset({Scope.SEARCH}), key.id)
    assert await key_store.list() == (key,)

    def everything(connection: Connection) -> str:
        return str([connection.execute(select(table)).all() for table in METADATA.sorted_tables])

    kept = await database.read(everything)
    assert key.id in kept
    assert secret.split("_", 2)[2] not in kept


async def test_secrets_are_long_and_unique(key_store: ApiKeyStore) -> None:
    made = {(await key_store.create("same"))[1].split("_", 2)[2] for _ in range(5)}
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


async def test_only_the_exact_secret_authenticates(key_store: ApiKeyStore) -> None:
    _, secret = await key_store.create("")
    opened = {name: await key_store.authenticate(forged) for name, forged in _forged(secret).items()}
    assert opened == dict.fromkeys(_forged(secret))


async def test_a_server_is_open_only_until_the_first_key(key_store: ApiKeyStore, database: Database) -> None:
    worker = ApiKeyStore(database)
    assert await worker.authenticate("") == ANONYMOUS
    assert await worker.authenticate("sk-whatever-a-client-sends") == ANONYMOUS
    key, secret = await key_store.create("first")
    assert await worker.authenticate("") is None
    assert (await worker.authenticate(secret)) is not None
    await key_store.revoke(key.id)
    assert [await each.authenticate(secret) for each in (key_store, worker, ApiKeyStore(database))] == [
        None,
        None,
        None,
    ]
    assert await ApiKeyStore(database).authenticate("") is None


async def test_a_site_token_also_closes_the_server(key_store: ApiKeyStore) -> None:
    await key_store.create_site("docs", [SITE], budget=10)
    assert await key_store.authenticate("") is None


async def test_a_revoked_key_is_rejected_and_stays_listed(key_store: ApiKeyStore) -> None:
    key, secret = await key_store.create("lost")
    other, others = await key_store.create("kept")
    revoked = await key_store.revoke(key.id)
    assert revoked.state == "revoked"
    assert await key_store.find(secret) is None
    assert await key_store.find(others) is not None
    assert await key_store.revoke(key.id) == revoked, "the moment it was first revoked"
    assert await key_store.list() == (revoked, other)


async def test_an_unknown_id_revokes_no_key(key_store: ApiKeyStore) -> None:
    _, secret = await key_store.create("")
    for key_id in ("", "000000000000", "' OR 1=1", "a\0b", "\ud800"):
        with pytest.raises(NotFound, match="keys list"):
            await key_store.revoke(key_id)
    assert await key_store.find(secret) is not None


async def test_a_key_is_valid_until_it_expires(key_store: ApiKeyStore) -> None:
    now = datetime.now(UTC)
    _, fresh = await key_store.create("", expires_at=now + timedelta(days=1))
    expired, stale = await key_store.create("", expires_at=now)
    assert await key_store.find(fresh) is not None
    assert await key_store.find(stale) is None
    assert expired.state == "expired"


async def test_a_site_token_has_limited_scopes(key_store: ApiKeyStore) -> None:
    site, token = await key_store.create_site("docs", [SITE, "http://localhost:3000"], budget=7)
    caller = await key_store.find(token)
    assert caller is not None
    assert caller.is_site_reader
    assert (caller.scopes, caller.budget, caller.key_id) == (SITE_SCOPES, 7, site.id)
    assert caller.origins == {SITE, "http://localhost:3000"}
    assert await key_store.list() == (site,)


async def test_unidentified_readers_of_a_site_have_separate_identities(key_store: ApiKeyStore) -> None:
    site, token = await key_store.create_site("docs", [SITE], budget=7)
    found = [await key_store.find(token) for _ in range(3)]
    readers = {caller.user_id for caller in found if caller}
    assert len(readers) == 3
    assert all(reader.startswith(f"site:{site.id}:") for reader in readers)


async def test_a_site_token_cannot_be_turned_into_a_key(key_store: ApiKeyStore) -> None:
    site, token = await key_store.create_site("docs", [SITE], budget=7)
    derived = [token.replace("btbsite_", "btb_"), f"btb_{token}", f"btb_{site.id}_{READER}{'A' * 11}"]
    assert [await key_store.find(each) for each in derived] == [None, None, None]


async def test_a_site_token_is_limited_even_if_its_row_has_more_scopes(
    key_store: ApiKeyStore, database: Database
) -> None:
    _, token = await key_store.create_site("docs", [SITE], budget=7)
    more = update(keys).values(scopes=" ".join(Scope), budget=None)
    await database.write(lambda connection: connection.execute(more))
    caller = await key_store.find(token)
    assert caller is not None
    assert (caller.scopes, caller.budget) == (SITE_SCOPES, 0)
    await database.write(lambda connection: connection.execute(update(keys).values(origins="")))
    assert await key_store.find(token) is None


async def test_origins_lists_active_site_tokens_only(key_store: ApiKeyStore) -> None:
    assert await key_store.origins() == frozenset()
    await key_store.create("a key has none")
    await key_store.create_site("one", [SITE], budget=1)
    gone, _ = await key_store.create_site("two", ["https://gone.example"], budget=1)
    await key_store.create_site("three", ["https://old.example"], budget=1, expires_at=datetime.now(UTC))
    await key_store.revoke(gone.id)
    assert await key_store.origins() == {SITE}


WRONG: dict[str, dict[str, Any]] = {
    "its scopes are among": {"scopes": {Scope.ASK, Scope.ADMIN}},
    "is public": {"scopes": ()},
    "needs the site's origin": {"origins": []},
    "not an origin": {"origins": ["*"]},
    "at least 1": {"budget": 0},
    "printable": {"name": "\x1b[2J"},
    "at most 100": {"name": "n" * 101},
    "no zone": {"expires_at": datetime(2030, 1, 1)},  # noqa: DTZ001 - that is the point
}


async def test_rejects_invalid_site_tokens(key_store: ApiKeyStore) -> None:
    for complaint, wrong in WRONG.items():
        given: dict[str, Any] = {"name": "docs", "origins": [SITE], "budget": 5} | wrong
        with pytest.raises(InputError, match=complaint):
            await key_store.create_site(given.pop("name"), given.pop("origins"), **given)
    assert await key_store.is_open()


async def test_rejects_a_key_without_scopes(key_store: ApiKeyStore) -> None:
    with pytest.raises(InputError, match="needs a scope"):
        await key_store.create("", scopes=())


async def refused(rates: RateLimiter, subject: str, limit: RateLimit) -> float:
    with pytest.raises(RateLimited) as caught:
        await rates.hit(subject, limit)
    assert caught.value.retry_after is not None
    return caught.value.retry_after


async def test_admits_exactly_the_limit(counting: RateLimiter, database: Database) -> None:
    for _ in range(3):
        await counting.hit("a", THRICE)
    wait = await refused(counting, "a", THRICE)
    assert 3000 <= wait <= 3600
    assert wait == int(wait)
    await refused(counting, "a", THRICE)
    await refused(RateLimiter(database), "a", THRICE)
    await counting.hit("b", THRICE)


async def test_a_new_window_starts_after_the_old_one(counting: RateLimiter, database: Database) -> None:
    for _ in range(3):
        await counting.hit("a", THRICE)
    await refused(RateLimiter(database), "a", THRICE)
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


async def test_rejected_requests_do_not_reach_the_database(database: Database) -> None:
    watched = Watched(database)
    counting = RateLimiter(watched)
    for _ in range(3):
        await counting.hit("a", THRICE)
    for _ in range(100):
        await refused(counting, "a", THRICE)
    assert watched.asked == 4, "one for each that passed, and one for the first that did not"


async def test_expired_windows_are_deleted(counting: RateLimiter, database: Database) -> None:
    for number in range(5):
        await counting.hit(f"address:192.0.2.{number}", THRICE)
    await _turn_the_clock(database, 3601)
    await RateLimiter(database, cleanup_interval=0).hit("key:a", THRICE)
    left = await database.read(lambda connection: connection.execute(select(rates.c.subject)).scalars().all())
    assert left == ["key:a"]


async def test_a_released_reservation_can_be_reserved_again(counting: RateLimiter) -> None:
    taken = [await counting.reserve("a", THRICE) for _ in range(3)]
    for _ in range(4):
        with pytest.raises(RateLimited):
            await counting.reserve("a", THRICE)
    await counting.release(taken[0])
    again = await counting.reserve("a", THRICE)
    assert again == replace(taken[0], until=again.until)
    with pytest.raises(RateLimited):
        await counting.reserve("a", THRICE)


async def test_a_release_does_not_affect_a_later_window(counting: RateLimiter, database: Database) -> None:
    old = await counting.reserve("a", THRICE)
    await _turn_the_clock(database, 3601)
    await counting.reserve("a", THRICE)
    # On a fast machine both windows would end in the same millisecond, if the clock had really not moved.
    await counting.release(replace(old, until=old.until - 3601))
    assert await database.read(lambda connection: connection.scalar(select(rates.c.taken))) == 1


async def test_concurrent_requests_do_not_exceed_the_limit(counting: RateLimiter) -> None:
    assert await passes(counting, 60, 7) == 7


async def test_two_processes_do_not_exceed_the_limit(url: str) -> None:
    # SQLite's users wait for each other; on a busy machine nobody shall give up.
    patient = f"{url}?timeout=60" if url.startswith("sqlite") else url
    async with open_database(patient) as database:
        with spawn(patient, 40, 30) as other:
            assert other.stdout is not None
            assert other.stdin is not None
            assert other.stdout.readline() == "open\n"
            other.stdin.write("go\n")
            other.stdin.flush()
            passed = [await passes(RateLimiter(database), 40, 30), int(other.communicate()[0])]
    assert sum(passed) == 30, f"they let {passed} through"


async def _site(key_store: ApiKeyStore, budget: int) -> Caller:
    _, token = await key_store.create_site("docs", [SITE], budget=budget)
    caller = await key_store.find(token)
    assert caller is not None
    return caller


async def test_the_daily_quota_is_shared_by_all_readers_of_a_site(
    key_store: ApiKeyStore, counting: RateLimiter
) -> None:
    site, other = await _site(key_store, 2), await _site(key_store, 2)
    quotas = SiteQuotas(counting)
    await quotas.charge(identify_reader(site, None))
    await quotas.charge(identify_reader(site, READER))
    with pytest.raises(RateLimited, match="its 2 questions of today") as caught:
        await quotas.charge(identify_reader(site, READER))
    assert 1 <= (caught.value.retry_after or 0) <= 86400
    await quotas.charge(other)


async def test_other_callers_are_not_charged(key_store: ApiKeyStore, counting: RateLimiter, database: Database) -> None:
    _, secret = await key_store.create("")
    for caller in (ANONYMOUS, await key_store.find(secret)):
        assert caller is not None
        assert await SiteQuotas(counting).charge(caller) is None
        await SiteQuotas(counting).refund(None)
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
async def test_rejected_questions_are_refunded(
    key_store: ApiKeyStore, counting: RateLimiter, error: BaseException, left: int
) -> None:
    site, quotas = await _site(key_store, 1), SiteQuotas(counting)

    async def rejected() -> AsyncGenerator[Event]:
        raise error
        yield

    stream = AnswerStream(StreamKey("", ""))
    refund = partial(quotas.refund, await quotas.charge(site))
    with suppress(GeneratorExit):
        await run_question(stream, rejected(), refund=refund)
    assert [event.name for event in stream.events] == ([] if isinstance(error, GeneratorExit) else ["state", "error"])
    for _ in range(left):
        await quotas.charge(site)
    with pytest.raises(RateLimited):
        await quotas.charge(site)
