"""How long a request may take."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bythebook.errors import DeadlineExceeded

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


def now() -> float:
    """The event loop's clock, which also drives every wait: a test that owns the loop owns the time."""
    return asyncio.get_running_loop().time()


@dataclass(frozen=True, slots=True)
class Deadline:
    """The moments by which a request must have begun to answer and must be done, on the event loop's clock.

    They are absolute, so the same deadline is handed down through every stage and none can add time of its own.
    """

    first_token: float
    end: float

    @classmethod
    def after(cls, whole: float = 30.0, *, first_token: float = 5.0) -> Deadline:
        """The deadline of a request that arrives now: seconds to its end, and to its first token."""
        arrived = now()
        return cls(first_token=arrived + min(first_token, whole), end=arrived + whole)

    def begun(self) -> Deadline:
        """The same deadline once the reader has seen the first token: only the end is still to be kept."""
        return replace(self, first_token=self.end)

    def delayed(self, seconds: float) -> Deadline:
        """The same deadline with the first token due so much later, but never after the end."""
        return replace(self, first_token=min(self.first_token + seconds, self.end))

    def part(self, share: float) -> Deadline:
        """A deadline for work that may take this share of the time left, and no more."""
        due = now() + share * self.left()
        return Deadline(first_token=due, end=due)

    def left(self) -> float:
        """The seconds until the next promise is due: the first token, or the end once that is out. Never negative."""
        return max(0.0, min(self.first_token, self.end) - now())

    @asynccontextmanager
    async def bounding(self, stage: str) -> AsyncIterator[None]:
        """End what happens inside when the next promise is due, with an error that names the stage."""
        limit = asyncio.timeout_at(min(self.first_token, self.end))
        try:
            async with limit:
                yield
        except TimeoutError as exc:
            if not limit.expired():
                raise
            raise DeadlineExceeded(f"{stage} took longer than the time allowed", stage=stage) from exc
