"""Everything a reader can be in the middle of: waiting, reading, stopped, refused, too long, too fast, gone."""

from __future__ import annotations

import asyncio

import pytest
from playwright.async_api import Page, Route, expect

from bythebook.testing import Fault, ScriptedReply
from tests.browser.conftest import HORN, Elsewhere, Opening, Part, violations
from tests.support.server import ServedBook

pytestmark = pytest.mark.asyncio(loop_scope="session")

QUESTION = "How often does the horn sound?"
SLOWLY = ScriptedReply(f"{HORN}. [1]\n\n- It is loud.\n- " + "It is heard far away. " * 100, delay_token=0.5)


async def ask(page: Page) -> None:
    await page.get_by_role("textbox", name="Your question").fill(QUESTION)
    await page.keyboard.press("Enter")


async def test_a_slow_start_shows_a_message(book: ServedBook, model: Part, window: Opening) -> None:
    model.reply = ScriptedReply(fault=Fault.HANG)
    async with window() as one:
        page = one.page
        await page.clock.install()
        await page.goto(book.url)
        async with page.expect_response("**/v1/ask"):
            await ask(page)
        await page.clock.run_for(5_000)
        await expect(page.locator(".status")).to_have_text("Still at it. This takes a little longer than usual.")
        await page.get_by_role("button", name="Stop").click()
        await expect(page.locator(".status")).to_have_text("Stopped.")


@pytest.mark.parametrize(
    ("lang", "says"),
    [("en", "You can ask again in 3 seconds."), ("ar", "يمكنك السؤال مجدداً بعد")],
)
async def test_a_rate_limited_reader_sees_a_countdown(
    book: ServedBook, window: Opening, site: Elsewhere, lang: str, says: str
) -> None:
    script = f'<script src="{book.url}/widget.js" data-lang="{lang}" async></script>'
    address = site.publish(f'<!doctype html><html lang="{lang}"><title>A site</title><h1>A site</h1>{script}</html>')
    received = {"error": "rate_limit", "user_message": "Please wait 3 seconds.", "retry_after": 2.5}
    allowed = {"access-control-allow-origin": site.url}
    async with window() as one:
        page = one.page
        await page.clock.install()
        await page.goto(address)
        await page.keyboard.press("Control+k")
        await page.route("**/v1/ask", lambda route: route.fulfill(status=429, json=received, headers=allowed))
        await page.locator("textarea").fill(QUESTION)
        await page.keyboard.press("Enter")
        again = page.locator(".again button")
        left = page.locator(".again .due")
        await expect(again).to_be_disabled()
        await expect(left).to_contain_text(says)
        if lang == "en":
            await page.clock.run_for(1_000)
            await expect(left).to_have_text("You can ask again in 2 seconds.")
        await page.clock.run_for(3_000)
        await expect(left).to_have_text("")
        await page.unroute("**/v1/ask")
        await again.click()
        await expect(page.locator(".answer")).to_contain_text(HORN)


@pytest.mark.parametrize(
    ("error", "says", "button"),
    [
        ("timeout", "The answer took too long.", "Try again"),
        ("unavailable", "The book cannot be reached right now.", "Try again"),
        ("context_overflow", "This conversation has become too long.", "New conversation"),
        ("something_new", "In the server's own words.", "Try again"),
    ],
)
async def test_an_error_message_says_what_to_do(
    book: ServedBook, window: Opening, error: str, says: str, button: str
) -> None:
    received = {"error": error, "user_message": "In the server's own words."}
    async with window() as one:
        page = one.page
        await page.goto(book.url)
        await page.route("**/v1/ask", lambda route: route.fulfill(status=503, json=received))
        await ask(page)
        await expect(page.locator(".status.error")).to_have_text(says)
        await page.unroute("**/v1/ask")
        await page.locator(".below").get_by_role("button", name=button).click()
        await expect(page.locator(".welcome" if error == "context_overflow" else ".actions")).to_be_visible()


async def test_a_conversation_deleted_on_the_server_is_replaced(book: ServedBook, window: Opening) -> None:
    async with window() as one:
        page = one.page
        await page.goto(book.url)
        await ask(page)
        await expect(page.locator(".actions")).to_be_visible()
        session = await page.evaluate("Object.entries(localStorage).find(([key]) => key.endsWith(':session'))[1]")
        assert (await book.client.delete(f"/v1/sessions/{session}")).status_code == 204
        await ask(page)
        await expect(page.locator(".actions")).to_have_count(2)


