"""The widget on other sites' pages: with a strict CSP, hostile scripts, a small screen, or right-to-left text."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from bythebook.testing import ScriptedReply
from tests.browser.conftest import HORN, Elsewhere, Opening, Part, violations
from tests.support.server import ServedBook

pytestmark = pytest.mark.asyncio(loop_scope="session")

TEXT = "The keeper trims the wick at dusk, and looks for fog."


def host(book: ServedBook, attributes: str = "", head: str = "", lang: str = "en") -> str:
    return (
        f'<!doctype html><html lang="{lang}"><head><title>A site</title>{head}</head><body><main><h1>A site</h1>'
        f'<p id="text">{TEXT}</p><label>Search <input id="field"></label></main>'
        f'<script src="{book.url}/widget.js" {attributes} async></script></body></html>'
    )


def strict(book: ServedBook) -> str:
    return (
        f"default-src 'none'; script-src {book.url}; connect-src {book.url}; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )


LIVELY = """<link rel="icon" href="data:,"><script>
  Object.prototype.extend = () => {};
  Array.prototype.last = function () { return this.at(-1); };
  for (const name of ['keydown', 'keyup', 'keypress']) addEventListener(name, (event) => event.preventDefault());
  document.addEventListener('DOMContentLoaded', () => document.body.replaceChildren('Nothing is left of the page.'));
