"""Child processes and their cost."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Took:
    """One run of a process, in seconds and bytes."""

    first_output: float
    """The time to the first byte on standard output, or to the end."""
    wall: float
    cpu: float
    peak_memory: int
    output: str

    def json(self) -> Any:
        return json.loads(self.output)


def python(*arguments: str) -> list[str]:
    return [sys.executable, *arguments]


def bythebook(*arguments: str | Path) -> list[str]:
    """The command as installed with this Python, or as a module."""
    script = Path(sys.executable).with_name("bythebook")
    command = [str(script)] if script.exists() else python("-m", "bythebook")
    return [*command, *map(str, arguments)]


def run(command: Sequence[str]) -> Took:
    """Run a process to its end. Raise if it fails."""
    started = time.perf_counter()
    # os.wait4 also returns the resource usage, unlike the wait of subprocess.
    with subprocess.Popen(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE) as process:
        if process.stdout is None:
            raise AssertionError("its output is a pipe")
        first = process.stdout.read(1)
        first_output = time.perf_counter() - started
        output = (first + process.stdout.read()).decode()
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return Took(first_output, wall, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, output)


def environment() -> dict[str, str]:
    """This environment with bytecode caching, as in an installation."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def in_turns(commands: Mapping[str, Sequence[str]], *, rounds: int) -> dict[str, list[Took]]:
    """Run each command once per round, so that all have the same conditions. The first round is for warm-up."""
    taken: dict[str, list[Took]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, command in commands.items():
            took = run(command)
            if number:
                taken[name].append(took)
    return taken


def median(taken: Sequence[Took], what: Callable[[Took], float]) -> float:
    return statistics.median(map(what, taken))
