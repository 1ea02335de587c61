"""No connection is made to an address that was not checked. (HARDENING S2)"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

import pytest

from bythebook.errors import Unavailable
from bythebook.sources.website.http_client import Client
from bythebook.sources.website.ssrf import is_own_network, is_public
from bythebook.sources.website.urls import Refused, locate
from tests.support.site_server import Reply, SiteServer, moved_to, serving

PUBLIC = ["1.1.1.1", "8.8.8.8", "93.184.216.34", "2606:4700:4700::1111", "2a00:1450:4001:810::200e"]
PRIVATE = [
    *("127.0.0.1", "127.255.255.254", "10.0.0.1", "172.16.0.1", "192.168.1.1", "::1", "fd00::1", "::ffff:127.0.0.1"),
    *("::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::1", "::127.0.0.1"),
]
NOWHERE = [
    *("169.254.169.254", "fe80::1", "0.0.0.0", "::", "224.0.0.1", "ff02::1", "255.255.255.255", "240.0.0.1"),  # noqa: S104
    *("::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1", "100.64.0.1", "192.0.0.1", "198.18.0.1"),
    *("fec0::1", "2001:db8::1", "64:ff9b:1::1", "2001::1", "100::1"),
]


@pytest.mark.parametrize("address", PUBLIC)
def test_addresses_of_the_internet(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", [*PRIVATE, *NOWHERE])
def test_addresses_that_are_not_of_the_internet(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses_can_be_allowed(address: str) -> None:
    assert is_own_network(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", ["169.254.169.254", "fe80::1", "0.0.0.0", "::", "224.0.0.1", "::ffff:169.254.1.1"])  # noqa: S104
def test_some_addresses_can_never_be_allowed(address: str) -> None:
    assert not is_own_network(ipaddress.ip_address(address))


SPELLINGS = [
    *("127.0.0.1", "127.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "017700000001", "localhost"),
    *(
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[0:0:0:0:0:0:0:1]",
        "[::ffff:7f00:1]",
        "１２７.0.0.1",
        "LOCALHOST.",
        "127.0.0.1.",
    ),
    *("0", "0.0.0.0", "[::]", "[fe80::1%25lo]"),  # noqa: S104
]


@pytest.mark.parametrize("host", SPELLINGS)
async def test_no_spelling_of_this_machine_is_connected_to(host: str) -> None:
    async with serving() as canary:
        try:
            named = locate(f"http://{host}:{canary.port}/")
        except Refused:
            return
        async with Client(named) as client:
            with pytest.raises((Refused, Unavailable)):
                await client.get(named, most=1000)
        assert canary.connections == 0


def answering(*answers: Sequence[str]) -> tuple[list[str], object]:
    """A resolver that gives another answer each time, and what it was asked."""
    asked: list[str] = []

    async def resolve(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return answers[min(len(asked), len(answers)) - 1]

    return asked, resolve


@pytest.mark.parametrize(
    "addresses",
    [["127.0.0.1"], ["93.184.216.34", "127.0.0.1"], ["::ffff:127.0.0.1"], ["169.254.169.254"], ["no address"]],
)
async def test_a_name_that_stands_for_this_machine_is_not_connected_to(addresses: list[str]) -> None:
    _, resolve = answering(addresses)
    async with serving() as canary:
        named = locate(f"http://book.example:{canary.port}/")
        async with Client(named, resolver=resolve) as client:  # type: ignore[arg-type]
            with pytest.raises(Refused):
                await client.get(named, most=1000)
        assert canary.connections == 0


async def test_a_name_is_looked_up_and_connected_to_in_one_go() -> None:
    """What it stands for a moment later is of no interest: nobody asks again between the check and the connection."""
    asked, resolve = answering(["127.0.0.1"], ["10.0.0.1"])
    async with serving(SiteServer({"/": "hello"})) as server:
        named = locate(f"http://book.example:{server.port}/")
        async with Client(named, allow_private=True, resolver=resolve) as client:  # type: ignore[arg-type]
            answer = await client.get(named, most=1000)
        assert (answer.body, asked) == (b"hello", ["book.example"])
        assert server.requests[0].headers["host"] == f"book.example:{server.port}"


async def test_a_public_name_is_not_followed_into_a_private_network() -> None:
    """Not even where private networks are allowed, as long as it was not there from the start."""
    _, resolve = answering(["192.0.2.1"], ["127.0.0.1"])
    from bythebook.sources.website.ssrf import Gate

    gate = Gate(private=["book.example"], resolver=resolve)  # type: ignore[arg-type]
    gate._was_public.add("book.example")
    async with serving() as canary:
        with pytest.raises(Refused):
            await gate.connect_tcp("book.example", canary.port)
        with pytest.raises(Refused, match="was on the internet a moment ago"):
            await gate.connect_tcp("book.example", canary.port)
        assert canary.connections == 0


async def test_a_certificate_is_asked_for_by_name_though_the_address_is_pinned() -> None:
    _, resolve = answering(["127.0.0.1"])
    async with serving() as server:
        named = locate(f"https://book.example:{server.port}/")
        async with Client(named, allow_private=True, resolver=resolve) as client:  # type: ignore[arg-type]
            with pytest.raises(Unavailable):
                await client.get(named, most=1000)
        assert b"book.example" in server.hello


@pytest.mark.parametrize(
    "target",
    [
        *("http://localhost:{canary}/", "http://[::1]:{canary}/", "http://169.254.169.254/", "file:///etc/passwd"),
        *("http://10.0.0.1/", "//2130706433:{canary}/", "http://user:pass@127.0.0.1:{canary}/", "ftp://127.0.0.1/"),
        *("http://127.0.0.1:{canary}/", "http://[fe80::1]/"),
    ],
)
async def test_a_redirect_is_looked_at_like_an_address(target: str) -> None:
    """Also where private networks are allowed: that is for the host that was named, on the port that was named."""
    async with serving() as canary, serving() as server:
        server.shown["/"] = moved_to(target.format(canary=canary.port))
        named = locate(server.url + "/")
        async with Client(named, allow_private=True) as client:
            with pytest.raises(Refused):
                await client.get(named, most=1000)
        assert (canary.connections, len(server.requests)) == (0, 1)


async def test_redirects_end() -> None:
    async with serving() as server:
        server.shown["/"] = lambda _: moved_to("/")
        named = locate(server.url + "/")
        async with Client(named, allow_private=True) as client:
            with pytest.raises(Refused, match="redirects do not end: after 5"):
                await client.get(named, most=1000)
        assert len(server.requests) == 6


async def test_no_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as proxy, serving(SiteServer({"/": Reply(b"direct")})) as server:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        named = locate(server.url + "/")
        async with Client(named, allow_private=True) as client:
            assert (await client.get(named, most=1000)).body == b"direct"
        assert proxy.connections == 0
