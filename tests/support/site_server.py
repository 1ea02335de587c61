"""A small scripted site over real sockets: correct, changed, broken or hostile."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bythebook.sources import ListedPage, SkippedPage
from bythebook.sources.website import CrawlLimits
from bythebook.sources.website.cache import CrawlCache
from bythebook.sources.website.source import Website

QUICK = CrawlLimits(private=True, delay=0.0)


@dataclass(frozen=True)
class Reply:
    """A scripted response. If `raw` is set, only it is sent and the connection is closed."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes = b""


Handler = Callable[["Request"], Reply | Awaitable[Reply]]


@dataclass(frozen=True)
class Request:
    target: str
    headers: dict[str, str]


@dataclass
class SiteServer:
    """The site: its responses by path, and the requests it received."""

    shown: dict[str, str | bytes | Reply | Handler] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    hello: bytes = b""
    port: int = 0
    other: str | bytes | Reply | Handler = field(default_factory=lambda: Reply(b"nothing", 404))
    """The response for any other path."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def asked(self) -> list[str]:
        return [request.target for request in self.requests]

    def sitemap(self, *paths: str, lastmod: str = "") -> None:
        """Publish a sitemap with exactly these paths."""
        when = f"<lastmod>{lastmod}</lastmod>" if lastmod else ""
        urls = "".join(f"<url><loc>{self.url}{path}</loc>{when}</url>" for path in paths)
        self.shown["/sitemap.xml"] = xml(f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{urls}</urlset>')

    def forget(self) -> None:
        self.requests.clear()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        first = await reader.read(1)
        if not first:
            return False
        if first == b"\x16":  # A TLS handshake: keep the ClientHello with its server name.
            self.hello = await reader.read(4096)
            return False
        head = (first + await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {line.partition(":")[0].lower(): line.partition(":")[2].strip() for line in head[1:] if line}
        request = Request(head[0].split(" ")[1], headers)
        self.requests.append(request)
        reply = await self._reply(request)
        if reply.raw:
            writer.write(reply.raw)
            await writer.drain()
            return False
        fields = {"Content-Type": "text/html; charset=utf-8", "Content-Length": str(len(reply.body))} | reply.headers
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        writer.write(f"HTTP/1.1 {reply.status} x\r\n{lines}\r\n".encode() + reply.body)
        await writer.drain()
        return True

    async def _reply(self, request: Request) -> Reply:
        shown = self.shown.get(request.target, self.other)
        if callable(shown):
            made = shown(request)
            shown = made if isinstance(made, Reply) else await made
        if isinstance(shown, Reply):
            return shown
        return _with_etag(shown.encode() if isinstance(shown, str) else shown, request)


def _with_etag(body: bytes, request: Request) -> Reply:
    etag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
    if request.headers.get("if-none-match") == etag:
        return Reply(status=304, headers={"ETag": etag})
    return Reply(body, headers={"ETag": etag})


def page(title: str, text: str = "", *, links: tuple[str, ...] = (), head: str = "") -> str:
    """A page with a menu, a text and a footer."""
    menu = "".join(f"<a href='{link}'>{link}</a> " for link in links)
    return (
        f"<!doctype html><html><head><title>{title} | Site</title>{head}</head><body><nav>Menu {menu}</nav>"
        f"<main><h1 id=top>{title}</h1><p>{text or f'All about {title}.'}</p></main><footer>Footer</footer>"
        "</body></html>"
    )


def xml(text: str) -> Reply:
    return Reply(text.encode(), headers={"Content-Type": "application/xml"})


def packed(body: bytes) -> Reply:
    return Reply(gzip.compress(body), headers={"Content-Encoding": "gzip"})


def moved_to(target: str, status: int = 301) -> Reply:
    return Reply(status=status, headers={"Location": target})


def text(words: str) -> Reply:
    return Reply(words.encode(), headers={"Content-Type": "text/plain"})


@asynccontextmanager
async def serving(server: SiteServer | None = None) -> AsyncIterator[SiteServer]:
    server = server or SiteServer()
    tasks: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.create_task(server.serve(reader, writer)))

    listening = await asyncio.start_server(connected, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def site_of(
    server: SiteServer, cache_file: Path | None = None, *, path: str = "/", limits: CrawlLimits = QUICK
) -> Website:
    if cache_file is None:
        return Website(server.url + path, limits=limits)
    return Website(server.url + path, open_cache=lambda: CrawlCache.open(cache_file), limits=limits)


async def visited(site: Website) -> list[ListedPage | SkippedPage]:
    """The listing of the site. Closes it afterwards."""
    try:
        return [entry async for entry in site.listing()]
    finally:
        site.close()


def paths(entries: list[ListedPage | SkippedPage], server: SiteServer) -> list[str]:
    return [entry.url.removeprefix(server.url) for entry in entries if isinstance(entry, ListedPage)]


def skipped(entries: list[ListedPage | SkippedPage], server: SiteServer) -> dict[str, str]:
    """The skipped pages with their reasons, without the origin of the site."""
    found = [entry for entry in entries if isinstance(entry, SkippedPage)]
    return {entry.path.replace(server.url, ""): entry.reason.replace(server.url, "") for entry in found}
