"""The absolute deadline of a request."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from bythebook.errors import DeadlineExceeded


def now() -> float:
    """The event loop's clock. It also drives every timeout, so a test that controls the loop controls the time."""
    return asyncio.get_running_loop().time()


@dataclass(frozen=True, slots=True)
class Deadline:
    """The moments by which a request must have its first token and its whole answer, on the event loop's clock.

    The moments are absolute. The same deadline is passed to every stage, so no stage can extend it.
    """

    first_token: float
    end: float

    @classmethod
    def after(cls, whole: float = 30.0, *, first_token: float = 5.0) -> "Deadline":
        """The deadline of a request that arrives now: the seconds to its end and to its first token."""
        arrived = now()
        return cls(first_token=arrived + min(first_token, whole), end=arrived + whole)

    def after_first_token(self) -> "Deadline":
        """The deadline once the reader has the first token: only the end remains."""
        return replace(self, first_token=self.end)

    def postpone_first_token_deadline(self, seconds: float) -> "Deadline":
        """The deadline with a first token that is due later, but not after the end."""
        return replace(self, first_token=min(self.first_token + seconds, self.end))

    def fraction(self, share: float) -> "Deadline":
        """A deadline for work that may use this share of the remaining time."""
        due = now() + share * self.left()
        return Deadline(first_token=due, end=due)

    def left(self) -> float:
        """The seconds until the first token is due, or the end after the first token. Never negative."""
        return max(0.0, min(self.first_token, self.end) - now())

    @asynccontextmanager
    async def limit(self, stage: str) -> AsyncIterator[None]:
        """Raise DeadlineExceeded with the name of the stage if the block is not done when the deadline is due."""
        limit = asyncio.timeout_at(min(self.first_token, self.end))
        try:
            async with limit:
                yield
        except TimeoutError as exc:
            if not limit.expired():
                raise
            raise DeadlineExceeded(f"{stage} took longer than the time allowed", stage=stage) from exc
