"""The metrics, and the levels of the log events, from `registry.json`.

`docs/observing.md` has what each metric, log event and span means, and the fields of the events. A test compares its
tables with the code.
"""

import json
import logging
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

_TABLES = json.loads(Path(__file__).with_suffix(".json").read_bytes())
LOG_LEVELS: dict[str, int] = {event: getattr(logging, level) for event, level in _TABLES["log_levels"].items()}


class MetricKind(StrEnum):
    """The type of a metric, and how the values of several workers become one."""

    COUNTER = "counter"
    """Values are added and never decrease."""
    HISTOGRAM = "histogram"
    """Values are durations, counted in the `BUCKETS`."""
    GAUGE_SUM = "sum of workers"
    """Values are added and subtracted: the current number over all workers."""
    GAUGE_LATEST = "newest value"
    """The latest value of any worker."""
    GAUGE_MAX = "highest of workers"
    """The highest of the latest values of the workers."""


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    kind: MetricKind
    help: str
    labels: tuple[str, ...] = ()

    @property
    def prometheus_name(self) -> str:
        return f"bythebook_{self.name}_total" if self.kind is MetricKind.COUNTER else f"bythebook_{self.name}"


BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)

METRICS = {
    row["name"]: Metric(row["name"], MetricKind(row["kind"]), row["help"], tuple(row.get("labels", ())))
    for row in _TABLES["metrics"]
}
