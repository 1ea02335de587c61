"""What the client brings back, and what it does not let in."""

from __future__ import annotations

import asyncio
import gzip
import zlib

import pytest

from bythebook.errors import BookError, DeadlineExceeded, RateLimited, Unavailable
from bythebook.sources import Unreadable
from bythebook.sources.website import Answer, Validators
from bythebook.sources.website.http_client import USER_AGENT, Client, unpacked
from bythebook.sources.website.urls import locate
from tests.support.site_server import Reply, Request, SiteServer, moved_to, packed, serving

TWICE = gzip.compress(gzip.compress(b"x" * 9_000_000))


async def fetched(server: SiteServer, path: str = "/", *, most: int = 100_000, seconds: float = 60.0) -> Answer:
    named = locate(server.url + "/")
    async with Client(named, allow_private=True) as client:
        return await client.get(locate(path, base=named), most=most, seconds=seconds)


async def test_it_says_who_it_is_and_sends_nothing_else() -> None:
    async with serving(SiteServer({"/": "hello"})) as server:
        answer = await fetched(server)
    assert (answer.status, answer.body, answer.media_type, answer.charset) == (200, b"hello", "text/html", "utf-8")
    headers = server.requests[0].headers
    assert headers["user-agent"] == USER_AGENT
    assert {"cookie", "authorization", "referer"}.isdisjoint(headers)


async def test_only_what_changed_is_sent_again() -> None:
    async with serving(SiteServer({"/a": "hello", "/b": moved_to("/a")})) as server:
        named = locate(server.url + "/a")
        async with Client(named, allow_private=True) as client:
            first = await client.get(named, most=1000)

            def known(at: object) -> Validators:
                return first.validators if str(at) == str(named) else Validators()

            again = await client.get(locate(server.url + "/b"), most=1000, known=known)
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
        pytest.param(Reply(b"x", headers={"Content-Encoding": "br"}), id="packed as nobody asked for"),
        pytest.param(
            Reply(raw=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1000\r\n" + b"x" * 4096 + b"\r\n" * 1
                  + (b"1000\r\n" + b"x" * 4096 + b"\r\n") * 100), id="chunks without end"),
    ],
)  # fmt: skip
async def test_a_body_that_is_too_much_is_not_taken(reply: Reply) -> None:
    async with serving(SiteServer({"/": reply})) as server:
        with pytest.raises(Unreadable):
            await fetched(server)


async def test_a_packed_body_is_unpacked() -> None:
    async with serving(SiteServer({"/": packed(b"hello " * 1000)})) as server:
        assert (await fetched(server)).body == b"hello " * 1000


def test_a_packed_file_is_unpacked_up_to_its_limit() -> None:
    assert unpacked(gzip.compress(b"hello"), most=5) == b"hello"
    for data in (gzip.compress(b"hello!"), gzip.compress(b"hello")[:-9], b"\x1f\x8bnothing"):
        with pytest.raises(Unreadable):
            unpacked(data, most=5)


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
async def test_what_fails_is_tried_again_and_then_told(shown: Reply, error: type[BookError]) -> None:
    async with serving(SiteServer({"/": shown})) as server:
        with pytest.raises(error):
            await fetched(server)
    assert len(server.requests) == (1 if shown.status == 429 else 3)


async def test_what_comes_to_itself_is_fetched() -> None:
    answers = iter([Reply(status=500), Reply(raw=b"nonsense\r\n\r\n"), Reply(b"hello")])
    async with serving(SiteServer({"/": lambda _: next(answers)})) as server:
        assert (await fetched(server)).body == b"hello"


async def test_what_never_answers_is_given_up() -> None:
    async with serving(SiteServer({"/": _never})) as server:
        with pytest.raises(DeadlineExceeded):
            await fetched(server, seconds=0.4)


async def test_what_drips_is_given_up() -> None:
    """Each drop comes in time; all of them together never would."""

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


async def test_https_stays_https() -> None:
    from bythebook.sources.website.http_client import _followed
    from bythebook.sources.website.urls import Refused

    secure = locate("https://book.example/a")
    assert str(_followed(secure, "http://book.example/a/")) == "https://book.example/a/"
    with pytest.raises(Refused, match="back to"):
        _followed(secure, "http://other.example/")


async def test_requests_keep_their_distance() -> None:
    """Counted on the loop's own clock: three requests are at least two pauses apart."""
    async with serving(SiteServer({"/": "hello"})) as server:
        named = locate(server.url + "/")
        async with Client(named, allow_private=True, delay=0.05) as client:
            before = asyncio.get_running_loop().time()
            await asyncio.gather(*(client.get(named, most=1000) for _ in range(3)))
            assert asyncio.get_running_loop().time() - before >= 0.1
