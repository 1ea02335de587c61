"""Cheap simulated readers, so that on two cores the server is the bottleneck."""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

DOCS = Path(__file__).resolve().parent.parent / "docs"


@dataclass(frozen=True, slots=True)
class Heard:
    """One answer, in milliseconds from the question."""

    first: float
    """To the first word."""
    whole: float
    status: int
    body: bytes


async def post(url: str, body: dict[str, Any], *, first: bytes, last: bytes = b"\0") -> Heard:
    """Send JSON and read to the end, or to `last`. `first` marks the first word."""
    data = json.dumps(body).encode()
    head = f"content-type: application/json\r\ncontent-length: {len(data)}\r\n"
    return await _exchange("POST", url, head.encode() + b"\r\n" + data, first=first, last=last)


async def get(url: str) -> Heard:
    return await _exchange("GET", url, b"\r\n", first=b"{", last=b"\0")


async def _exchange(method: str, url: str, rest: bytes, *, first: bytes, last: bytes) -> Heard:
    address = urlsplit(url)
    head = f"{method} {address.path} HTTP/1.1\r\nhost: {address.netloc}\r\nconnection: close\r\n"
    started = time.perf_counter()
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        writer.write(head.encode() + rest)
        received, first_at = bytearray(), 0.0
        while last not in received[-200:] and (part := await reader.read(65536)):
            received += part
            if not first_at and first in received:
                first_at = time.perf_counter()
        ended = time.perf_counter()
    finally:
        writer.close()
    status = int(received[9:12])
    return Heard(((first_at or ended) - started) * 1000, (ended - started) * 1000, status, bytes(received))


def questions(seed: int) -> list[str]:
    """A few thousand different questions of adjacent words of the manual."""
    chance = random.Random(seed)  # noqa: S311 - the same every time
    found = []
    for page in sorted(DOCS.rglob("*.md")):
        words = re.findall(r"[A-Za-z][a-z]+", page.read_text(encoding="utf-8"))
        found += [f"What about {' '.join(words[at : at + 6])}?" for at in range(0, len(words) - 6, 3)]
    chance.shuffle(found)
    return found


async def crowd(
    turn: Callable[[int], Awaitable[Heard]], *, readers: int, seconds: float, thinking: tuple[float, float]
) -> list[Heard]:
    """The answers of readers that ask for `seconds` and think before each question."""
    until, heard = time.perf_counter() + seconds, list[Heard]()

    async def read(number: int) -> None:
        chance = random.Random(number)  # noqa: S311 - the same every time
        # The readers start staggered, as real ones do.
        await asyncio.sleep(chance.uniform(0, thinking[1]))
        while time.perf_counter() < until:
            heard.append(await turn(number))
            await asyncio.sleep(chance.uniform(*thinking))

    await asyncio.gather(*map(read, range(readers)))
    return heard


def quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]
