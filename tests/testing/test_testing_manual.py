"""What `docs/testing.md` says is true: its examples run, and it leaves nothing out."""

from __future__ import annotations

import asyncio
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from bythebook.testing import EmbeddingFault, Fault, Quirk
from bythebook.testing import __main__ as command

MANUAL = (Path(__file__).parents[2] / "docs" / "testing.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```", MANUAL, re.M | re.S)


@pytest.mark.parametrize("place", range(len(EXAMPLES)))
async def test_the_examples_run(place: int) -> None:
    names: dict[str, Any] = {}
    exec(EXAMPLES[place], names)  # noqa: S102 - the examples are ours
    for name, test in names.items():
        if name.startswith("test_"):
            # One that skips time brings its own loop, so it needs a thread without one.
            await (test() if inspect.iscoroutinefunction(test) else asyncio.to_thread(test))


def test_every_fault_and_quirk_is_explained() -> None:
    explained = set(re.findall(r"^\| `([^`]+)` \|", MANUAL, re.M))
    assert {*Fault, *Quirk, *EmbeddingFault} <= explained


def test_the_options_of_the_manual_are_those_of_the_command() -> None:
    explained = set(re.findall(r"^\| `--([a-z-]+)", MANUAL, re.M)) | {"port"}
    assert {name.replace("_", "-") for name in vars(command.parse([]))} == explained
