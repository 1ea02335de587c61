"""`python -m bythebook.sources.readers.sandbox_worker`: the child process of `sandbox`.

The process gives up rights and resources, then answers each line of JSON with a line of JSON. An empty line is a
heartbeat.
"""

import importlib
import json
import os
import resource
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

from bythebook.sources import Unreadable, readers
from bythebook.sources.document import ParsedDocument
from bythebook.sources.projects import SlugOptions, Style
from bythebook.sources.readers.sandbox import OUT_OF_MEMORY_EXIT_CODE, SandboxLimits

_FORBIDDEN_EVENTS = (
    *("socket.", "subprocess.", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.kill"),
    *("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate", "os.chmod"),
    *("ctypes.dlopen", "ctypes.dlsym", "ctypes.call_function"),
)
_WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_MAX_OPEN_FILES = 64
_MOST_PARTS = 100_000


def main() -> None:
    """Run the jobs on standard input until it is closed."""
    limits = SandboxLimits(**json.loads(sys.argv[1]))
    with open(os.dup(1), "wb", buffering=0) as answers:  # noqa: PTH123 - a file that is open already has no path
        # PDFium is a shared library: it must be loaded while that is still allowed.
        importlib.import_module("bythebook.sources.readers.pdf")
        drop_privileges(limits.memory)
        # Output that a library prints must not be read as an answer.
        sys.stdout = sys.stderr
        for line in sys.stdin.buffer:
            try:
                job = json.loads(line)
                _limit_cpu_time(job["seconds"])
                answer = _run_job(job, lambda: answers.write(b"\n"))
                _write_all(answers, json.dumps(answer).encode() + b"\n")
            except MemoryError:
                os._exit(OUT_OF_MEMORY_EXIT_CODE)


def _write_all(stream: Any, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[stream.write(rest) :]


def _run_job(job: dict[str, Any], heartbeat: Callable[[], object]) -> dict[str, Any]:
    try:
        if "chapters_of" in job:
            return {"chapters": readers.list_chapters(Path(job["chapters_of"]))}
        if "file" in job:
            return {"document": _to_json(readers.read_file(Path(job["file"]), part=job["part"], heartbeat=heartbeat))}
        if "html" in job:
            return {"page": _read_web_page(job["html"])}
        style, slugs = Style(job["style"]), SlugOptions(**job["slugs"])
        return {"document": _to_json(readers.read(job["text"], suffix=job["suffix"], style=style, slugs=slugs))}
    except Unreadable as exc:
        return {"unreadable": str(exc)}


def _read_web_page(html: str) -> dict[str, Any]:
    from bythebook.sources.readers.html import read_web_page

    with readers.translate_errors(readers.GARBLED):
        page = read_web_page(html)
    return {field.name: getattr(page, field.name) for field in fields(page)} | {"document": _to_json(page.document)}


def _to_json(document: ParsedDocument) -> dict[str, Any]:
    if len(document.parts) > _MOST_PARTS:
        raise Unreadable(f"it has over {_MOST_PARTS:,} headings and paragraphs; split it")
    parts = [[part.kind, part.text, part.level, part.anchor, part.code] for part in document.parts]
    return {"title": document.title, "module_name": document.module_name, "parts": parts}


def drop_privileges(memory: int) -> None:
    """Limit the memory of this process, and forbid writing files, the network and other processes."""
    sys.dont_write_bytecode = True
    limits = {
        resource.RLIMIT_AS: memory,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: _MAX_OPEN_FILES,
    }
    for limit, value in limits.items():
        # Not every system supports every limit.
        with suppress(ValueError, OSError):
            resource.setrlimit(limit, (value, value))
    sys.addaudithook(_audit)


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook. Python code cannot remove it, so it also holds for code that a document injects."""
    if event.startswith(_FORBIDDEN_EVENTS) or (event == "open" and arguments[2] and arguments[2] & _WRITE_FLAGS):
        raise PermissionError(f"{event} is not allowed while a document is read")


def _limit_cpu_time(seconds: float) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(used.ru_utime + used.ru_stime + seconds) + 1
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))


if __name__ == "__main__":
    main()
