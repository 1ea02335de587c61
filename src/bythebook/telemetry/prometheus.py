"""Prometheus metrics, of one process or of several that share a folder."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from bythebook.telemetry import TelemetryListener, active_listeners
from bythebook.telemetry.registry import BUCKETS, METRICS, Metric, MetricKind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from prometheus_client import CollectorRegistry

    from bythebook.telemetry import OnSpanEnd


# How the values of several workers become one. The values of a worker that has exited are dropped.
_MULTIPROCESS_MODES = {
    MetricKind.GAUGE_SUM: "livesum",
    MetricKind.GAUGE_LATEST: "livemostrecent",
    MetricKind.GAUGE_MAX: "livemax",
}


def clear_folder(folder: Path) -> None:
    """Create the folder for the metrics of workers, or empty it. Call it before the first worker starts."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in folder.glob("*.db"):
        file.unlink(missing_ok=True)


class PrometheusListener(TelemetryListener):
    """Collects all metrics: in memory, or in files of `folder`, where those of all workers are merged."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        if folder:
            _use_shared_folder(folder)
        from prometheus_client import CollectorRegistry

        self._registry = CollectorRegistry()
        self._collectors = {name: _create_collector(metric, self._registry) for name, metric in METRICS.items()}
        self._recorders: dict[tuple[str, ...], Callable[[float], None]] = {}

    def on_span_start(self, name: str, _attributes: Mapping[str, Any], /) -> OnSpanEnd:
        started = time.perf_counter()
        return lambda _error: self.on_metric("stage_seconds", time.perf_counter() - started, {"stage": name})

    def on_metric(self, name: str, value: float, labels: Mapping[str, str], /) -> None:
        key = (name, *labels.values())
        record = self._recorders.get(key)
        if record is None:
            collector = self._collectors[name]
            child = collector.labels(**labels) if labels else collector
            record = self._recorders[key] = _get_recorder(child, METRICS[name].kind)
        record(value)

    def render(self) -> tuple[bytes, str]:
        """All metrics in the text format, and its content type. Reads files if there are several workers."""
        from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
        from prometheus_client.multiprocess import MultiProcessCollector

        registry = self._registry
        if self._folder:
            _remove_dead_workers(self._folder)
            registry = CollectorRegistry()
            MultiProcessCollector(registry, str(self._folder))
        return generate_latest(registry), CONTENT_TYPE_LATEST


def find_listener() -> PrometheusListener | None:
    """The installed listener of this class, if there is one."""
    return next((listener for listener in active_listeners() if isinstance(listener, PrometheusListener)), None)


def _use_shared_folder(folder: Path) -> None:
    """Make the library keep values in files. It reads the folder only from the environment."""
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)
    from prometheus_client import values

    values.ValueClass = values.MultiProcessValue()


def _create_collector(metric: Metric, registry: CollectorRegistry) -> Any:
    from prometheus_client import Counter, Gauge, Histogram

    name = metric.prometheus_name
    if metric.kind is MetricKind.COUNTER:
        return Counter(name, metric.help, metric.labels, registry=registry)
    if metric.kind is MetricKind.HISTOGRAM:
        return Histogram(name, metric.help, metric.labels, registry=registry, buckets=BUCKETS)
    mode: Any = _MULTIPROCESS_MODES[metric.kind]
    return Gauge(name, metric.help, metric.labels, registry=registry, multiprocess_mode=mode)


def _get_recorder(child: Any, kind: MetricKind) -> Callable[[float], None]:
    methods = {MetricKind.COUNTER: "inc", MetricKind.GAUGE_SUM: "inc", MetricKind.HISTOGRAM: "observe"}
    record: Callable[[float], None] = getattr(child, methods.get(kind, "set"))
    return record


def _remove_dead_workers(folder: Path) -> None:
    """Drop the gauges of workers that have exited. Their counters stay."""
    from prometheus_client.multiprocess import mark_process_dead

    for pid in {int(path.stem.rpartition("_")[2]) for path in folder.glob("gauge_live*.db")}:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            # Another worker may remove the same files.
            with suppress(FileNotFoundError):
                mark_process_dead(pid, str(folder))
        except PermissionError:
            continue
