"""Readers that connect, ask, and sometimes disconnect before the answer."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from dataclasses import replace
from itertools import count, islice
from typing import TYPE_CHECKING

from bythebook.testing import (
    CompletionRequest,
    Fault,
    RecordedExchange,
    ScriptedReply,
    ScriptedServer,
    cooperative_model,
)
from tests.support.live_server import Told, eventually, reading, stream

if TYPE_CHECKING:
    import httpx

LEAVE = 0.1
"""The fraction of questions with a disconnect."""

_NAMES = count()


def slow_and_endless_for_leavers(request: CompletionRequest) -> ScriptedReply:
    """Slow answers. For readers that disconnect, the model hangs before the first word or after a few."""
    reply = replace(cooperative_model(request), delay_first=0.3, delay_token=0.03)
    leaver = "leaver" in json.dumps(request.body)
    return replace(reply, fault=Fault.HANG, fault_after=3 * (request.number % 2)) if leaver else reply


async def come_and_go(
    url: str, model: ScriptedServer, *, readers: int, seconds: float, questions: int = 0
) -> tuple[list[float], Counter[str]]:
    """Readers ask for `seconds`, at least `questions` times. Each disconnects at its first question, then every tenth.

    Returns the seconds that the model continued after each disconnect, and the outcomes of the other questions.
    """
    clock, delays, ends = asyncio.get_running_loop().time, list[float](), Counter[str]()
    until = clock() + seconds

    def goes_on() -> bool:
        return clock() < until or ends.total() < questions

    async def read(client: httpx.AsyncClient, chance: random.Random) -> None:
        leaves = True
        while leaves or goes_on():
            name = f"{'leaver' if leaves else 'reader'}{next(_NAMES)}"
            told = asyncio.create_task(stream(client, f"How often does the fog horn sound for {name}?"))
            if leaves:
                delays.extend(await _leave(told, name, model, pause=chance.uniform(0, 0.5) if seconds else 0))
            await asyncio.wait([told])
            if not told.cancelled():
                ends[told.result().code or told.result().end] += 1
            await asyncio.sleep(chance.uniform(1, 3) if seconds else 0)
            leaves = chance.random() < LEAVE and goes_on()

    async with reading(url) as client, asyncio.TaskGroup() as group:
        for reader in range(readers):
            group.create_task(read(client, random.Random(reader)))  # noqa: S311 - the same every time
    return delays, ends


async def _leave(told: asyncio.Task[Told], name: str, model: ScriptedServer, *, pause: float) -> list[float]:
    """Disconnect during the model call and return the seconds until it stopped. Empty if it never started."""
    await eventually(lambda: told.done() or _latest(model, name) is not None, "the model is asked")
    await asyncio.sleep(pause)
    exchange = _latest(model, name)
    if told.done() or exchange is None:
        return []
    left = asyncio.get_running_loop().time()
    told.cancel()
    await eventually(lambda: exchange.left_at is not None, "the model is left alone")
    return [(exchange.left_at or left) - left]


def _latest(model: ScriptedServer, name: str) -> RecordedExchange | None:
    """The latest model call of this reader."""
    latest = islice(reversed(model.exchanges), 200)
    return next((exchange for exchange in latest if f"{name}?" in str(exchange.request.body)), None)
