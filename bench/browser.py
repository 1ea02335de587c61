"""A browser, a server with the manual, a scripted model, and a site with the widget."""

from __future__ import annotations

import asyncio
import shutil
import socket
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bench.processes import ROOT
from bythebook import Book, Settings
from bythebook.server.app import create_app
from bythebook.server.http_protocol import HttpServer
from bythebook.sources.folder import Folder
from bythebook.testing import ScriptedReply, ScriptedServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from fastapi import FastAPI
    from playwright.async_api import Browser

SITE = "https://book.example/manual"
"""The assumed URL of the published manual, so that citations are links."""

_HOST = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Keeping a lighthouse</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<style>
body {{ font: 17px/1.65 Georgia, serif; margin: 0; }}
body {{ color: light-dark(#222, #ddd); background: light-dark(#fffdf8, #1b1a17); }}
nav {{ padding: 14px 40px; border-bottom: 1px solid light-dark(#e6e0d4, #38352e); font-weight: bold; }}
main {{ max-width: 620px; padding: 20px 40px; }} h1 {{ line-height: 1.2; }}
</style></head><body><nav>The Lighthouse Handbook</nav><main><h1>Keeping the light</h1>
<p id="text">The lamp burns colza oil, and the keeper trims the wick at dusk, at midnight and an hour before dawn.</p>
<p>In fog the horn is sounded for as long as the far headland cannot be seen. The log says when it began, when it
ended, and which ships were heard.</p><p>Every spring the lens is taken down and polished with rouge. It takes two
people and a dry day.</p><p>The stores are counted on the first of each month. What is short goes on the list for the
tender, which comes when the weather allows.</p></main>{script}</body></html>"""


@dataclass(slots=True)
class Scene:
    """The environment of a picture or a measurement."""

    url: str
    browser: Browser
    site: str
    said: ScriptedReply = field(default_factory=lambda: ScriptedReply("It is not known."))
    """The next answer of the model."""

    def speak(self, _request: object) -> ScriptedReply:
        return self.said


@asynccontextmanager
async def scene(folder: Path) -> AsyncIterator[Scene]:
    """A server in this process with the manual, which is ingested once into the folder."""
    from playwright.async_api import async_playwright

    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        raise SystemExit("there is no Chromium on this machine. Install Debian's package chromium.")
    async with AsyncExitStack() as stack:
        ready = Scene("", browser=None, site="")  # type: ignore[arg-type]
        model = await stack.enter_async_context(ScriptedServer(ready.speak))
        site, host = await stack.enter_async_context(_elsewhere())
        chosen = {"data_dir": folder, "site_url": SITE, "base_url": model.base_url, "model": "scripted"}
        chosen |= {"retrieval_mode": "prefetch", "followups": "rule", "cors_origins": (site,), "answer_seconds": 120.0}
        settings = Settings.load(chosen | {"first_token_seconds": 60.0}, folder=folder)
        book = await stack.enter_async_context(Book.open(settings))
        await book.ingest(Folder(ROOT / "docs", exclude=("transcripts",)))
        ready.url, ready.site = await stack.enter_async_context(listening(create_app(book, settings))), site
        host["script"] = f'<script src="{ready.url}/widget.js" data-title="Ask the handbook" async></script>'
        playwright = await stack.enter_async_context(async_playwright())
        ready.browser = await playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        stack.push_async_callback(ready.browser.close)
        yield ready


@asynccontextmanager
async def _elsewhere() -> AsyncIterator[tuple[str, dict[str, str]]]:
    """A third-party site and the contents of its pages."""
    from fastapi import FastAPI
    from starlette.responses import HTMLResponse

    filled = {"script": ""}
    app = FastAPI()

    @app.get("/")
    async def page() -> HTMLResponse:
        return HTMLResponse(_HOST.format(**filled))

    async with listening(app) as url:
        yield url, filled


@asynccontextmanager
async def listening(app: FastAPI) -> AsyncIterator[str]:
    started = asyncio.Event()
    server = HttpServer(app, started=started.set)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        task = asyncio.create_task(server.serve(sockets=[listener]))
        await started.wait()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            await task
