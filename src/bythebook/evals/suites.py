"""The measures by name: each takes a collection and gives its figures."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from bythebook.errors import InputError
from bythebook.evals import answers, followups, gaps, proof, refusal, retrieval

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bythebook.evals import Measured, Wanted

MEASURES: dict[str, Callable[[Wanted], Awaitable[Measured]]] = {
    "retrieval": retrieval.measure,
    "followups": followups.measure,
    "refusal": refusal.measure,
    "answers": answers.measure,
    "proof": proof.measure,
    "gaps": gaps.measure,
}


async def measured(name: str, wanted: Wanted) -> Measured:
    """What the measure finds, and how long it took to find out."""
    for path in (wanted.path, wanted.strangers):
        if path and not path.exists():
            raise InputError(f"there is no {str(path)!r}. docs/quality.md says where the collections come from.")
    started = time.perf_counter()
    found = await MEASURES[name](wanted)
    took = {"seed": wanted.seed, "seconds": round(time.perf_counter() - started, 1)}
    return replace(found, figures={**found.figures, **took})
