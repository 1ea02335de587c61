"""The HTTP client of a crawl: responses, retries, limits and redirects."""

from __future__ import annotations

import asyncio
import gzip
import zlib

import pytest

from bythebook.errors import BookError, DeadlineExceeded, RateLimited, Unavailable
from bythebook.sources import Unreadable
from bythebook.sources.website import FetchResponse, Validators
from bythebook.sources.website.http_client import USER_AGENT, SiteClient, decompress_gzip
from bythebook.sources.website.urls import parse_url
from tests.support.site_server import Reply, Request, SiteServer, moved_to, packed, serving

TWICE = gzip.compress(gzip.compress(b"x" * 9_000_000))


async def fetched(
    server: SiteServer, path: str = "/", *, max_bytes: int = 100_000, seconds: float = 60.0
) -> FetchResponse:
    named = parse_url(server.url + "/")
    async with SiteClient(named, allow_private=True) as client:
        return await client.get(parse_url(path, base=named), max_bytes=max_bytes, seconds=seconds)


async def test_sends_its_user_agent_and_no_credentials() -> None:
    async with serving(SiteServer({"/": "hello"})) as server:
        answer = await fetched(server)
    assert (answer.status, answer.body, answer.media_type, answer.charset) == (200, b"hello", "text/html", "utf-8")
    headers = server.requests[0].headers
    assert headers["user-agent"] == USER_AGENT
    assert {"cookie", "authorization", "referer"}.isdisjoint(headers)


async def test_sends_conditional_requests() -> None:
    async with serving(SiteServer({"/a": "hello", "/b": moved_to("/a")})) as server:
        named = parse_url(server.url + "/a")
        async with SiteClient(named, allow_private=True) as client:
            first = await client.get(named, max_bytes=1000)

            def known(at: object) -> Validators:
                return first.validators if str(at) == str(named) else Validators()

            again = await client.get(parse_url(server.url + "/b"), max_bytes=1000, validators=known)
    assert (again.is_unchanged, again.url, again.body, again.permanent) == (True, str(named), b"", True)
    assert "if-none-match" not in server.requests[1].headers


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(Reply(b"x" * 200_000), id="large"),
        pytest.param(Reply(b"x", headers={"Content-Length": "900000000"}), id="said to be large"),
        pytest.param(packed(b"x" * 50_000_000), id="a bomb"),
        pytest.param(Reply(TWICE, headers={"Content-Encoding": "gzip, gzip"}), id="a bomb in a bomb"),
        pytest.param(Reply(zlib.compress(b"x" * 9_000_000), headers={"Content-Encoding": "deflate"}), id="deflate"),
        pytest.param(Reply(b"not packed", headers={"Content-Encoding": "gzip"}), id="not packed at all"),
        pytest.param(Reply(b"x", headers={"Content-Encoding": "br"}), id="an encoding that was not requested"),
        pytest.param(
            Reply(raw=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1000\r\n" + b"x" * 4096 + b"\r\n" * 1
                  + (b"1000\r\n" + b"x" * 4096 + b"\r\n") * 100), id="chunks without end"),
    ],
)  # fmt: skip
async def test_rejects_a_body_over_the_limit(reply: Reply) -> None:
    async with serving(SiteServer({"/": reply})) as server:
        with pytest.raises(Unreadable):
            await fetched(server)


async def test_decompresses_a_body() -> None:
    async with serving(SiteServer({"/": packed(b"hello " * 1000)})) as server:
        assert (await fetched(server)).body == b"hello " * 1000


def test_decompresses_a_gzip_file_up_to_the_limit() -> None:
    assert decompress_gzip(gzip.compress(b"hello"), max_bytes=5) == b"hello"
    for data in (gzip.compress(b"hello!"), gzip.compress(b"hello")[:-9], b"\x1f\x8bnothing"):
        with pytest.raises(Unreadable):
            decompress_gzip(data, max_bytes=5)


async def _never(request: Request) -> Reply:
    await asyncio.Event().wait()
    raise AssertionError


@pytest.mark.parametrize(
    ("shown", "error"),
    [
        pytest.param(Reply(status=500), Unavailable, id="500"),
        pytest.param(Reply(status=503), Unavailable, id="503"),
        pytest.param(Reply(status=429, headers={"Retry-After": "3600"}), RateLimited, id="429 for an hour"),
        pytest.param(Reply(raw=b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhalf"), Unavailable, id="half a body"),
        pytest.param(Reply(raw=b"nonsense\r\n\r\n"), Unavailable, id="nonsense"),
        pytest.param(Reply(raw=b"HTTP/1.1 200 OK\r\nX: " + b"y" * 300_000), Unavailable, id="endless headers"),
    ],
)
async def test_retries_a_failure_and_then_raises_it(shown: Reply, error: type[BookError]) -> None:
    async with serving(SiteServer({"/": shown})) as server:
        with pytest.raises(error):
            await fetched(server)
    assert len(server.requests) == (1 if shown.status == 429 else 3)


async def test_fetches_a_page_that_recovers() -> None:
    answers = iter([Reply(status=500), Reply(raw=b"nonsense\r\n\r\n"), Reply(b"hello")])
    async with serving(SiteServer({"/": lambda _: next(answers)})) as server:
        assert (await fetched(server)).body == b"hello"


async def test_gives_up_on_a_server_that_never_answers() -> None:
    async with serving(SiteServer({"/": _never})) as server:
        with pytest.raises(DeadlineExceeded):
            await fetched(server, seconds=0.4)


async def test_gives_up_on_a_slow_body() -> None:
    """Each byte arrives in time, the whole body does not."""

    async def dripping(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\n")
        try:
            while not writer.is_closing():
                writer.write(b"x")
                await writer.drain()
                await asyncio.sleep(0.01)
        finally:
            writer.close()

    server = SiteServer()
    server.serve = dripping  # type: ignore[method-assign]
    async with serving(server):
        with pytest.raises(DeadlineExceeded):
            await fetched(server, seconds=0.6)


async def test_a_redirect_keeps_https() -> None:
    from bythebook.sources.website.http_client import _resolve_redirect
    from bythebook.sources.website.urls import RejectedUrl

    secure = parse_url("https://book.example/a")
    assert str(_resolve_redirect(secure, "http://book.example/a/")) == "https://book.example/a/"
    with pytest.raises(RejectedUrl, match="back to"):
        _resolve_redirect(secure, "http://other.example/")


async def test_keeps_the_delay_between_requests() -> None:
    """Measured on the clock of the event loop: three requests take at least two delays."""
    async with serving(SiteServer({"/": "hello"})) as server:
        named = parse_url(server.url + "/")
        async with SiteClient(named, allow_private=True, delay=0.05) as client:
            before = asyncio.get_running_loop().time()
            await asyncio.gather(*(client.get(named, max_bytes=1000) for _ in range(3)))
            assert asyncio.get_running_loop().time() - before >= 0.1
