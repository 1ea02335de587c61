"""`python -m bench.moving_picture`: takes the picture of the README: question, answer, click, marked sentence."""

from __future__ import annotations

import argparse
import asyncio
import shutil
import struct
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from bench.browser import listening
from bench.processes import ROOT
from bythebook import Book, Settings
from bythebook.server.app import create_app
from bythebook.sources.folder import Folder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from playwright.async_api import FloatRect, Page

WHERE = ROOT / "docs" / "pictures" / "question-to-sentence.png"
MOST_BYTES = 300_000
WIDTH, HEIGHT = 760, 520
QUESTION = "What happens when ingest is killed?"

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
INPUT_HEIGHT = 110
"""The lower part of the page, which changes while the question is typed."""
Frame = tuple[bytes, int, int]
"""A screenshot, how many milliseconds it is shown, and the distance of its upper edge from that of the picture."""


async def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.moving_picture", description=__doc__)
    parser.add_argument("--into", type=Path, default=WHERE, help="the file it is written to")
    given = parser.parse_args()
    picture = animate(await _take())
    await asyncio.to_thread(given.into.write_bytes, picture)
    print(f"{len(picture):,} bytes in {given.into}")
    if len(picture) > MOST_BYTES:
        raise SystemExit(f"that is more than {MOST_BYTES:,}: take fewer pictures.")


async def _take() -> list[Frame]:
    """The pictures of a reader with the manual in a real browser, without a model."""
    from playwright.async_api import async_playwright

    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        raise SystemExit("there is no Chromium on this machine. Install Debian's package chromium.")
    folder = ROOT / ".bythebook" / "bench" / "moving"
    settings = Settings.load({"data_dir": folder, "book_name": "By the Book"}, folder=folder)
    async with Book.open(settings) as book, async_playwright() as playwright:
        await book.ingest(Folder(ROOT / "docs", exclude=("transcripts",)))
        await book.introduction()
        browser = await playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        async with listening(create_app(book, settings)) as url:
            page = await browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, reduced_motion="reduce")
            await page.goto(url)
            frames = [frame async for frame in _scenes(page)]
        await browser.close()
    return frames


async def _scenes(page: Page) -> AsyncIterator[Frame]:
    async def seen(milliseconds: int, top: int = 0) -> Frame:
        part: FloatRect = {"x": 0, "y": top, "width": WIDTH, "height": HEIGHT - top}
        return await page.screenshot(animations="disabled", clip=part), milliseconds, top

    await page.locator(".offer").first.wait_for()
    yield await seen(1200)
    words = QUESTION.split()
    for count in range(2, len(words) + 1, 2):
        await page.get_by_role("textbox").fill(" ".join(words[:count]))
        yield await seen(350, top=HEIGHT - INPUT_HEIGHT)
    await page.keyboard.press("Enter")
    await page.locator(".actions").wait_for()
    yield await seen(2600)
    await page.locator(".answer a.cite").first.click()
    await page.locator("mark").first.wait_for()
    yield await seen(4000)


def animate(frames: Sequence[Frame]) -> bytes:
    """The screenshots as one animated PNG. All have the same format."""
    header = next(data for name, data in _chunks(frames[0][0]) if name == b"IHDR")
    parts = [_chunk(b"IHDR", header), _chunk(b"acTL", struct.pack(">II", len(frames), 0))]
    number = 0
    for at, (png, milliseconds, top) in enumerate(frames):
        size = next(data[:8] for name, data in _chunks(png) if name == b"IHDR")
        control = struct.pack(">I", number) + size + struct.pack(">IIHHBB", 0, top, milliseconds, 1000, 0, 0)
        parts.append(_chunk(b"fcTL", control))
        number += 1
        pixels = zlib.decompress(b"".join(data for name, data in _chunks(png) if name == b"IDAT"))
        packed = zlib.compress(pixels, 9)
        if at == 0:
            parts.append(_chunk(b"IDAT", packed))
        else:
            parts.append(_chunk(b"fdAT", struct.pack(">I", number) + packed))
            number += 1
    return _SIGNATURE + b"".join(parts) + _chunk(b"IEND", b"")


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(_SIGNATURE)
    while at < len(png):
        (length,) = struct.unpack_from(">I", png, at)
        yield png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        at += length + 12


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


if __name__ == "__main__":
    asyncio.run(main())