async def test_a_question_survives_leaving_the_page(book: ServedBook, model: Part, window: Opening) -> None:
    model.reply = SLOWLY
    async with window() as one:
        page = one.page
        await page.goto(book.url)
        await ask(page)
        await expect(page.locator(".answer p")).to_contain_text("The horn")
        await page.reload()
        await expect(page.get_by_role("textbox", name="Your question")).to_have_value(QUESTION)
        model.reply = ScriptedReply(f"{HORN}. [1]")
        await page.keyboard.press("Tab")
        await page.get_by_role("button", name="Ask").click()
        await expect(page.locator(".actions")).to_be_visible()
        await page.reload()
        await expect(page.locator(".actions")).to_be_visible()
        await expect(page.get_by_role("textbox", name="Your question")).to_have_value("")


async def test_loaded_history_appears_before_a_new_question(book: ServedBook, window: Opening) -> None:
    async with window() as one:
        page = one.page
        await page.goto(book.url)
        await ask(page)
        await expect(page.locator(".actions")).to_be_visible()
        asked = asyncio.Event()

        async def late(route: Route) -> None:
            await asked.wait()
            await route.continue_()

        await page.route("**/messages", late)
        await page.reload()
        await page.get_by_role("textbox", name="Your question").fill("And in fog?")
        await page.keyboard.press("Enter")
        await expect(page.locator("article")).to_have_attribute("aria-label", "And in fog?")
        asked.set()
        await expect(page.locator(".actions")).to_have_count(2)
        await expect(page.locator("article").first).to_have_attribute("aria-label", QUESTION)
        await expect(page.locator("article").last).to_have_attribute("aria-label", "And in fog?")


async def test_code_tables_and_maths_are_rendered(book: ServedBook, model: Part, window: Opening) -> None:
    said = "```console\n$ horn --long\nIt sounds.\n```\n\n| a | b |\n|:--|--:|\n| one | two |\n\n$$\na\n- b\n$$\n\n"
    model.reply = ScriptedReply(f"{said}It is loud and so on.", fault=Fault.HANG, fault_after=len(said.split()) + 3)
    async with window() as one:
        page = one.page
        await page.goto(book.url)
        await ask(page)
        await expect(page.locator(".answer")).to_contain_text("It is loud")
        await expect(page.locator(".answer pre span", has_text="It sounds.")).to_have_css("display", "inline")
        cells = [page.locator(".answer td", has_text=text) for text in ("one", "two")]
        for name in ("color", "font-size"):
            same = await cells[1].evaluate("(cell, name) => getComputedStyle(cell)[name]", name)
            await expect(cells[0]).to_have_css(name, same)
        await expect(page.locator(".maths")).to_have_css("white-space", "pre-wrap")
        await expect(page.locator(".maths")).to_have_text("$$\na\n- b\n$$")
        await page.get_by_role("button", name="Stop").click()


async def test_an_answer_is_copied_with_its_sources_also_after_a_reload(book: ServedBook, window: Opening) -> None:
    async with window(permissions=["clipboard-read", "clipboard-write"]) as one:
        page = one.page
        await page.goto(book.url)
        await ask(page)
        await page.get_by_role("button", name="Copy", exact=True).click()
        await expect(page.locator(".rated")).to_have_text("Copied")
        copied = await page.evaluate("navigator.clipboard.readText()")
        assert copied.startswith(f"{HORN} [1].\n[1] Fog signals: ")
        await page.reload()
        await page.evaluate("navigator.clipboard.writeText('')")
        await page.get_by_role("button", name="Copy", exact=True).click()
        await expect(page.locator(".rated")).to_have_text("Copied")
        assert await page.evaluate("navigator.clipboard.readText()") == copied
        await page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
        await page.get_by_role("button", name="Copy", exact=True).click()
        await expect(page.locator(".rated")).to_have_text("Copied")


