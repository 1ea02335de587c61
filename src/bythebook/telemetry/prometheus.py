"""Metrics: the figures as Prometheus reads them, of one process or of several that share a folder."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from bythebook.telemetry import listeners
from bythebook.telemetry.registry import BUCKETS, FIGURES, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from prometheus_client import CollectorRegistry

    from bythebook.telemetry import Ended
    from bythebook.telemetry.registry import Figure

# How several workers' values of a gauge make one. Those of a worker that has ended no longer count.
_TOGETHER = {Kind.BALANCE: "livesum", Kind.LEVEL: "livemostrecent", Kind.WORST: "livemax"}


def clean(folder: Path) -> None:
    """An empty folder for the figures of a new crew of workers. Call it before the first of them starts."""
    folder.mkdir(parents=True, exist_ok=True)
    for left in folder.glob("*.db"):
        left.unlink(missing_ok=True)


class Metrics:
    """Keeps every figure: in memory, or in files of `folder`, where the figures of all workers are added up."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        if folder:
            _share(folder)
        from prometheus_client import CollectorRegistry

        self._registry = CollectorRegistry()
        self._known = {name: _made(figure, self._registry) for name, figure in FIGURES.items()}
        self._kept: dict[tuple[str, ...], Callable[[float], None]] = {}

    def began(self, name: str, _attributes: Mapping[str, Any], /) -> Ended:
        before = time.perf_counter()
        return lambda _error: self.counted("stage_seconds", time.perf_counter() - before, {"stage": name})

    def counted(self, name: str, value: float, labels: Mapping[str, str], /) -> None:
        key = (name, *labels.values())
        keep = self._kept.get(key)
        if keep is None:
            known = self._known[name]
            one = known.labels(**labels) if labels else known
            keep = self._kept[key] = _keeping(one, FIGURES[name].kind)
        keep(value)

    def happened(self, _event: str, _fields: Mapping[str, Any], /) -> None:
        """Events are counted where they happen."""

    def render(self) -> tuple[bytes, str]:
        """All figures as text, and what type of text it is. Reads files where there are several workers."""
        from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
        from prometheus_client.multiprocess import MultiProcessCollector

        registry = self._registry
        if self._folder:
            _forget_the_dead(self._folder)
            registry = CollectorRegistry()
            MultiProcessCollector(registry, str(self._folder))
        return generate_latest(registry), CONTENT_TYPE_LATEST


def installed() -> Metrics | None:
    """The metrics that are being kept in this process, if any are."""
    return next((listener for listener in listeners() if isinstance(listener, Metrics)), None)


def _share(folder: Path) -> None:
    """Have the library keep values in files. It takes the folder from the environment, and from nowhere else."""
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)
    from prometheus_client import values

    values.ValueClass = values.MultiProcessValue()


def _made(figure: Figure, registry: CollectorRegistry) -> Any:
    from prometheus_client import Counter, Gauge, Histogram

    if figure.kind is Kind.COUNT:
        return Counter(figure.exported, figure.help, figure.labels, registry=registry)
    if figure.kind is Kind.SECONDS:
        return Histogram(figure.exported, figure.help, figure.labels, registry=registry, buckets=BUCKETS)
    mode: Any = _TOGETHER[figure.kind]
    return Gauge(figure.exported, figure.help, figure.labels, registry=registry, multiprocess_mode=mode)


def _keeping(one: Any, kind: Kind) -> Callable[[float], None]:
    ways = {Kind.COUNT: "inc", Kind.BALANCE: "inc", Kind.SECONDS: "observe", Kind.LEVEL: "set", Kind.WORST: "set"}
    keep: Callable[[float], None] = getattr(one, ways[kind])
    return keep


def _forget_the_dead(folder: Path) -> None:
    """Drop what ended workers were doing when they ended. What they have counted stays."""
    from prometheus_client.multiprocess import mark_process_dead

    for pid in {int(path.stem.rpartition("_")[2]) for path in folder.glob("gauge_live*.db")}:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            # Another worker may be tidying up as well.
            with suppress(FileNotFoundError):
                mark_process_dead(pid, str(folder))
        except PermissionError:
            continue
