"""What readers and authors expect around an answer: questions to go on with, links, modes and a script API."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Page, expect

from bythebook.testing import ScriptedReply
from tests.browser.conftest import HORN, Elsewhere, Opening, Part, violations
from tests.support.server import ServedBook

pytestmark = pytest.mark.asyncio(loop_scope="session")

QUESTION = "How often does the horn sound?"


def host(book: ServedBook, attributes: str = "", body: str = "") -> str:
    script = f'<script src="{book.url}/widget.js" {attributes} async></script>'
    head = '<link rel="icon" href="data:,"><title>A</title>'
    return f'<!doctype html><html lang="en">{head}<main><h1>A site</h1>{body}</main>{script}</html>'


async def ask(page: Page, question: str = QUESTION) -> None:
    await page.get_by_role("textbox", name="Your question").fill(question)
    await page.keyboard.press("Enter")


async def test_the_widget_offers_questions_of_the_book_and_the_answer_more_of_them(
    book: ServedBook, window: Opening, site: Elsewhere
) -> None:
    known = (await book.book.introduction()).questions
    async with window() as one:
        page = one.page
        await page.goto(site.publish(host(book)))
        await page.locator(".launcher").click()
        await expect(page.locator(".offer")).to_have_text(list(known))
        await ask(page)
        await expect(page.locator(".more .offer").first).to_be_visible()
        offered = await page.locator(".more .offer").all_inner_texts()
        assert 1 <= len(offered) <= 3
        assert QUESTION not in offered
        await page.locator(".more .offer").first.click()
        await expect(page.get_by_role("article", name=offered[0]).locator(".sources")).to_be_visible()
        assert one.troubles == []


async def test_code_has_a_button_that_copies_it(book: ServedBook, model: Part, window: Opening) -> None:
    command = "logbook add --time midnight --wind 6 --visibility 4"
    model.reply = ScriptedReply(f"The `logbook` command adds an entry: [1]\n\n```sh\n{command}\n```\n\n[1]")
    async with window(permissions=["clipboard-read", "clipboard-write"]) as one:
        page = one.page
        await page.goto(book.url)
        await ask(page, "How do I add an entry to the log on the computer?")
        await expect(page.locator(".actions")).to_be_visible()
        await page.get_by_role("button", name="Copy code").first.click()
        await expect(page.locator(".rated")).to_have_text("Copied")
        assert await page.evaluate("navigator.clipboard.readText()") == command


@pytest.mark.parametrize("where", ["page", "widget"])
async def test_a_shared_link_asks_its_question_once(
    book: ServedBook, window: Opening, site: Elsewhere, where: str
) -> None:
    address = book.url + "/" if where == "page" else site.publish(host(book))
    async with window(permissions=["clipboard-read", "clipboard-write"]) as one:
        page = one.page
        await page.goto(address)
        if where == "widget":
            await page.locator(".launcher").click()
        await ask(page)
        await page.get_by_role("button", name="Copy a link to this question").click()
        await expect(page.locator(".rated")).to_have_text("Link copied")
        link = await page.evaluate("navigator.clipboard.readText()")
    assert link == f"{address}?{'q' if where == 'page' else 'ask'}=How+often+does+the+horn+sound%3F"
    async with window() as one:
        page = one.page
        await page.goto(link)
        await expect(page.locator(".answer")).to_contain_text(HORN)
        await expect(page).to_have_url(address)
        await page.reload()
        await expect(page.locator(".actions")).to_have_count(1)


async def test_earlier_conversations_can_be_reopened(book: ServedBook, window: Opening) -> None:
    async with window() as one:
        page = one.page
        await page.goto(book.url)
        await ask(page)
        await expect(page.locator(".actions")).to_be_visible()
        await page.get_by_role("button", name="New conversation").click()
        await ask(page, "What does the keeper do at dusk?")
        await expect(page.locator(".actions")).to_be_visible()
        await page.get_by_role("button", name="Earlier conversations").click()
        await expect(page.locator(".offer")).to_have_text(["What does the keeper do at dusk?", QUESTION])
        await page.get_by_role("button", name=QUESTION).click()
        await expect(page.get_by_role("article", name=QUESTION)).to_be_visible()
        await ask(page, "And how long is each blast?")
        await expect(page.locator(".actions")).to_have_count(2)
        assert one.troubles == []


async def test_the_script_of_a_site_can_open_ask_and_listen(book: ServedBook, window: Opening, site: Elsewhere) -> None:
    async with window() as one:
        page = one.page
        await page.goto(site.publish(host(book, body="<input id='search' aria-label='Search'>")))
        await expect(page.locator(".launcher")).to_be_visible()
        await page.evaluate(
            "window.heard = []; for (const name of ['open', 'question', 'answer', 'close'])"
            " ByTheBook.on(name, (detail) => heard.push([name, detail.outcome || detail.question || '']))"
        )
        await page.evaluate(f"ByTheBook.ask('{QUESTION}')")
        await expect(page.locator(".actions")).to_be_visible()
        await page.evaluate("ByTheBook.close()")
        await expect(page.get_by_role("dialog")).to_be_hidden()
        heard = await page.evaluate("window.heard")
        assert heard == [["open", ""], ["question", QUESTION], ["answer", "answered"], ["close", ""]]


@pytest.mark.parametrize("mode", ["side", "inline"])
async def test_the_widget_can_be_a_side_panel_or_a_part_of_the_page(
    book: ServedBook, window: Opening, site: Elsewhere, mode: str
) -> None:
    into = 'data-into="#here"' if mode == "inline" else ""
    async with window(reduced_motion="reduce") as one:
        page = one.page
        await page.goto(site.publish(host(book, f'data-mode="{mode}" {into}', body="<div id='here'></div>")))
        if mode == "side":
            await page.locator(".launcher").click()
            box = await page.get_by_role("dialog").bounding_box()
            assert box
            assert (box["y"], box["height"], box["x"] + box["width"]) == (0, 760, 1000)
        else:
            await expect(page.locator("#here by-the-book .panel")).to_be_visible()
            await expect(page.locator(".launcher")).to_have_count(0)
        await ask(page)
        await expect(page.locator(".answer")).to_contain_text(HORN)
        await expect(page.locator(".more")).to_be_visible()
        assert await violations(page) == []


async def test_the_author_can_add_links_and_ask_for_consent(book: ServedBook, window: Opening, site: Elsewhere) -> None:
    attributes = (
        'data-links="Ask a person = https://forum.example/ | Write to us = mailto:help@book.example'
        ' | Bad = javascript:alert(1)" data-consent="Questions are stored for 30 days."'
    )
    async with window() as one:
        page = one.page
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        await page.goto(site.publish(host(book, attributes)))
        await page.locator(".launcher").click()
        await expect(page.locator(".consent")).to_contain_text("Questions are stored for 30 days.")
        await expect(page.get_by_role("textbox", name="Your question")).to_be_hidden()
        assert not [url for url in asked if "/v1/" in url]
        assert await violations(page) == []
        await page.get_by_role("button", name="Agree").click()
        await expect(page.get_by_role("textbox", name="Your question")).to_be_focused()
        await expect(page.locator("p.foot a")).to_have_text(["Ask a person", "Write to us"])
        await ask(page, "What is the capital of Mongolia?")
        await expect(page.locator(".contacts a").first).to_have_attribute("href", "https://forum.example/")
        await page.reload()
        await expect(page.get_by_role("textbox", name="Your question")).to_be_visible()


async def test_a_citation_without_a_published_site_opens_the_page_at_the_marked_quote(
    book: ServedBook, window: Opening
) -> None:
    async with window() as one:
        page = one.page
        await page.goto(book.url)
        await ask(page)
        await page.locator(".answer a.cite").first.click()
        await page.wait_for_url(re.compile(r"/read/[0-9a-f-]{36}\?start=\d+&end=\d+#quote"))
        await expect(page.locator("mark").first).to_be_in_viewport()
        assert HORN in " ".join(await page.locator("mark").all_inner_texts())
        assert await violations(page) == []
        assert one.troubles == []
