"""By the Book answers questions from the pages of a book and proves each sentence with a quote."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

# A name is imported on first use, so that importing the package is cheap. The stub file has all names and modules.
_STUB = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
_MODULES = {name: module for module, name in re.findall(r"^from (\S+) import (\w+)", _STUB, re.MULTILINE)}

__all__ = sorted(_MODULES)  # noqa: PLE0605 - type checkers read the stub file


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("bythebook")
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'bythebook' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__, "__version__"]
