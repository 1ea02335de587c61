"""Where the thread is scrolled to while a reader asks one question after another."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from bythebook.testing import ScriptedReply
from tests.browser.conftest import HORN, Elsewhere, Opening, Part
from tests.support.server import ServedBook

pytestmark = pytest.mark.asyncio(loop_scope="session")

QUESTIONS = (
    "How often does the horn sound?",
    "How long is each blast?",
    "What does the keeper do at dusk?",
    "When is the lamp lit?",
    "How often does the horn sound in fog?",
)
LONG = ScriptedReply(f"{HORN}. [1]\n\n" * 12)

LAYOUT = """() => {
  const root = document.querySelector('by-the-book').shadowRoot;
  const box = (part) => root.querySelector(part).getBoundingClientRect();
  const [panel, header, form, thread] = ['.panel', 'header', '.panel > form', '.thread'].map(box);
  const last = [...root.querySelectorAll('article')].at(-1);
  const [question, answer] = ['.question', '.answer'].map((part) => last.querySelector(part).getBoundingClientRect());
  return {
    panelScrolled: root.querySelector('.panel').scrollTop,
    pageScrolled: scrollY,
    headerInView: Math.abs(header.top - panel.top) < 2,
    formInView: form.bottom <= panel.bottom && form.bottom <= innerHeight,
    questionInView: question.top >= thread.top - 1 && question.top < thread.bottom,
    answerInView: answer.top >= thread.top && answer.top < thread.bottom,
    blank: Math.max(0, thread.bottom - last.getBoundingClientRect().bottom - 20) / thread.height,
  };
}"""
IN_PLACE = {
    "panelScrolled": 0, "pageScrolled": 0, "headerInView": True, "formInView": True, "questionInView": True,
    "answerInView": True,
}  # fmt: skip


async def open_book(page: Page, book: ServedBook, site: Elsewhere, where: str) -> None:
    if where == "page":
        await page.goto(book.url)
        return
    script = f'<script src="{book.url}/widget.js" async></script>'
    await page.goto(site.publish(f'<!doctype html><html lang="en"><title>A</title><h1>A site</h1>{script}</html>'))
    await page.locator(".launcher").click()


@pytest.mark.parametrize("size", [(1000, 760), (390, 844), (360, 640)], ids=["desktop", "phone", "small-phone"])
@pytest.mark.parametrize("where", ["page", "widget"])
async def test_each_of_five_answers_begins_in_view(
    book: ServedBook, model: Part, window: Opening, site: Elsewhere, size: tuple[int, int], where: str
) -> None:
    async with window(width=size[0], height=size[1], reduced_motion="reduce") as one:
        page = one.page
        await open_book(page, book, site, where)
        for number, question in enumerate(QUESTIONS, start=1):
            model.reply = LONG if number % 2 else ScriptedReply(f"{HORN}. [1]")
            await page.get_by_role("textbox", name="Your question").fill(question)
            await page.keyboard.press("Enter")
            await expect(page.locator(".actions")).to_have_count(number)
            seen = await page.evaluate(LAYOUT)
            blank = seen.pop("blank")
            assert seen == IN_PLACE, number
            assert number == 1 or blank < 0.1, number
        await page.reload()
        if where == "widget" and size[0] < 600:
            await page.locator(".launcher").click()
        await expect(page.locator(".actions")).to_have_count(len(QUESTIONS))
        assert (await page.evaluate(LAYOUT))["questionInView"]


async def test_a_reader_who_scrolls_while_an_answer_is_written_is_left_alone(
    book: ServedBook, model: Part, window: Opening
) -> None:
    model.reply = ScriptedReply("\n\n".join(f"{HORN}, {number} times. [1]" for number in range(60)), delay_token=0.01)
    thread = "document.querySelector('by-the-book').shadowRoot.querySelector('.thread')"
    async with window(height=500) as one:
        page = one.page
        await page.goto(book.url)
        await page.get_by_role("textbox", name="Your question").fill(QUESTIONS[0])
        await page.keyboard.press("Enter")
        await expect(page.locator(".answer p").nth(12)).to_be_attached()
        await page.locator(".thread").hover()
        await page.mouse.wheel(0, 150)
        await expect(page.locator(".thread")).to_have_js_property("scrollTop", 150)
        await expect(page.locator(".answer p").nth(20)).to_be_attached()
        assert await page.evaluate(f"{thread}.scrollTop") == 150
        await page.get_by_role("button", name="Stop").click()
