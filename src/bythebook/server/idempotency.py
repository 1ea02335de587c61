"""Repeating: a request that comes again under the same Idempotency-Key is put to the book once, in any process."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING

from bythebook.errors import BookError, InputError
from bythebook.qa.turn_recorder import by_itself
from bythebook.server.streams import Happening

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from bythebook.access.idempotency import Repeat, Repeats

LOOK_AGAIN_SECONDS = 0.05
LONGEST_KEY = 255


def checked_key(key: str) -> str:
    """The key, if it is one."""
    if not key.isascii() or not key.isprintable() or len(key) > LONGEST_KEY:
        raise InputError(f"an Idempotency-Key is at most {LONGEST_KEY} printable ASCII characters.")
    return key


async def once(repeats: Repeats, repeat: Repeat, work: AsyncGenerator[Happening]) -> AsyncGenerator[Happening]:
    """What happens, unless somebody else is at it or has been: then their answer."""
    async with aclosing(work):
        while not await repeats.hold(repeat):
            answer = await repeats.answer(repeat)
            if answer is not None:
                yield Happening("answer", answer)
                return
            await asyncio.sleep(LOOK_AGAIN_SECONDS)
        try:
            async for happening in work:
                if happening.name == "answer":
                    # An answer that cannot be kept is an answer all the same.
                    with suppress(BookError):
                        await asyncio.shield(by_itself(repeats.keep(repeat, happening.data)))
                yield happening
        except BaseException:
            await asyncio.shield(by_itself(repeats.let_go(repeat)))
            raise
