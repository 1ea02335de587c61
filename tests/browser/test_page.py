"""The chat page, as a reader uses it."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from bythebook.testing import ScriptedReply
from tests.browser.conftest import HORN, Opening, Part, violations
from tests.support.server import ServedBook

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_reader_can_ask_read_the_quote_and_rate_the_answer(book: ServedBook, window: Opening) -> None:
    async with window() as one:
        page = one.page
        await page.goto(book.url)
        await expect(page).to_have_title("The Lighthouse Handbook")
        await page.get_by_role("textbox").fill("How often does the horn sound?")
        await page.get_by_role("textbox").press("Enter")
        await expect(page.locator(".answer")).to_contain_text(HORN)
        await expect(page.locator(".sources li")).to_contain_text([HORN])
        await page.locator(".answer .cite").hover()
        await expect(page.get_by_role("tooltip")).to_contain_text(HORN)
        await page.get_by_role("button", name="Not helpful").click()
        await page.get_by_role("textbox", name="What was wrong?").fill("Too short")
        await page.get_by_role("button", name="Send").click()
        await expect(page.locator(".rated")).to_have_text("Thank you.")
        assert one.troubles == []
        assert one.asked_of == {book.url}


async def test_a_conversation_survives_a_page_reload(book: ServedBook, window: Opening) -> None:
    async with window() as one:
        page = one.page
        await page.goto(book.url)
        await page.get_by_role("textbox").fill("How often does the horn sound?")
        await page.get_by_role("textbox").press("Enter")
        await expect(page.locator(".actions")).to_be_visible()
        listed = await page.locator(".sources li").all_inner_texts()
        await page.reload()
        await expect(page.locator(".answer")).to_contain_text(HORN)
        assert await page.locator(".sources li").all_inner_texts() == listed
        await page.get_by_role("button", name="Helpful", exact=True).click()
        await expect(page.locator(".rated")).to_have_text("Thank you.")
        await expect(page.get_by_role("button", name="Helpful", exact=True)).to_have_attribute("aria-pressed", "true")
        await page.get_by_role("button", name="New conversation").click()
        await expect(page.locator("article")).to_have_count(0)
        await page.reload()
        await expect(page.locator(".offer").first).to_be_visible()
        assert one.troubles == []


async def test_the_questions_after_small_talk_are_asked_by_a_click(book: ServedBook, window: Opening) -> None:
    async with window() as one:
        page = one.page
        await page.goto(book.url)
        await page.get_by_role("textbox").fill("hallo")
        await page.get_by_role("textbox").press("Enter")
        await expect(page.locator(".answer")).to_contain_text("Hallo!")
        await expect(page.locator(".answer li .offer")).to_have_count(3)
        await page.reload()
        await expect(page.locator(".answer li .offer")).to_have_count(3)
        question = await page.locator(".answer li .offer").first.inner_text()
        await page.locator(".answer li .offer").first.click()
        await expect(page.get_by_role("article", name=question).locator(".sources")).to_be_visible()
        assert one.troubles == []


async def test_a_streamed_answer_is_shown_and_can_be_stopped(book: ServedBook, model: Part, window: Opening) -> None:
    model.reply = ScriptedReply(f"{HORN}. [1]\n\n- It is loud.\n- " + "It is heard far away. " * 40, delay_token=0.2)
    async with window() as one:
        page = one.page
        await page.goto(book.url)
        await page.get_by_role("textbox").fill("How often does the horn sound?")
        await page.get_by_role("button", name="Ask").click()
        await expect(page.locator(".answer p")).to_contain_text("The horn gives")
        await page.get_by_role("button", name="Stop").click()
        await expect(page.locator(".status")).to_have_text("Stopped.")
        model.reply = ScriptedReply(f"{HORN}. [1]")
        await page.get_by_role("button", name="Try again").click()
        await expect(page.locator(".actions")).to_be_visible()
        await expect(page.locator(".answer")).to_contain_text(HORN)
        assert one.troubles == []


async def test_an_offline_reader_gets_a_message_and_can_retry(book: ServedBook, window: Opening) -> None:
    async with window() as one:
        page = one.page
        await page.goto(book.url)
        await expect(page.locator(".offer").first).to_be_visible()
        await one.context.set_offline(True)
        await page.get_by_role("textbox").fill("How often does the horn sound?")
        await page.get_by_role("textbox").press("Enter")
        await expect(page.locator(".status.error")).to_contain_text("You are offline")
        await one.context.set_offline(False)
        await page.get_by_role("button", name="Try again").click()
        await expect(page.locator(".answer")).to_contain_text(HORN)


async def test_a_chosen_section_restricts_the_search(book: ServedBook, window: Opening) -> None:
    async with window() as one:
        page = one.page
        await page.goto(book.url)
        await page.get_by_role("combobox", name="Look in").select_option("Keeping")
        async with page.expect_request("**/v1/ask") as asked:
            await page.get_by_role("textbox").fill("How often does the horn sound?")
            await page.get_by_role("textbox").press("Enter")
        assert ((await asked.value).post_data_json or {})["filters"] == {"module": "Keeping"}
        await expect(page.locator(".status")).to_have_text("")
        await expect(page.locator(".sources li").filter(has_text="Fog signals")).to_have_count(0)


@pytest.mark.parametrize("width", [320, 3840])
async def test_nothing_overflows_at_any_width(book: ServedBook, window: Opening, width: int) -> None:
    async with window(width=width) as one:
        page = one.page
        await page.goto(book.url)
        await page.get_by_role("textbox").fill("How often does the horn sound?")
        await page.get_by_role("textbox").press("Enter")
        await expect(page.locator(".actions")).to_be_visible()
        inner = await page.evaluate(
            "document.querySelector('by-the-book').shadowRoot.querySelector('.thread').scrollWidth"
        )
        assert inner <= width
        assert await page.evaluate("document.documentElement.scrollWidth") <= width


async def test_the_reference_is_styled_and_makes_no_other_requests(book: ServedBook, window: Opening) -> None:
    async with window() as one:
        page = one.page
        await page.goto(f"{book.url}/docs")
        await expect(page.locator("body")).to_have_css("display", "grid")
        await page.get_by_role("link", name="POST /v1/ask", exact=True).click()
        await expect(page.get_by_role("heading", name="POST /v1/ask", exact=True)).to_be_in_viewport()
        assert await violations(page) == []
        assert one.troubles == []
        assert one.asked_of == {book.url}
