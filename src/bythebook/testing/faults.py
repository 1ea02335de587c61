"""Faults by chance, the same chance each time."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bythebook.testing.replies import EVERYDAY_FAULTS

if TYPE_CHECKING:
    from bythebook.testing.replies import Fault, Reply

# Faults strike within this many words, so that short and long answers are both hit early and late.
_REACH = 12


@dataclass(frozen=True, slots=True)
class Faults:
    """Spoils a share of the replies. Whether and how is decided by the seed and the number of the request alone."""

    rate: float
    seed: int = 0
    kinds: tuple[Fault, ...] = EVERYDAY_FAULTS

    def spoil(self, reply: Reply, number: int) -> Reply:
        """The reply to the request of this number. One that is scripted to fail is left as it is."""
        drawn = random.Random(f"{self.seed}/{number}")  # noqa: S311 - it is the repeating that is wanted
        if reply.fault or not self.kinds or drawn.random() >= self.rate:
            return reply
        # Half of them strike before the first word, where another attempt can still help.
        after = drawn.choice((0, drawn.randrange(_REACH)))
        return replace(reply, fault=drawn.choice(self.kinds), fault_after=after)
