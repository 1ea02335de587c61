"""The client address of a request, and that forged forwarding headers do not raise a rate limit (S7)."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv6Address
from pathlib import Path

import pytest

from bythebook.access import RateLimit
from bythebook.access.rate_limiter import RateLimiter
from bythebook.database.engine import open_database
from bythebook.errors import ConfigurationError, RateLimited
from bythebook.server.auth import TrustedProxies, rate_limit_subject

NOBODY = TrustedProxies()
PROXIES = TrustedProxies.parse(["10.0.0.0/8", "192.0.2.7", "2001:db8:ffff::/48", "unix"])


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        pytest.param("198.51.100.1", [], "198.51.100.1", id="no proxy"),
        pytest.param("198.51.100.1", ["203.0.113.9"], "198.51.100.1", id="a forged header is not read"),
        pytest.param("10.1.2.3", ["203.0.113.9"], "203.0.113.9", id="a trusted proxy says who it is"),
        pytest.param("10.1.2.3", [], "10.1.2.3", id="a trusted proxy says nothing"),
        pytest.param("10.1.2.3", [""], "10.1.2.3", id="a trusted proxy sends an empty header"),
        pytest.param("10.1.2.3", ["1.1.1.1, 203.0.113.9"], "203.0.113.9", id="what the client forged is on the left"),
        pytest.param("10.1.2.3", ["10.9.9.9, 203.0.113.9"], "203.0.113.9", id="also when it claims to be a proxy"),
        pytest.param("10.1.2.3", ["203.0.113.9, 192.0.2.7"], "203.0.113.9", id="two proxies"),
        pytest.param("10.1.2.3", ["203.0.113.9", "192.0.2.7"], "203.0.113.9", id="two headers are one"),
        pytest.param("10.1.2.3", ["192.0.2.8, 203.0.113.9", "192.0.2.7"], "203.0.113.9", id="up to the first stranger"),
        pytest.param("10.1.2.3", ["10.0.0.1, 10.0.0.2"], "10.0.0.1", id="proxies all the way"),
        pytest.param("10.1.2.3", ["203.0.113.9, unknown"], "10.1.2.3", id="no address counts for who passed it on"),
        pytest.param("10.1.2.3", ["203.0.113.9, , 192.0.2.7"], "192.0.2.7", id="a gap"),
        pytest.param("10.1.2.3", ["203.0.113.9:4711"], "203.0.113.9", id="a port"),
        pytest.param("10.1.2.3", ["[2001:db8:1:2::5]:4711"], "2001:db8:1:2::/64", id="a port after IPv6"),
        pytest.param("10.1.2.3", ["010.0.0.1"], "10.1.2.3", id="an octal address is none"),
        pytest.param("10.1.2.3", ["9" * 70_000], "10.1.2.3", id="a very long one"),
        pytest.param("::ffff:10.1.2.3", ["203.0.113.9"], "203.0.113.9", id="a trusted proxy in IPv6 clothes"),
        pytest.param("::ffff:198.51.100.1", ["203.0.113.9"], "198.51.100.1", id="a stranger in IPv6 clothes"),
        pytest.param("2001:db8:1:2:3:4:5:6", [], "2001:db8:1:2::/64", id="IPv6 counts by its network"),
        pytest.param("fe80::1%eth0", [], "fe80::/64", id="a zone"),
        pytest.param("2001:db8:ffff::1", ["2001:db8:1:2::9"], "2001:db8:1:2::/64", id="a proxy in IPv6"),
        pytest.param(None, ["203.0.113.9"], "203.0.113.9", id="a proxy through a socket file"),
        pytest.param("", [], "unix", id="a socket file"),
    ],
)
def test_finds_the_rate_limit_subject(peer: str | None, forwarded: list[str], address: str) -> None:
    assert rate_limit_subject(peer, forwarded, proxies=PROXIES) == address


@pytest.mark.parametrize("peer", ["127.0.0.1", "10.0.0.1", "::1", None], ids=str)
def test_ignores_forwarded_headers_without_trusted_proxies(peer: str | None) -> None:
    assert rate_limit_subject(peer, ["203.0.113.9"], proxies=NOBODY) == rate_limit_subject(peer, [], proxies=NOBODY)


@pytest.mark.parametrize("name", ["*", "0.0.0.0/0", "::/0", "10.0.0.1/8", "localhost", ""], ids=ascii)
def test_rejects_invalid_and_unlimited_proxies(name: str) -> None:
    with pytest.raises(ConfigurationError, match="trusted_proxies"):
        TrustedProxies.parse([name])


ANYWHERE = [f"203.0.{number}.{250 - number}" for number in range(30)]
IN_ONE_NETWORK = [str(IPv6Address((0x20010DB800010002 << 64) + number**13)) for number in range(1, 31)]


@pytest.mark.parametrize(
    "requests",
    [
        pytest.param([("198.51.100.1", [claim]) for claim in ANYWHERE], id="a header"),
        pytest.param([("198.51.100.1", [f"{claim}, 10.0.0.1"]) for claim in ANYWHERE], id="a proxy in a header"),
        pytest.param([("10.1.2.3", [f"{claim}, 198.51.100.1"]) for claim in ANYWHERE], id="through a proxy"),
        pytest.param([("10.1.2.3", [claim, "198.51.100.1"]) for claim in ANYWHERE], id="in a second header"),
        pytest.param([(address, []) for address in IN_ONE_NETWORK], id="the addresses of one IPv6 network"),
        pytest.param([("10.1.2.3", [address]) for address in IN_ONE_NETWORK], id="those through a proxy"),
        pytest.param([(f"{kind}198.51.100.1", []) for kind in ("", "::ffff:") * 15], id="IPv4 in two ways"),
    ],
)
async def test_forged_addresses_do_not_evade_the_rate_limit(
    tmp_path: Path, requests: Sequence[tuple[str, list[str]]]
) -> None:
    waits: list[float] = []
    async with open_database(f"sqlite:///{tmp_path}/rates.db") as database:
        rates = RateLimiter(database)
        for peer, forwarded in requests:
            try:
                await rates.hit(rate_limit_subject(peer, forwarded, proxies=PROXIES), RateLimit(5, 3600))
            except RateLimited as error:
                waits.append(error.retry_after or 0)
    assert len(waits) == len(requests) - 5
    assert all(0 < wait == int(wait) for wait in waits), "as a Retry-After header can say it"
