"""A metric with its limit and its raw measurements."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Metric:
    """One line of the report. A metric without a limit is for comparison."""

    name: str
    value: float
    unit: str = "x"
    at_most: float | None = None
    at_least: float | None = None
    raw: dict[str, Any] = field(default_factory=dict)
    """The raw measurements."""

    @property
    def passed(self) -> bool:
        over = self.at_most is not None and self.value > self.at_most
        under = self.at_least is not None and self.value < self.at_least
        return not (over or under)

    @property
    def limit(self) -> str:
        if self.at_most is not None:
            return f"<= {self.at_most:g} {self.unit}"
        return f">= {self.at_least:g} {self.unit}" if self.at_least is not None else ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"passed": self.passed}

    def __str__(self) -> str:
        verdict = ("pass" if self.passed else "FAIL") if self.limit else "    "
        raw = ", ".join(f"{name} {_shown(value)}" for name, value in self.raw.items())
        return f"{verdict}  {self.name:<58} {self.value:8.3f} {self.unit:<3} {self.limit:<11}  {raw}"


def _shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
