"""A server that requires keys: its own page and other sites use a site token, and restore their conversations."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import expect

from bythebook.access.api_keys import ApiKeyStore
from tests.browser.conftest import ANSWER, HORN, Elsewhere, Opening
from tests.support.server import ServedBook, serve_book, settings_for

pytestmark = pytest.mark.asyncio(loop_scope="session")

QUESTION = "How often does the horn sound?"
BUDGET = 5


@dataclass(frozen=True, slots=True)
class Closed:
    served: ServedBook
    site_token: str


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def closed(
    site: Elsewhere, shelved: Path, model_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Closed]:
    folder = tmp_path_factory.mktemp("closed")
    settings = settings_for(shelved, model_folder, folder, retrieval_mode="prefetch", followups="rule")
    async with serve_book(settings, script=ANSWER) as served:
        key_store = ApiKeyStore(await served.book.database())
        _, own = await key_store.create_site("the page itself", [served.url], budget=100)
        _, token = await key_store.create_site("a site", [site.url], budget=BUDGET)
        # Its owner would have known the address before.
        door = served.app.state.context
        served.app.state.context = replace(door, settings=replace(door.settings, page_token=own))
        yield Closed(served, token)


async def test_the_page_of_a_closed_server_keeps_its_conversation_over_page_loads(
    closed: Closed, window: Opening
) -> None:
    async with window() as one:
        page = one.page
        await page.goto(closed.served.url)
        await page.get_by_role("textbox").fill(QUESTION)
        await page.keyboard.press("Enter")
        await expect(page.locator(".actions")).to_be_visible()
        await page.reload()
        await expect(page.locator(".answer")).to_contain_text(HORN)
        await page.get_by_role("textbox").fill("And how long is a blast?")
        async with page.expect_request("**/v1/ask") as asked:
            await page.keyboard.press("Enter")
        await expect(page.locator("article")).to_have_count(2)
        await expect(page.locator(".actions")).to_have_count(2)
        await page.reload()
        await expect(page.locator("article")).to_have_count(2)
        session = await page.evaluate("Object.entries(localStorage).find(([key]) => key.endsWith(':session'))[1]")
        assert ((await asked.value).post_data_json or {})["session_id"] == session
        assert one.troubles == []
        assert await one.context.cookies() == []


async def test_a_site_keeps_its_conversation_until_its_quota_is_used_up(
    closed: Closed, site: Elsewhere, window: Opening
) -> None:
    script = f'<script src="{closed.served.url}/widget.js" data-site="{closed.site_token}" async></script>'
    address = site.publish(f'<!doctype html><html lang="en"><title>A site</title><h1>A site</h1>{script}</html>')
    async with window() as one:
        page = one.page
        await page.goto(address)
        await page.keyboard.press("Control+k")
        for asked in range(BUDGET):
            await page.get_by_role("textbox").fill(QUESTION)
            await page.keyboard.press("Enter")
            await expect(page.locator(".actions")).to_have_count(asked + 1)
        await page.goto(f"{address}/next")
        await expect(page.locator("article")).to_have_count(BUDGET)
        await page.get_by_role("textbox").fill(QUESTION)
        await page.keyboard.press("Enter")
        await expect(page.locator(".status.error")).to_have_text("Many are asking right now.")
        await expect(page.locator(".again")).to_contain_text("You can ask again in")
        await expect(page.get_by_role("button", name="Try again").last).to_be_disabled()


async def test_a_site_token_does_not_work_on_another_site(closed: Closed, site: Elsewhere, window: Opening) -> None:
    """Also where the thief's page only reads."""
    script = f'<script src="{closed.served.url}/widget.js" data-site="{closed.site_token}" async></script>'
    stolen = site.publish(f'<!doctype html><html lang="en"><title>A thief</title><h1>A thief</h1>{script}</html>')
    async with window() as one:
        page = one.page
        await page.goto(stolen.replace("127.0.0.1", "localhost"))
        await page.keyboard.press("Control+k")
        await page.get_by_role("textbox").fill(QUESTION)
        await page.keyboard.press("Enter")
        await expect(page.locator(".status.error")).to_be_visible()
        read = """async ([url, token]) => {
          const headers = { authorization: `Bearer ${token}` };
          return fetch(url + '/v1/models', { headers }).then(() => 'read', () => 'refused');
        }"""
        assert await page.evaluate(read, [closed.served.url, closed.site_token]) == "refused"
        plain = "async (url) => fetch(url + '/v1/models', { mode: 'no-cors' }).then((heard) => heard.type)"
        assert await page.evaluate(plain, closed.served.url) == "opaque"
