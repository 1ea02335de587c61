"""A small site over real sockets, scripted to be good, changed, broken or hostile."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bythebook.sources import Listed, Skipped
from bythebook.sources.website import Limits
from bythebook.sources.website.cache import Archive
from bythebook.sources.website.source import Site

QUICK = Limits(private=True, delay=0.0)


@dataclass(frozen=True)
class Reply:
    """What the site answers. `raw` is sent instead of anything else, and the connection is closed."""

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
    """The site: what it shows by path, and what it was asked for."""

    shown: dict[str, str | bytes | Reply | Handler] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    hello: bytes = b""
    port: int = 0
    other: str | bytes | Reply | Handler = field(default_factory=lambda: Reply(b"nothing", 404))
    """What is shown for any other path."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def asked(self) -> list[str]:
        return [request.target for request in self.requests]

    def sitemap(self, *paths: str, lastmod: str = "") -> None:
        """List these paths, and nothing else."""
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
        if first == b"\x16":  # A TLS handshake: who is it for?
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


def site_of(server: SiteServer, archive: Path | None = None, *, path: str = "/", limits: Limits = QUICK) -> Site:
    if archive is None:
        return Site(server.url + path, limits=limits)
    return Site(server.url + path, archive=lambda: Archive.open(archive), limits=limits)


async def visited(site: Site) -> list[Listed | Skipped]:
    """Everything the site has, with the archive closed afterwards."""
    try:
        return [entry async for entry in site.listing()]
    finally:
        site.close()


def paths(entries: list[Listed | Skipped], server: SiteServer) -> list[str]:
    return [entry.url.removeprefix(server.url) for entry in entries if isinstance(entry, Listed)]


def skipped(entries: list[Listed | Skipped], server: SiteServer) -> dict[str, str]:
    """What was left out, and why, with the site's own address left out of both."""
    found = [entry for entry in entries if isinstance(entry, Skipped)]
    return {entry.path.replace(server.url, ""): entry.reason.replace(server.url, "") for entry in found}
