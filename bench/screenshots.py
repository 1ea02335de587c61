"""`python -m bench.screenshots`: takes the screenshots of the manual again."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.browser import Scene, scene
from bench.processes import ROOT
from bythebook.testing import ScriptedReply

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from playwright.async_api import Page

WHERE = ROOT / "docs" / "pictures"
MOST_BYTES = 400_000
"""The maximum total size: the pictures are part of the package."""

QUESTION = "How is an answer proven?"
ANSWER = ScriptedReply(
    "Every sentence is held against the passages the model was shown. [1]\n\n"
    "- A sentence that rests on one gets a citation with the verbatim quote. [1]\n"
    "- Numbers, names, units and negations must agree, not only words. [1]\n"
    "- If nothing remains, the book answers with its own sentences. [1]\n\n"
)
CODE = '```console\n$ bythebook ask "Where do I begin?"\nBegin with the quick start. [1]\n```\n'
SLOWLY = ScriptedReply(ANSWER.text + CODE + "The rest of the answer is still being written. " * 20, delay_token=0.08)


async def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.screenshots", description=__doc__)
    parser.add_argument("--into", type=Path, default=WHERE, help="the folder they are put into")
    given = parser.parse_args()
    given.into.mkdir(parents=True, exist_ok=True)
    async with scene(ROOT / ".bythebook" / "bench" / "pictures") as ready:
        for name, (options, steps) in PICTURES.items():
            await _take(ready, given.into / f"{name}.png", options, steps)
    weight = sum(path.stat().st_size for path in given.into.glob("*.png"))
    print(f"{len(PICTURES)} pictures, {weight:,} bytes in {given.into}")
    if weight > MOST_BYTES:
        raise SystemExit(f"that is more than {MOST_BYTES:,}: take smaller ones.")


async def _take(
    ready: Scene, path: Path, options: dict[str, Any], steps: Callable[[Scene, Page], Awaitable[None]]
) -> None:
    context = await ready.browser.new_context(**options)
    page = await context.new_page()
    await steps(ready, page)
    # Without animations, so that the pictures are reproducible.
    await page.screenshot(path=path, animations="disabled", caret="hide")
    await context.close()
    print(path.name)


async def _ask(page: Page, question: str = QUESTION) -> None:
    await page.get_by_role("textbox", name="Your question").fill(question)
    await page.keyboard.press("Enter")


async def _answered(page: Page) -> None:
    await page.locator(".actions").first.wait_for()


async def _page_empty(ready: Scene, page: Page) -> None:
    await page.goto(ready.url)
    await page.locator(".offer").first.wait_for()


async def _page_answered(ready: Scene, page: Page) -> None:
    ready.said = ANSWER
    await page.goto(ready.url)
    await _ask(page)
    await _answered(page)


async def _widget(ready: Scene, page: Page) -> None:
    ready.said = ANSWER
    await page.goto(ready.site)
    await page.locator(".launcher").click()
    await _ask(page)
    await _answered(page)
    await page.locator(".thread").evaluate("(thread) => { thread.scrollTop = 0; }")
    await page.locator(".answer .cite").last.hover()


async def _widget_writing(ready: Scene, page: Page) -> None:
    ready.said = SLOWLY
    await page.goto(ready.site)
    await page.locator(".launcher").click()
    await _ask(page)
    await page.locator(".answer pre", has_text="quick start").wait_for()


async def _phone(ready: Scene, page: Page) -> None:
    ready.said = ANSWER
    await page.goto(ready.site)
    await page.locator(".launcher").click()
    await _ask(page)
    await _answered(page)


async def _phone_busy(ready: Scene, page: Page) -> None:
    await page.route("**/v1/ask", lambda route: route.fulfill(
        status=429, json={"error": "rate_limit", "user_message": "Busy.", "retry_after": 40},
        headers={"access-control-allow-origin": ready.site},
    ))  # fmt: skip
    await page.goto(ready.site)
    await page.locator(".launcher").click()
    await _ask(page)
    await page.locator(".status.error").wait_for()


WIDE: dict[str, Any] = {"viewport": {"width": 900, "height": 620}}
PHONE: dict[str, Any] = {"viewport": {"width": 360, "height": 700}, "has_touch": True}
DARK: dict[str, Any] = {"color_scheme": "dark"}
PICTURES: dict[str, tuple[dict[str, Any], Callable[[Scene, Page], Awaitable[None]]]] = {
    "page-light": (WIDE, _page_answered),
    "page-dark": (WIDE | DARK, _page_empty),
    "widget-light": (WIDE, _widget),
    "widget-dark": (WIDE | DARK, _widget_writing),
    "phone-light": (PHONE, _phone),
    "phone-dark": (PHONE | DARK, _phone_busy),
}

if __name__ == "__main__":
    asyncio.run(main())