</script>"""
"""Typical page scripts: they extend prototypes, handle all keys, and replace the body."""

HOSTILE = (
    "<style>* { all: unset !important; color: red !important; font: 60px serif !important; }"
    "by-the-book { display: none !important; } button { visibility: hidden !important; }</style>"
)


async def test_opens_by_button_and_keys_and_restores_the_focus(
    book: ServedBook, window: Opening, site: Elsewhere
) -> None:
    async with window() as one:
        page = one.page
        await page.goto(site.publish(host(book, 'data-title="Ask the keeper"'), strict(book)))
        button, panel = page.get_by_role("button", name="Ask the keeper"), page.get_by_role("dialog")
        await button.click()
        await expect(panel.get_by_role("textbox")).to_be_focused()
        await page.keyboard.press("Escape")
        await expect(panel).to_be_hidden()
        await expect(button).to_be_focused()
        for keys in ("Control+k", "Meta+k", "/"):
            await page.keyboard.press(keys)
            await expect(panel).to_be_visible()
            await page.keyboard.press("Escape")
        await page.locator("#field").focus()
        await page.keyboard.press("/")
        await expect(page.locator("#field")).to_have_value("/")
        await expect(panel).to_be_hidden()
        assert one.troubles == []


async def test_works_under_a_strict_policy_and_keeps_its_conversation_over_page_loads(
    book: ServedBook, window: Opening, site: Elsewhere
) -> None:
    async with window() as one:
        page = one.page
        address = site.publish(host(book), strict(book))
        await page.goto(address)
        await page.keyboard.press("Control+k")
        await page.keyboard.type("How often does the horn sound?")
        await page.keyboard.press("Enter")
        await expect(page.locator(".answer")).to_contain_text(HORN)
        await expect(page.locator(".actions")).to_be_visible()
        await page.goto(f"{address}/elsewhere")
        await expect(page.get_by_role("dialog")).to_be_visible()
        await expect(page.locator(".answer")).to_contain_text(HORN)
        assert one.troubles == []
        assert one.asked_of == {site.url, book.url}
        assert await one.context.cookies() == []


async def test_hostile_page_styles_do_not_change_the_widget(book: ServedBook, window: Opening, site: Elsewhere) -> None:
    async with window() as one:
        page = one.page
        await page.goto(site.publish(host(book, head=HOSTILE)))
        button = page.locator(".launcher")
        await expect(button).to_be_visible()
        await expect(button).to_have_css("width", "56px")
        await button.click()
        await expect(page.locator(".panel h2")).to_have_css("font-size", "16px")
        await expect(page.locator(".panel h2")).not_to_have_css("color", "rgb(255, 0, 0)")


async def test_page_scripts_do_not_break_the_widget(book: ServedBook, window: Opening, site: Elsewhere) -> None:
    async with window() as one:
        page = one.page
        await page.goto(site.publish(host(book, head=LIVELY)))
        await page.locator(".launcher").click()
        await page.keyboard.type("How often and/or when does the horn sound?")
        await expect(page.locator("textarea")).to_have_value("How often and/or when does the horn sound?")
        await page.keyboard.press("Enter")
        await expect(page.locator(".answer")).to_contain_text(HORN)
        await expect(page.locator(".actions")).to_be_visible()
        assert one.troubles == []


async def test_the_widget_applies_the_options_of_the_author(book: ServedBook, window: Opening, site: Elsewhere) -> None:
    chosen = (
        'data-title="Der Wärter" data-color="#ffcc00" data-position="left" data-questions="Wann? | Wo?" data-lang="de"'
    )
    async with window(color_scheme="dark", reduced_motion="reduce") as one:
        page = one.page
        await page.goto(site.publish(host(book, f'{chosen} data-theme="light"')))
        button = page.get_by_role("button", name="Der Wärter")
        await expect(button).to_have_css("background-color", "rgb(255, 204, 0)")
        await expect(button).to_have_css("color", "rgb(0, 0, 0)")
        await button.click()
        panel = page.get_by_role("dialog", name="Der Wärter")
        for part in (button, panel):
            assert ((await part.bounding_box()) or {"x": 999})["x"] == 20
        await expect(panel).to_have_css("font-size", "15px")
        await expect(panel).to_have_css("background-color", "rgb(255, 255, 255)")
        await expect(panel.locator(".offer")).to_have_text(["Wann?", "Wo?"])
        await expect(panel.get_by_role("textbox", name="Deine Frage")).to_be_focused()


async def test_selected_text_can_be_asked_about(
    book: ServedBook, model: Part, window: Opening, site: Elsewhere
) -> None:
    model.reply = ScriptedReply(f"{TEXT} [1]")
    async with window() as one:
        page = one.page
        await page.goto(site.publish(host(book)))
        await expect(page.locator(".launcher")).to_be_visible()
        await page.locator("#text").select_text()
        offer = page.get_by_role("button", name="Ask about this")
        before = await offer.bounding_box()
        await page.evaluate(
            "document.body.style.paddingTop = '100px'; document.body.style.height = '300vh'; scrollTo(0, 60)"
        )
        await expect(offer).not_to_have_css("top", f"{(before or {'y': 0})['y']}px")
        await offer.click()
        await page.get_by_role("combobox", name="Marked text").select_option("only")
        async with page.expect_request("**/v1/ask") as asked:
            await page.get_by_role("textbox", name="Your question").fill("What does the keeper do?")
            await page.keyboard.press("Enter")
        sent = (await asked.value).post_data_json or {}
        assert (sent["selected_text"], sent["selection_mode"]) == (TEXT, "only")
        await expect(page.locator(".answer")).to_contain_text("trims the wick")


async def test_two_widgets_work_side_by_side(book: ServedBook, window: Opening, site: Elsewhere) -> None:
    second = f'<script src="{book.url}/widget.js" data-site="other" data-position="left" data-title="Second"></script>'
    async with window() as one:
        page = one.page
        await page.goto(site.publish(host(book, 'data-title="First"', head=second)))
        await page.get_by_role("button", name="First").click()
        await expect(page.get_by_role("dialog", name="First")).to_be_visible()
        await page.get_by_role("button", name="Second").click()
        await expect(page.get_by_role("dialog", name="Second")).to_be_visible()
        await page.locator("#text").select_text()
        await expect(page.get_by_role("button", name="Ask about this")).to_have_count(1)


async def test_on_a_phone_the_widget_fills_the_screen_and_traps_the_focus(
    book: ServedBook, window: Opening, site: Elsewhere
) -> None:
    async with window(width=320, height=640, reduced_motion="reduce") as one:
        page = one.page
        await page.goto(site.publish(host(book)))
        await page.locator(".launcher").click()
        box = await page.get_by_role("dialog").bounding_box()
        assert box == {"x": 0, "y": 0, "width": 320, "height": 640}
        for _ in range(12):
            await page.keyboard.press("Tab")
            assert await page.evaluate("document.activeElement.localName") == "by-the-book"


@pytest.mark.parametrize(("lang", "says", "side"), [("de", "Stell eine Frage…", "ltr"), ("ar", "اطرح سؤالاً…", "rtl")])
async def test_uses_the_language_of_the_page(
    book: ServedBook, window: Opening, site: Elsewhere, lang: str, says: str, side: str
) -> None:
    async with window() as one:
        page = one.page
        await page.goto(site.publish(host(book, lang=lang)))
        await page.locator(".launcher").click()
        await expect(page.get_by_role("textbox").last).to_have_attribute("placeholder", says)
        await expect(page.locator(".wrap")).to_have_css("direction", side)
        assert await violations(page) == []
