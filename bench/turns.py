"""Two processes that run alternately, so that other load on the machine affects both equally."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from typing import TYPE_CHECKING

from bench.processes import ROOT, Took, environment

if TYPE_CHECKING:
    from collections.abc import Sequence

TURN, LOOK = 0.5, 0.005


class Runner:
    """A process that is stopped outside of its turns, and its total running time."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `took`
        self._process = subprocess.Popen(command, cwd=ROOT, env=environment(), stdout=self._output)
        self._seconds = 0.0
        self._used: Took | None = None

    def hold(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def hold_when_ready(self) -> None:
        """Run it until it prints a line, which marks the start of the measured part."""
        while not os.fstat(self._output.fileno()).st_size:
            if self._process.poll() is not None:
                raise SystemExit(f"{' '.join(self._command)} ended before it began")
            time.sleep(LOOK)
        self.hold()

    def turn(self) -> bool:
        """Run it for one time slice. False if it has ended."""
        started = time.perf_counter()
        self._process.send_signal(signal.SIGCONT)
        pid = 0
        while not pid and time.perf_counter() - started < TURN:
            time.sleep(LOOK)
            pid, status, used = os.wait4(self._process.pid, os.WNOHANG)
        if not pid:
            self.hold()
        self._seconds += time.perf_counter() - started
        if pid:
            self._process.returncode = os.waitstatus_to_exitcode(status)
            self._end(used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)
        return not pid

    def _end(self, cpu: float, peak_memory: int) -> None:
        if self._process.returncode:
            raise SystemExit(f"{' '.join(self._command)} ended with {self._process.returncode}")
        with self._output as output:
            output.seek(0)
            text = output.read().decode()
        self._used = Took(self._seconds, self._seconds, cpu, peak_memory, text)

    def took(self) -> Took:
        if self._used is None:
            raise AssertionError("it still runs")
        return self._used


def in_turns_to_the_end(*runners: Runner) -> None:
    """Run all processes in time slices until the last one ends."""
    running = list(runners)
    while running:
        running = [runner for runner in running if runner.turn()]
