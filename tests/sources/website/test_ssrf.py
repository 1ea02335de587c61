"""No connection goes to an unchecked address (HARDENING S2)."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

import pytest

from bythebook.errors import Unavailable
from bythebook.sources.website.http_client import SiteClient
from bythebook.sources.website.ssrf import is_own_network, is_public
from bythebook.sources.website.urls import RejectedUrl, parse_url
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
def test_public_addresses(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", [*PRIVATE, *NOWHERE])
def test_addresses_that_are_not_public(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses_can_be_allowed(address: str) -> None:
    assert is_own_network(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", ["169.254.169.254", "fe80::1", "0.0.0.0", "::", "224.0.0.1", "::ffff:169.254.1.1"])  # noqa: S104
def test_some_addresses_are_never_allowed(address: str) -> None:
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
async def test_connects_to_no_spelling_of_localhost(host: str) -> None:
    async with serving() as canary:
        try:
            named = parse_url(f"http://{host}:{canary.port}/")
        except RejectedUrl:
            return
        async with SiteClient(named) as client:
            with pytest.raises((RejectedUrl, Unavailable)):
                await client.get(named, max_bytes=1000)
        assert canary.connections == 0


def answering(*answers: Sequence[str]) -> tuple[list[str], object]:
    """A resolver that returns another answer each time, and the list of its calls."""
    asked: list[str] = []

    async def resolve(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return answers[min(len(asked), len(answers)) - 1]

    return asked, resolve


@pytest.mark.parametrize(
    "addresses",
    [["127.0.0.1"], ["93.184.216.34", "127.0.0.1"], ["::ffff:127.0.0.1"], ["169.254.169.254"], ["no address"]],
)
async def test_does_not_connect_to_a_name_that_resolves_to_this_machine(addresses: list[str]) -> None:
    _, resolve = answering(addresses)
    async with serving() as canary:
        named = parse_url(f"http://book.example:{canary.port}/")
        async with SiteClient(named, resolver=resolve) as client:  # type: ignore[arg-type]
            with pytest.raises(RejectedUrl):
                await client.get(named, max_bytes=1000)
        assert canary.connections == 0


async def test_connects_to_the_address_that_was_checked() -> None:
    """The name is resolved once: a later answer of the resolver has no effect (DNS rebinding)."""
    asked, resolve = answering(["127.0.0.1"], ["10.0.0.1"])
    async with serving(SiteServer({"/": "hello"})) as server:
        named = parse_url(f"http://book.example:{server.port}/")
        async with SiteClient(named, allow_private=True, resolver=resolve) as client:  # type: ignore[arg-type]
            answer = await client.get(named, max_bytes=1000)
        assert (answer.body, asked) == (b"hello", ["book.example"])
        assert server.requests[0].headers["host"] == f"book.example:{server.port}"


async def test_does_not_follow_a_public_name_into_a_private_network() -> None:
    """Even if private networks are allowed: the name had a public address before."""
    _, resolve = answering(["192.0.2.1"], ["127.0.0.1"])
    from bythebook.sources.website.ssrf import SsrfGuardBackend

    backend = SsrfGuardBackend(private=["book.example"], resolver=resolve)  # type: ignore[arg-type]
    backend._was_public.add("book.example")
    async with serving() as canary:
        with pytest.raises(RejectedUrl):
            await backend.connect_tcp("book.example", canary.port)
        with pytest.raises(RejectedUrl, match="had a public address before"):
            await backend.connect_tcp("book.example", canary.port)
        assert canary.connections == 0


async def test_verifies_the_certificate_by_name_at_a_pinned_address() -> None:
    _, resolve = answering(["127.0.0.1"])
    async with serving() as server:
        named = parse_url(f"https://book.example:{server.port}/")
        async with SiteClient(named, allow_private=True, resolver=resolve) as client:  # type: ignore[arg-type]
            with pytest.raises(Unavailable):
                await client.get(named, max_bytes=1000)
        assert b"book.example" in server.hello


@pytest.mark.parametrize(
    "target",
    [
        *("http://localhost:{canary}/", "http://[::1]:{canary}/", "http://169.254.169.254/", "file:///etc/passwd"),
        *("http://10.0.0.1/", "//2130706433:{canary}/", "http://user:pass@127.0.0.1:{canary}/", "ftp://127.0.0.1/"),
        *("http://127.0.0.1:{canary}/", "http://[fe80::1]/"),
    ],
)
async def test_checks_the_target_of_a_redirect(target: str) -> None:
    """Even if private networks are allowed: only the given host and port may be private."""
    async with serving() as canary, serving() as server:
        server.shown["/"] = moved_to(target.format(canary=canary.port))
        named = parse_url(server.url + "/")
        async with SiteClient(named, allow_private=True) as client:
            with pytest.raises(RejectedUrl):
                await client.get(named, max_bytes=1000)
        assert (canary.connections, len(server.requests)) == (0, 1)


async def test_limits_redirects() -> None:
    async with serving() as server:
        server.shown["/"] = lambda _: moved_to("/")
        named = parse_url(server.url + "/")
        async with SiteClient(named, allow_private=True) as client:
            with pytest.raises(RejectedUrl, match="redirects do not end: after 5"):
                await client.get(named, max_bytes=1000)
        assert len(server.requests) == 6


async def test_ignores_the_proxies_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as proxy, serving(SiteServer({"/": Reply(b"direct")})) as server:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        named = parse_url(server.url + "/")
        async with SiteClient(named, allow_private=True) as client:
            assert (await client.get(named, max_bytes=1000)).body == b"direct"
        assert proxy.connections == 0
