"""`python -m bench.widget`: size, response time and streaming smoothness of the widget."""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import statistics
import sys
from importlib.resources import files
from typing import TYPE_CHECKING

from bench.browser import Scene, scene
from bench.metrics import Metric
from bench.processes import ROOT
from bythebook.testing import ScriptedReply

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import Page

ROUNDS = 15
WORDS = 900
LONG = ScriptedReply(
    "Every sentence of an answer rests on a passage that was retrieved. [1]\n\n"
    + "\n\n".join(
        f"- A citation carries the exact words of the page, number {number}. [1]\n- `bythebook ask` shows it. [2]"
        for number in range(WORDS // 18)
    ),
    delay_token=0.01,
)

_CLICKED = """() => new Promise((resolve) => {
  const { shadowRoot } = document.querySelector('by-the-book');
  addEventListener('click', (event) => {
    // Two frames on, what the click has changed has been painted.
    requestAnimationFrame(() => requestAnimationFrame(() => {
      if (shadowRoot.activeElement?.localName !== 'textarea') throw new Error('one cannot type yet');
      resolve(performance.now() - event.timeStamp);
    }));
  }, { once: true });
})"""

_FRAMES = """() => {
  window.frames_at = [];
  window.long_tasks = 0;
  const frame = (at) => { window.frames_at.push(at); window.asked = requestAnimationFrame(frame); };
  requestAnimationFrame(frame);
  new PerformanceObserver((list) => { window.long_tasks += list.getEntries().length; }).observe({ type: 'longtask' });
}"""


async def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.widget", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    found = []
    async with scene(ROOT / ".bythebook" / "bench" / "pictures") as ready:
        async for figure in figures(ready):
            found.append(figure)
            print(figure, file=sys.stderr if given.json else sys.stdout, flush=True)
    if given.json:
        print(json.dumps({"figures": [figure.to_dict() for figure in found]}, indent=2))
    sys.exit(0 if all(figure.passed for figure in found) else 1)


async def figures(ready: Scene) -> AsyncIterator[Metric]:
    script = (files("bythebook.server") / "static" / "widget.js").read_bytes()
    weight = len(gzip.compress(script)) / 1000
    yield Metric("widget.js, gzipped", weight, unit="kB", at_most=30.0, raw={"plain kB": len(script) / 1000})
    yield await _clicks(ready)
    yield await _streaming(ready)
    yield await _axe(ready)


async def _clicks(ready: Scene) -> Metric:
    """The time from the click on the button to a visible input field."""
    taken = []
    for _ in range(ROUNDS):
        page = await ready.browser.new_page()
        await page.goto(ready.site)
        await page.locator(".launcher").wait_for()
        clicked = asyncio.create_task(page.evaluate(_CLICKED))
        await asyncio.sleep(0.05)
        await page.locator(".launcher").click()
        taken.append(await clicked)
        await page.close()
    raw = {"fastest ms": min(taken), "slowest ms": max(taken)}
    return Metric(
        "from the click to a question that can be typed", statistics.median(taken), unit="ms", at_most=100.0, raw=raw
    )


async def _streaming(ready: Scene) -> Metric:
    """The fraction of late frames while a long answer streams, compared with an idle page."""
    page = await ready.browser.new_page()
    await page.goto(ready.url)
    await page.locator(".offer").first.wait_for()
    await page.evaluate(_FRAMES)
    await page.wait_for_timeout(4_000)
    idle = await _dropped(page)
    ready.said = LONG
    await page.get_by_role("textbox").fill("How is an answer proven?")
    await page.keyboard.press("Enter")
    await page.locator(".answer > *").first.wait_for()
    await page.evaluate("window.frames_at = []; window.long_tasks = 0")
    await page.locator(".actions").wait_for(timeout=120_000)
    dropped = await _dropped(page)
    raw = {"streaming %": dropped, "idle %": idle, "long tasks": await page.evaluate("window.long_tasks")}
    raw |= {"seconds": await page.evaluate("(window.frames_at.at(-1) - window.frames_at[0]) / 1000")}
    await page.close()
    return Metric("frames dropped by streaming a long answer", dropped - idle, unit="%", at_most=5.0, raw=raw)


async def _dropped(page: Page) -> float:
    """The percentage of missing frames at 60 frames per second."""
    at: list[float] = await page.evaluate("window.frames_at")
    due = (at[-1] - at[0]) / (1000 / 60)
    return 100 * max(0.0, 1 - (len(at) - 1) / due)


async def _axe(ready: Scene) -> Metric:
    """The findings of axe on page and widget, in light and dark mode."""
    from axe_playwright_python.async_playwright import Axe

    seen: dict[str, int] = {}
    ready.said = ScriptedReply("Every sentence of an answer rests on a passage that was retrieved. [1]")
    for scheme in ("light", "dark"):
        for where, address in (("page", ready.url), ("widget", ready.site)):
            context = await ready.browser.new_context(color_scheme=scheme, reduced_motion="reduce")
            page = await context.new_page()
            await page.goto(address)
            if where == "widget":
                await page.locator(".launcher").click()
            found = (await Axe().run(page)).response["violations"]
            await page.get_by_role("textbox", name="Your question").fill("How is an answer proven?")
            await page.keyboard.press("Enter")
            await page.locator(".actions").wait_for()
            found += (await Axe().run(page)).response["violations"]
            seen[f"{where} {scheme}"] = len(found)
            await context.close()
    return Metric("findings of axe", float(sum(seen.values())), unit="", at_most=0.0, raw=seen)


if __name__ == "__main__":
    asyncio.run(main())