async def test_everything_is_reachable_by_keyboard(book: ServedBook, window: Opening, site: Elsewhere) -> None:
    """No mouse at all: open, ask, read a quote, rate, close."""
    async with window() as one:
        page = one.page
        script = f'<script src="{book.url}/widget.js" async></script>'
        await page.goto(site.publish(f'<!doctype html><html lang="en"><title>A</title><h1>A</h1>{script}</html>'))
        await page.keyboard.press("/")
        await page.keyboard.type(QUESTION)
        await page.keyboard.press("Enter")
        await expect(page.locator(".actions")).to_be_visible()
        reached = set()
        for _ in range(20):
            await page.keyboard.press("Shift+Tab")
            reached.add(await page.evaluate(FOCUSED))
        assert {"Copy", "Try again", "Helpful", "Not helpful", "New conversation", "Close"} <= reached
        await page.get_by_role("button", name="Not helpful").focus()
        await page.keyboard.press("Enter")
        await page.keyboard.type("Too short")
        await page.keyboard.press("Enter")
        await expect(page.locator(".rated")).to_have_text("Thank you.")
        await expect(page.get_by_role("button", name="Not helpful")).to_be_focused()
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("dialog")).to_be_hidden()


FOCUSED = """() => {
  const focused = document.activeElement?.shadowRoot?.activeElement;
  return focused ? focused.getAttribute('aria-label') || focused.textContent : '';
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("where", ["page", "widget"])
async def test_axe_finds_no_violations_in_any_state(
    book: ServedBook, model: Part, window: Opening, site: Elsewhere, scheme: str, where: str
) -> None:
    async def refuse(route: Route) -> None:
        received = {"error": "rate_limit", "user_message": "Busy.", "retry_after": 40}
        await route.fulfill(status=429, json=received, headers={"access-control-allow-origin": site.url})

    style = "<style>:root { color-scheme: light dark }</style>"
    script = f'<script src="{book.url}/widget.js" data-questions="What is fog?|Who rings?" async></script>'
    host = f'<!doctype html><html lang="en"><title>A</title>{style}<main><h1>A</h1></main>{script}</html>'
    found: dict[str, list[tuple[str, str]]] = {}
    async with window(color_scheme=scheme, reduced_motion="reduce") as one:
        page = one.page
        await page.goto(book.url if where == "page" else site.publish(host))
        if where == "widget":
            await page.locator(".launcher").click()
        await expect(page.locator(".offer").first).to_be_visible()
        found["open"] = await violations(page)
        model.reply = SLOWLY
        await ask(page)
        await expect(page.locator(".answer p")).to_contain_text("The horn")
        found["streaming"] = await violations(page)
        await page.get_by_role("button", name="Stop").click()
        model.reply = ScriptedReply(f"{HORN}. [1]")
        await page.get_by_role("button", name="Try again").click()
        await expect(page.locator(".actions")).to_be_visible()
        await page.get_by_role("button", name="Not helpful").click()
        await page.locator(".answer .cite").hover()
        found["answered"] = await violations(page)
        await page.route("**/v1/ask", refuse)
        await ask(page)
        await expect(page.locator(".status.error")).to_be_visible()
        found["error"] = await violations(page)
    assert found == {"open": [], "streaming": [], "answered": [], "error": []}


async def test_reduced_motion_disables_animations(book: ServedBook, model: Part, window: Opening) -> None:
    model.reply = SLOWLY
    moving = "document.querySelector('by-the-book').shadowRoot.getAnimations().length"
    for motion, expected in (("reduce", False), ("no-preference", True)):
        async with window(reduced_motion=motion) as one:
            await one.page.goto(book.url)
            await ask(one.page)
            await expect(one.page.locator("[aria-busy] .status")).to_be_visible()
            assert bool(await one.page.evaluate(moving)) is expected
            await one.page.get_by_role("button", name="Stop").click()


@pytest.mark.parametrize("zoom", [2, 4])
async def test_nothing_overflows_when_the_page_is_zoomed(book: ServedBook, window: Opening, zoom: int) -> None:
    """A browser that zooms in has so many fewer pixels to lay out in."""
    async with window(width=1280 // zoom, height=800 // zoom, device_scale_factor=zoom) as one:
        page = one.page
        await page.goto(book.url)
        await ask(page)
        await expect(page.locator(".actions")).to_be_visible()
        await expect(page.get_by_role("textbox")).to_be_in_viewport()
        thread = "document.querySelector('by-the-book').shadowRoot.querySelector('.thread')"
        assert await page.evaluate(f"{thread}.scrollWidth <= {thread}.clientWidth")
        assert await page.evaluate(f"{thread}.clientHeight") > 40
