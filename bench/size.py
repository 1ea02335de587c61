"""What an installation takes on disk: the packages that `requirements.lock` names, as they are installed here."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, distribution
from typing import TYPE_CHECKING

from bench.metrics import Metric
from bythebook.models import GRANITE, install
from bythebook.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_NAME = re.compile(r"^([A-Za-z0-9._-]+)==", re.MULTILINE)


def figures(lock: Path) -> Iterator[Metric]:
    sizes = {name: _size(name) for name in _NAME.findall(lock.read_text(encoding="utf-8"))}
    model = install.find(Settings.load().model_folder, GRANITE).size
    largest = sorted(sizes, key=lambda name: -sizes[name])[:4]
    raw = {f"{name} MB": sizes[name] / 1e6 for name in largest} | {"model MB": model / 1e6}
    total = (sum(sizes.values()) + model) / 1e6
    yield Metric("installed size, dependencies and model", total, unit="MB", at_most=700.0, raw=raw)


def _size(name: str) -> int:
    """The size of the files of a package. 0 if this platform does not install it."""
    try:
        files = distribution(name).files or ()
    except PackageNotFoundError:
        return 0
    paths = (file.locate() for file in files)
    return sum(path.stat().st_size for path in map(_as_path, paths) if path.exists())


def _as_path(path: object) -> Path:
    from pathlib import Path

    return Path(str(path))
