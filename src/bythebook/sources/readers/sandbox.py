"""Capped: a process that reads documents nobody vouches for, and is ended when it takes too much.

A PDF, an EPUB or a Word file is a program for its reader, and some are made to break it. They are read in a process of
its own, with little memory and little time, that can neither write files nor reach the network. Whatever happens to
that process, the file is reported, and the next one is read by a new process.

Documents: formats that are no text, read by a process that may be ended (see `capped`).

These readers open the file they are given, and nothing else.
"""

from __future__ import annotations

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

from bythebook.sources import Kind, Unreadable
from bythebook.sources.document import Draft, Part

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path, PurePath


OUT_OF_MEMORY = 77
"""The exit code of a process that was refused memory."""
_AT_ONCE = 1 << 16


@dataclass(frozen=True, slots=True)
class Caps:
    """How much one document may take."""

    memory: int = 1_000_000_000
    """Bytes of address space, for the whole process."""
    seconds: float = 1200.0
    """For a whole document, by the clock and by the processor."""
    stall: float = 120.0
    """Seconds without a sign of life. Two are given for each page of a PDF: when it is read, and when it is written."""
    output: int = 100_000_000
    """Bytes that may come back."""


class CappedReader:
    """Reads documents one after another, each within its caps. The process is started when the first one comes."""

    def __init__(self, caps: Caps | None = None) -> None:
        self._caps = caps or Caps()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def chapters(self, file: Path) -> list[str]:
        """The paths inside a document that holds several pages, in reading order. Raises Unreadable."""
        return list(map(str, self._ask(file, "")["chapters"]))

    def read(self, file: Path, *, part: str = "") -> Draft:
        """A document, or one part of it. Raises Unreadable."""
        draft = self._ask(file, part)
        parts = (Part(Kind(kind), text, level=level, anchor=anchor) for kind, text, level, anchor in draft["parts"])
        return Draft(draft["title"], tuple(parts), module_name=draft["module_name"])

    def __reduce__(self) -> tuple[type[CappedReader], tuple[Caps]]:
        return CappedReader, (self._caps,)  # a copy, in another process, starts a process of its own

    def stop(self) -> None:
        """End what is being read, also from another thread."""
        process, self._process = self._process, None
        if process:
            process.kill()
            # Whoever is waiting for its answer sees that it has ended, and clears up.
            if self._lock.acquire(blocking=False):
                try:
                    _end(process)
                finally:
                    self._lock.release()

    def _ask(self, file: Path, part: str) -> dict[str, Any]:
        with self._lock:
            process = self._process or self._start()
            job = json.dumps({"file": str(file), "part": part}).encode() + b"\n"
            try:
                answer = _answer(process, job, self._caps)
            except BaseException:
                self._process = None
                _end(process)
                raise
        if "unreadable" in answer:
            raise Unreadable(str(answer["unreadable"]))
        return answer

    def _start(self) -> subprocess.Popen[bytes]:
        # Of this process's variables it gets none: there may be keys among them.
        process = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-m", "bythebook.sources.readers.sandbox_worker", json.dumps(asdict(self._caps))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "PYTHONSAFEPATH": "1"},
        )
        self._process = process
        weakref.finalize(self, _end, process)
        return process


def _answer(process: subprocess.Popen[bytes], job: bytes, caps: Caps) -> dict[str, Any]:
    """What the process says about a job. Raises Unreadable when it says nothing, or too much, or takes too long."""
    latest = time.monotonic() + caps.seconds
    try:
        _pipe(process.stdin).write(job)
        _pipe(process.stdin).flush()
    except OSError:
        _broke_down(process, caps)
    received = bytearray()
    while True:
        piece = _piece(process, min(caps.stall, latest - time.monotonic()), caps)
        received += piece
        if len(received) > caps.output:
            raise Unreadable(f"more than {caps.output // 1_000_000} MB of text came out of it; split it")
        *signs, received = received.split(b"\n") if b"\n" in piece else [received]
        if answers := [sign for sign in signs if sign]:
            answer: dict[str, Any] = json.loads(answers[0])
            return answer


def _piece(process: subprocess.Popen[bytes], seconds: float, caps: Caps) -> bytes:
    stream = _pipe(process.stdout)
    ready, _, _ = select.select([stream], [], [], max(0.0, seconds))
    if not ready:
        raise Unreadable(_too_long(caps))
    return os.read(stream.fileno(), _AT_ONCE) or _broke_down(process, caps)


def _broke_down(process: subprocess.Popen[bytes], caps: Caps) -> NoReturn:
    _close(process)
    code = process.wait()
    if code == OUT_OF_MEMORY:
        raise Unreadable(f"more than {caps.memory // 1_000_000} MB of memory are needed to read it; split it")
    if code == -signal.SIGXCPU:
        raise Unreadable(_too_long(caps))
    raise Unreadable(f"it broke its reader ({f'signal {-code}' if code < 0 else f'exit code {code}'}); save it anew")


def _too_long(caps: Caps) -> str:
    return (
        f"it takes too long to read (over {caps.stall:g} s for one page or {caps.seconds:g} s in all); "
        "split it, or save it anew"
    )


def _pipe(pipe: Any) -> Any:
    if pipe is None or pipe.closed:
        raise Unreadable("reading it was interrupted")
    return pipe


def _close(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe:
            with suppress(OSError):
                pipe.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    _close(process)


PDF = frozenset([".pdf"])
EPUB = frozenset([".epub"])
WORD = frozenset([".docx"])

SUPPORTED = PDF | EPUB | WORD


def has_chapters(file: PurePath) -> bool:
    """Whether a document of this kind holds several pages."""
    return file.suffix.lower() in EPUB


def chapters(file: Path) -> list[str]:
    """The paths of the pages inside a document, in reading order. Raises Unreadable, and nothing else."""
    try:
        from bythebook.sources.readers import epub

        return epub.chapters(file)
    except Exception as exc:
        raise _unreadable(exc) from exc


def read(file: Path, *, part: str, sign: Callable[[], object]) -> Draft:
    """Read a document by the ending of its name. Raises Unreadable, and nothing else; gives a sign for each page."""
    try:
        return _read(file, file.suffix.lower(), part, sign)
    except Exception as exc:
        raise _unreadable(exc) from exc


def _read(file: Path, suffix: str, part: str, sign: Callable[[], object]) -> Draft:
    if suffix in PDF:
        from bythebook.sources.readers import pdf

        return pdf.read(file, sign=sign)
    if suffix in EPUB:
        from bythebook.sources.readers import epub

        return epub.read(file, part=part)
    from bythebook.sources.readers import docx

    return docx.read(file)


def _unreadable(exc: Exception) -> Unreadable:
    if isinstance(exc, Unreadable):
        return exc
    if isinstance(exc, MemoryError):
        raise exc
    if isinstance(exc, RecursionError):
        return Unreadable("it is nested too deeply to be a document")
    if isinstance(exc, OSError) and exc.strerror:
        return Unreadable(f"it cannot be opened: {exc.strerror}")
    return Unreadable(f"it is damaged, or not what its name says ({type(exc).__name__}: {exc}); save it anew")
