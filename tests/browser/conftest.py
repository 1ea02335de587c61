"""A real browser, the book on a real server, and sites of others that the widget sits on."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import pytest_asyncio
from axe_playwright_python.async_playwright import Axe
from fastapi import FastAPI, Response
from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect

from bythebook.testing import CompletionScript, ScriptedReply
from tests.support.server import ServedBook, listen, serve_book, settings_for

PATIENCE_MS = 60_000
expect.set_options(timeout=PATIENCE_MS)
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
HORN = "The horn gives two blasts of three seconds every ninety seconds"
ANSWER = ScriptedReply(f"{HORN}. [1]")


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def chromium() -> AsyncIterator[Browser]:
    """The system's Chromium. Without it a test is skipped; in CI it fails."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        reason = "no Chromium on this machine. Install Debian's package chromium, or Google Chrome."
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=found, args=list(QUIET))
        yield browser
        await browser.close()


@dataclass(slots=True)
class Window:
    """A page in a separate browser context, and the errors on it."""

    page: Page
    context: BrowserContext
    troubles: list[str] = field(default_factory=list)
    """Scripts that failed or were kept from running, and what the policy of a page forbade."""
    asked_of: set[str] = field(default_factory=set)
    """Every origin something was requested from."""


Opening = Callable[..., AbstractAsyncContextManager[Window]]


@pytest.fixture
def window(chromium: Browser) -> Opening:
    """`async with window(width=320) as one`: a fresh browser profile."""

    @asynccontextmanager
    async def opened(**options: object) -> AsyncIterator[Window]:
        size = {"width": options.pop("width", 1000), "height": options.pop("height", 760)}
        context = await chromium.new_context(viewport=size, **options)  # type: ignore[arg-type]
        context.set_default_timeout(PATIENCE_MS)
        page = await context.new_page()
        one = Window(page, context)
        page.on("pageerror", lambda error: one.troubles.append(str(error)))
        page.on("console", lambda said: one.troubles.append(said.text) if said.type == "error" else None)
        page.on("request", lambda request: one.asked_of.add("/".join(request.url.split("/")[:3])))
        try:
            yield one
        finally:
            await context.close()

    return opened


@dataclass(slots=True)
class Part:
    """What the model says; a test may give it other words."""

    reply: CompletionScript

    def __call__(self, request: object) -> ScriptedReply:
        said = self.reply
        return said(request) if callable(said) else said  # type: ignore[arg-type, return-value]


@dataclass(slots=True)
class Elsewhere:
    """Another site, whose pages may call the server."""

    url: str
    pages: list[tuple[str, str]] = field(default_factory=list)

    def publish(self, html: str, policy: str = "") -> str:
        """The address this page can be opened at."""
        self.pages.append((html, policy))
        return f"{self.url}/{len(self.pages) - 1}"


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def site() -> AsyncIterator[Elsewhere]:
    app = FastAPI()
    async with listen(app) as url:
        elsewhere = Elsewhere(url)

        @app.get("/{number}")
        @app.get("/{number}/{path:path}")
        async def page(number: int, path: str = "") -> Response:
            html, policy = elsewhere.pages[number]
            headers = {"content-security-policy": policy} if policy else {}
            return Response(html, media_type="text/html", headers=headers)

        yield elsewhere


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def staged(
    site: Elsewhere, shelved: Path, model_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[ServedBook, Part]]:
    part = Part(ANSWER)
    folder = tmp_path_factory.mktemp("browser")
    settings = settings_for(
        shelved, model_folder, folder, retrieval_mode="prefetch", followups="rule", answer_seconds=120.0,
        first_token_seconds=60.0, rate_limit_address="100000/minute", cors_origins=(site.url,),
        max_conversation_turns=10_000,
    )  # fmt: skip
    async with serve_book(settings, script=part) as served:
        yield served, part


@pytest.fixture
def book(staged: tuple[ServedBook, Part]) -> ServedBook:
    """The book on the network, with a model that answers well."""
    staged[1].reply = ANSWER
    return staged[0]


@pytest.fixture
def model(staged: tuple[ServedBook, Part]) -> Part:
    return staged[1]


async def violations(page: Page) -> list[tuple[str, str]]:
    """What axe finds wrong for those who do not see the page or do not use a mouse."""
    found = (await Axe().run(page)).response["violations"]
    return [(each["id"], str([node["target"] for node in each["nodes"]])) for each in found]
