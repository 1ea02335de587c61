"""The examples of `docs/testing.md` run, and it is complete."""

from __future__ import annotations

import asyncio
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from bythebook.testing import Fault, Quirk
from bythebook.testing import __main__ as command

MANUAL = (Path(__file__).parents[2] / "docs" / "testing.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```", MANUAL, re.M | re.S)


@pytest.mark.parametrize("place", range(len(EXAMPLES)))
async def test_the_examples_run(place: int) -> None:
    names: dict[str, Any] = {}
    exec(EXAMPLES[place], names)  # noqa: S102 - the examples are ours
    for name, test in names.items():
        if name.startswith("test_"):
            # A test with a virtual clock has its own loop, so it needs a thread without a running loop.
            await (test() if inspect.iscoroutinefunction(test) else asyncio.to_thread(test))


def test_the_manual_explains_every_fault_and_quirk() -> None:
    explained = set(re.findall(r"^\| `([^`]+)` \|", MANUAL, re.M))
    assert {*Fault, *Quirk} <= explained


def test_the_manual_lists_the_options_of_the_command() -> None:
    explained = set(re.findall(r"^\| `--([a-z-]+)", MANUAL, re.M)) | {"port"}
    assert {name.replace("_", "-") for name in vars(command.parse([]))} == explained
