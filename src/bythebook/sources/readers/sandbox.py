"""A child process with limited rights that parses untrusted documents.

A document in any format can be built to exhaust or break its parser, in less than a kilobyte. All are parsed in a child
process with limits on memory and time that can neither write files nor use the network. If the process dies or exceeds
a limit, the document is reported as unreadable and the next one gets a new process.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
import weakref
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from bythebook.sources import BlockKind, Unreadable
from bythebook.sources.document import DocumentPart, ParsedDocument

if TYPE_CHECKING:
    from pathlib import Path

    from bythebook.sources.projects import SlugOptions, Style
    from bythebook.sources.readers.html import WebPage

OUT_OF_MEMORY_EXIT_CODE = 77
_READ_SIZE = 1 << 16
_WALL_TIME = 4.0
"""How many times the limit of CPU time may pass on a clock: the machine may be busy."""
_MOST_IDLE = 4
_IDLE: list[tuple[SandboxLimits, subprocess.Popen[bytes]]] = []
"""Processes whose sandbox is gone. The next sandbox with the same limits takes one instead of starting its own."""


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """Resource limits for one document."""

    memory: int = 1_000_000_000
    """Bytes of address space of the process."""
    seconds: float = 1200.0
    """CPU time for a whole file."""
    page_seconds: float = 30.0
    """The same for a text document, a web page or a chapter of an EPUB. Real ones take less than a second."""
    stall: float = 120.0
    """Seconds without a heartbeat. Each page of a PDF gives two: one when it is parsed, one when it is written."""
    output: int = 100_000_000
    """Bytes of the answer."""


class Sandbox:
    """Parses one document at a time in a child process, which is started for the first document."""

    def __init__(self, limits: SandboxLimits | None = None) -> None:
        self._limits = limits or SandboxLimits()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def list_chapters(self, file: Path) -> list[str]:
        """The paths of the pages inside a file that holds several, in reading order. Raises Unreadable."""
        return list(map(str, self._call({"chapters_of": str(file)}, self._limits.seconds)["chapters"]))

    def read_file(self, file: Path, *, part: str = "") -> ParsedDocument:
        """A binary document, or one page of it. Raises Unreadable."""
        seconds = self._limits.page_seconds if part else self._limits.seconds
        return _to_document(self._call({"file": str(file), "part": part}, seconds)["document"])

    def read_text(self, text: str, *, suffix: str, style: Style, slugs: SlugOptions) -> ParsedDocument:
        """A text document, like `readers.read`. Raises Unreadable."""
        job = {"text": text, "suffix": suffix, "style": style, "slugs": asdict(slugs)}
        return _to_document(self._call(job, self._limits.page_seconds)["document"])

    def read_web_page(self, html: str) -> WebPage:
        """A published page, like `html.read_web_page`. Raises Unreadable."""
        from bythebook.sources.readers.html import WebPage

        fields = self._call({"html": html}, self._limits.page_seconds)["page"]
        document = _to_document(fields.pop("document"))
        return WebPage(document, **{name: _to_tuple(value) for name, value in fields.items()})

    def __reduce__(self) -> tuple[type[Sandbox], tuple[SandboxLimits]]:
        return Sandbox, (self._limits,)  # A copy in another process starts its own child.

    def stop(self) -> None:
        """Kill the process. Safe to call from another thread while a document is being parsed."""
        process, self._process = self._process, None
        if process:
            process.kill()
            # A thread that waits for an answer sees the end of the process and cleans up.
            if self._lock.acquire(blocking=False):
                try:
                    _terminate(process)
                finally:
                    self._lock.release()

    def _call(self, job: dict[str, Any], seconds: float) -> dict[str, Any]:
        line = json.dumps({**job, "seconds": seconds}).encode() + b"\n"
        with self._lock:
            process = self._process or self._start()
            try:
                answer = _exchange(process, line, self._limits, seconds)
            except BaseException:
                self._process = None
                _terminate(process)
                raise
        if "unreadable" in answer:
            raise Unreadable(str(answer["unreadable"]))
        return answer

    def _start(self) -> subprocess.Popen[bytes]:
        for at, (limits, idle) in enumerate(_IDLE):
            if limits == self._limits and idle.poll() is None:
                del _IDLE[at]
                return self._adopt(idle)
        # The child gets none of this process's environment variables: they may contain API keys.
        process = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-m", "bythebook.sources.readers.sandbox_worker", json.dumps(asdict(self._limits))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "PYTHONSAFEPATH": "1"},
        )
        return self._adopt(process)

    def _adopt(self, process: subprocess.Popen[bytes]) -> subprocess.Popen[bytes]:
        self._process = process
        weakref.finalize(self, _release, process, self._limits)
        return process


def _release(process: subprocess.Popen[bytes], limits: SandboxLimits) -> None:
    """Keep a process for the next sandbox. One that was killed has no pipes any more."""
    if process.stdin and not process.stdin.closed and len(_IDLE) < _MOST_IDLE:
        _IDLE.append((limits, process))
    else:
        _terminate(process)


@atexit.register
def _terminate_idle() -> None:
    while _IDLE:
        _terminate(_IDLE.pop()[1])


def _to_document(fields: dict[str, Any]) -> ParsedDocument:
    parts = (
        DocumentPart(BlockKind(kind), text, level=level, anchor=anchor, code=tuple(map(tuple, code)))
        for kind, text, level, anchor, code in fields["parts"]
    )
    return ParsedDocument(fields["title"], tuple(parts), module_name=fields["module_name"])


def _to_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _exchange(process: subprocess.Popen[bytes], job: bytes, limits: SandboxLimits, seconds: float) -> dict[str, Any]:
    """Send a job and receive its answer. Raises Unreadable if the answer is missing, too long or too late."""
    deadline = time.monotonic() + _WALL_TIME * seconds
    try:
        _require_open(process.stdin).write(job)
        _require_open(process.stdin).flush()
    except OSError:
        _raise_for_exit(process, limits, seconds)
    received = bytearray()
    while True:
        chunk = _receive(process, limits, seconds, deadline)
        received += chunk
        if len(received) > limits.output:
            raise Unreadable(f"more than {limits.output // 1_000_000} MB of text came out of it; split it")
        # An empty line is a heartbeat.
        *lines, received = received.split(b"\n") if b"\n" in chunk else [received]
        if answers := [line for line in lines if line]:
            answer: dict[str, Any] = json.loads(answers[0])
            return answer


def _receive(process: subprocess.Popen[bytes], limits: SandboxLimits, seconds: float, deadline: float) -> bytes:
    stream = _require_open(process.stdout)
    ready, _, _ = select.select([stream], [], [], max(0.0, min(limits.stall, deadline - time.monotonic())))
    if not ready:
        raise Unreadable(_timeout_message(limits, seconds))
    return os.read(stream.fileno(), _READ_SIZE) or _raise_for_exit(process, limits, seconds)


def _raise_for_exit(process: subprocess.Popen[bytes], limits: SandboxLimits, seconds: float) -> NoReturn:
    _close(process)
    code = process.wait()
    if code == OUT_OF_MEMORY_EXIT_CODE:
        raise Unreadable(f"more than {limits.memory // 1_000_000} MB of memory are needed to read it; split it")
    if code == -signal.SIGXCPU:
        raise Unreadable(_timeout_message(limits, seconds))
    reason = f"signal {-code}" if code < 0 else f"exit code {code}"
    raise Unreadable(f"its parser crashed ({reason}); save it again")


def _timeout_message(limits: SandboxLimits, seconds: float) -> str:
    within = f"{limits.stall:g} s for one page or {seconds:g} s in all" if limits.stall < seconds else f"{seconds:g} s"
    return f"it takes too long to read (over {within}); split it, or save it again"


def _require_open(pipe: Any) -> Any:
    if pipe is None or pipe.closed:
        raise Unreadable("reading it was interrupted")
    return pipe


def _close(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe:
            with suppress(OSError):
                pipe.close()


def _terminate(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    _close(process)
