"""The chat page, as a reader uses it."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from bythebook.testing import Reply
from tests.browser.conftest import HORN, Opening, Part, violations
from tests.support.server import Served

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_reader_asks_reads_the_quote_and_says_whether_it_helped(book: Served, window: Opening) -> None:
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


async def test_a_conversation_is_still_there_after_the_page_was_loaded_again(book: Served, window: Opening) -> None:
    async with window() as one:
        page = one.page
        await page.goto(book.url)
        await page.get_by_role("button", name="What does the book say about fog signals?").click()
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


async def test_an_answer_is_shown_while_it_comes_and_can_be_stopped(book: Served, model: Part, window: Opening) -> None:
    model.reply = Reply(f"{HORN}. [1]\n\n- It is loud.\n- " + "It is heard far away. " * 40, delay_token=0.2)
    async with window() as one:
        page = one.page
        await page.goto(book.url)
        await page.get_by_role("textbox").fill("How often does the horn sound?")
        await page.get_by_role("button", name="Ask").click()
        await expect(page.locator(".answer p")).to_contain_text("The horn gives")
        await page.get_by_role("button", name="Stop").click()
        await expect(page.locator(".status")).to_have_text("Stopped.")
        model.reply = Reply(f"{HORN}. [1]")
        await page.get_by_role("button", name="Try again").click()
        await expect(page.locator(".actions")).to_be_visible()
        await expect(page.locator(".answer")).to_contain_text(HORN)
        assert one.troubles == []


async def test_a_reader_who_is_offline_is_told_so_and_can_try_again(book: Served, window: Opening) -> None:
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


async def test_only_a_section_of_the_book_is_looked_in_when_one_is_chosen(book: Served, window: Opening) -> None:
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
async def test_nothing_sticks_out_at_any_width(book: Served, window: Opening, width: int) -> None:
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


async def test_the_reference_is_shown_in_its_own_style_and_asks_nobody_else(book: Served, window: Opening) -> None:
    async with window() as one:
        page = one.page
        await page.goto(f"{book.url}/docs")
        await expect(page.locator("body")).to_have_css("display", "grid")
        await page.get_by_role("link", name="POST /v1/ask", exact=True).click()
        await expect(page.get_by_role("heading", name="POST /v1/ask", exact=True)).to_be_in_viewport()
        assert await violations(page) == []
        assert one.troubles == []
        assert one.asked_of == {book.url}
