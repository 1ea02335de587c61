"""The widget on sites that generators made, put there as the manual says: from the button to the very sentence."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from fastapi import FastAPI, Response
from playwright.async_api import Page, Route, expect

from bythebook import Book, Settings
from bythebook.testing import cooperative_model
from tests.browser.conftest import Opening
from tests.support import widget_recipes
from tests.support.generated_sites import SITES, Generated, unpack_real, write_small
from tests.support.server import listen, serve_book, settings_for

pytestmark = pytest.mark.asyncio(loop_scope="session")


@dataclass(slots=True)
class Published:
    """The sites, and the book made of their pages."""

    url: str
    folder: Path
    book: str = ""

    def page(self, path: str) -> str:
        html = (self.folder / path).read_text(encoding="utf-8")
        if path.startswith("sphinx"):
            return html.replace("<head>", f"<head>{widget_recipes.tag('sphinx', self.book)}")
        if "docusaurus" in path:
            return html.replace("<head>", f"<head>{widget_recipes.tag('docusaurus', self.book)}", 1)
        kind = "material" if "material" in path else "plain"
        return html.replace("</body>", f"{widget_recipes.tag(kind, self.book)}</body>")


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def published(
    collections: Path | None, model_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Published]:
    work = tmp_path_factory.mktemp("generated")
    folder = work / "pages"
    write_small(folder)
    for name in ("plain", "sphinx"):
        head = f"<link rel='icon' href='data:,'><title>{name}</title>"
        html = f"<html lang='en'><head>{head}</head><body><h1>{name}</h1></body></html>"
        (folder / f"{name}.html").write_text(html, encoding="utf-8")
    if collections is not None:
        unpack_real(folder, collections)
    app = FastAPI()
    async with listen(app) as url:
        site = Published(url, folder)

        @app.get("/{path:path}")
        async def page(path: str) -> Response:
            if not path.endswith(".html") or not (folder / path).is_file():
                return Response(status_code=404)
            return Response(site.page(path), media_type="text/html")

        data = {"data_dir": work / "data", "model_folder": model_folder, "site_url": url}
        async with Book.open(Settings.load(data, folder=work)) as book:
            await book.ingest(folder)
        more = {
            "cors_origins": (url,),
            "retrieval_mode": "prefetch",
            "first_token_seconds": 60.0,
            "answer_seconds": 120.0,
        }
        async with serve_book(
            settings_for(work / "data", model_folder, work, **more), script=cooperative_model
        ) as served:
            site.book = served.url
            yield site


async def opened_by_keys_that_are_free(page: Page, site: Generated) -> None:
    panel = page.get_by_role("dialog", name="Ask the book")
    await page.locator(".launcher").click()
    await expect(panel.get_by_role("textbox")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(panel).to_be_hidden()
    await page.evaluate("document.activeElement.blur()")
    await page.keyboard.press("/")
    if site.slash_is_ours:
        await expect(panel).to_be_visible()
        await page.keyboard.press("Escape")
    else:
        await expect(panel).to_be_hidden()
    await page.evaluate("document.activeElement.blur()")
    await page.keyboard.press("Control+k")
    await expect(panel).to_be_visible()


async def asked_and_proven(page: Page, site: Generated) -> None:
    await page.get_by_role("textbox", name="Your question").fill(site.question)
    await page.keyboard.press("Enter")
    await expect(page.locator(".actions")).to_be_visible()
    await expect(page.locator(".answer")).to_contain_text(site.says)
    quoted = page.locator(".sources li").filter(has_text=site.says).first
    number = await quoted.get_attribute("value")
    await page.locator(".answer .cite").filter(has_text=number or "?").first.hover()
    await expect(page.get_by_role("tooltip")).to_contain_text(site.says)
    await expect(page.locator(".answer p").first).to_have_css("letter-spacing", "normal")
    await expect(page.locator(".answer p").first).to_have_css("text-transform", "none")


async def asked_about_a_selection(page: Page, site: Generated) -> None:
    await page.locator("main p, article p").first.select_text()
    await page.get_by_role("button", name="Ask about this").click()
    for mode in ("boost", "only"):
        await page.get_by_role("combobox", name="Marked text").select_option(mode)
    async with page.expect_request("**/v1/ask") as asked:
        await page.get_by_role("textbox", name="Your question").fill("What does this say?")
        await page.keyboard.press("Enter")
    sent = (await asked.value).post_data_json or {}
    assert sent["selection_mode"] == "only"
    assert len(sent["selected_text"]) > 20
    await expect(page.locator(".actions")).to_have_count(2)


@pytest.mark.parametrize("name", SITES)
async def test_on_a_generated_site_a_citation_leads_to_the_sentence(
    published: Published, window: Opening, name: str
) -> None:
    site = SITES[name]
    if not (published.folder / site.first).exists():
        pytest.skip("no real sites here: give the folder that has docs/site_*.tar.gz with --collections")

    async def only_here(route: Route) -> None:
        await (route.continue_() if route.request.url.startswith("http://127.0.0.1") else route.abort())

    async with window() as one:
        page = one.page
        await one.context.route("**/*", only_here)
        await page.goto(f"{published.url}/{site.first}")
        await opened_by_keys_that_are_free(page, site)
        await asked_and_proven(page, site)
        await asked_about_a_selection(page, site)

        await page.evaluate(site.swap, f"/{site.then}")
        await expect(page).to_have_url(f"{published.url}/{site.then}")
        await expect(page.locator("by-the-book")).to_have_count(1)
        await expect(page.locator("article .answer")).to_have_count(2)
        await expect(page.locator(".wrap")).to_have_css("color-scheme", "dark")

        quoted = page.locator(".sources li").filter(has_text=site.says).first
        await quoted.get_by_role("link").click()
        await page.wait_for_url(f"**/{site.first}*")
        await expect(page.locator("main, article").get_by_text(site.says).first).to_be_in_viewport()
        assert await page.evaluate("scrollY") > 0
        await expect(page.locator("article .answer")).to_have_count(2)
        assert one.asked_of >= {published.url, published.book}


MARKED = """async (picture) => {
  const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${picture}`)).blob());
  const canvas = new OffscreenCanvas(image.width, image.height).getContext('2d');
  canvas.drawImage(image, 0, 0);
  const { data } = canvas.getImageData(0, 0, image.width, image.height);
  let found = 0;
  for (let at = 0; at < data.length; at += 4) found += data[at] === 255 && data[at + 1] === 0 && data[at + 2] === 255;
  return found;
}"""
"""How many points of a picture have the colour in which the site shows what a link is about."""


@pytest.mark.parametrize("start", ["lens", "boats"])
async def test_on_a_phone_a_citation_highlights_the_sentence(published: Published, window: Opening, start: str) -> None:
    """Also if the sentence is on the current page, behind the panel."""
    site = SITES["small docusaurus"]
    async with window(width=400, height=700, reduced_motion="reduce") as one:
        page = one.page
        await page.goto(f"{published.url}/small/docusaurus/{start}.html")
        await page.locator(".launcher").click()
        await asked_and_proven(page, site)
        await page.locator(".answer .cite").filter(has_text="1").first.click()
        await page.wait_for_url(f"**/{site.first}*")
        await expect(page.get_by_role("dialog")).to_be_hidden()
        await expect(page.locator("main").get_by_text(site.says)).to_be_in_viewport()
        picture = base64.b64encode(await page.screenshot()).decode()
        assert await page.evaluate(MARKED, picture) > 1000


@pytest.mark.parametrize("name", ["plain", "sphinx"])
async def test_the_recipe_of_the_manual_works(published: Published, window: Opening, name: str) -> None:
    async with window() as one:
        await one.page.goto(f"{published.url}/{name}.html")
        await one.page.locator(".launcher").click()
        await expect(one.page.get_by_role("dialog").get_by_role("textbox")).to_be_focused()
        await asked_and_proven(one.page, SITES["small docusaurus"])
        assert one.troubles == []


async def test_configured_shortcut_keys_open_only_the_widget(published: Published, window: Opening) -> None:
    async with window() as one:
        page = one.page
        await page.goto(f"{published.url}/small/material/clock.html")
        await page.locator("by-the-book").evaluate("(assistant) => { assistant.chosen.keys = '/'; }")
        await page.keyboard.press("Control+k")
        await expect(page.get_by_role("dialog")).to_be_hidden()
        await page.keyboard.press("/")
        await expect(page.get_by_role("dialog").get_by_role("textbox")).to_be_focused()
