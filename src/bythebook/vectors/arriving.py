"""Texts one after the other, whether they are all there or still being made."""

from __future__ import annotations

from collections.abc import AsyncIterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from bythebook.vectors import Texts


async def arriving(texts: Texts) -> AsyncGenerator[str]:
    if isinstance(texts, AsyncIterable):
        async for text in texts:
            yield text
    else:
        for text in texts:
            yield text
