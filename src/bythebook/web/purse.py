"""The purse: what a question costs its site, given back when it was never put to the book."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from bythebook.access.sites import NOT_ANSWERED

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from bythebook.access import Caller
    from bythebook.access.rates import Taken
    from bythebook.access.sites import Budgets
    from bythebook.web.streams import Happening


@dataclass(frozen=True, slots=True)
class Purse:
    """One question of a site's budget. Callers who are no readers of a site pay nothing."""

    budgets: Budgets
    taken: Taken | None

    @classmethod
    async def opened(cls, budgets: Budgets, caller: Caller) -> Self:
        """Raises RateLimited when the site has asked its questions of today."""
        return cls(budgets, await budgets.spend(caller))

    async def refund(self) -> None:
        await self.budgets.refund(self.taken)

    async def spent_on(self, work: AsyncGenerator[Happening]) -> AsyncGenerator[Happening]:
        """The work, paid for unless it turns out that it could not be asked."""
        async with aclosing(work):
            try:
                async for happening in work:
                    yield happening
            except NOT_ANSWERED:
                await self.refund()
                raise
