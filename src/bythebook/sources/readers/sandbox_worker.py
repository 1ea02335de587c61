"""`python -m bythebook.sources.readers.sandbox_worker`: the process that `capped` starts, gives documents, and may end.

It takes away from itself what it does not need, and then answers one line of JSON with another. An empty line is a
sign of life.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bythebook.sources import Unreadable
from bythebook.sources.readers.sandbox import OUT_OF_MEMORY, Caps

if TYPE_CHECKING:
    from bythebook.sources.document import Draft

_FORBIDDEN = (
    *("socket.", "subprocess.", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.kill"),
    *("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "ctypes."),
)
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_MOST_FILES = 64


def main() -> None:
    """Read what standard input names, until it ends."""
    caps = Caps(**json.loads(sys.argv[1]))
    with open(os.dup(1), "wb", buffering=0) as answers:  # noqa: PTH123 - a file that is open already has no path
        give_up_rights(caps.memory)
        # Whatever a library prints must not be taken for an answer.
        sys.stdout = sys.stderr
        for line in sys.stdin.buffer:
            _allow_seconds(caps.seconds)
            try:
                answer = _answered(json.loads(line), lambda: answers.write(b"\n"))
                _write(answers, json.dumps(answer).encode() + b"\n")
            except MemoryError:
                os._exit(OUT_OF_MEMORY)


def _write(stream: Any, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[stream.write(rest) :]


def _answered(job: dict[str, str], sign: Any) -> dict[str, Any]:
    file, part = Path(job["file"]), job["part"]
    from bythebook.sources.readers import sandbox

    try:
        if sandbox.has_chapters(file) and not part:
            return {"chapters": sandbox.chapters(file)}
        return _plain(sandbox.read(file, part=part, sign=sign))
    except Unreadable as exc:
        return {"unreadable": str(exc)}


def _plain(draft: Draft) -> dict[str, Any]:
    parts = [[part.kind, part.text, part.level, part.anchor] for part in draft.parts]
    return {"title": draft.title, "module_name": draft.module_name, "parts": parts}


def give_up_rights(memory: int) -> None:
    """From here on: no more memory than this, no files but to read, no network, no other processes."""
    sys.dont_write_bytecode = True
    limits = {
        resource.RLIMIT_AS: memory,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: _MOST_FILES,
    }
    for limit, most in limits.items():
        # Not every system knows every limit.
        with suppress(ValueError, OSError):
            resource.setrlimit(limit, (most, most))
    sys.addaudithook(_refuse)


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    """Cannot be taken away again, whatever a document makes its reader do."""
    if event.startswith(_FORBIDDEN) or (event == "open" and arguments[2] and arguments[2] & _WRITING):
        raise PermissionError(f"{event} has no place in reading a document")


def _allow_seconds(seconds: float) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(used.ru_utime + used.ru_stime + seconds) + 1
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))


if __name__ == "__main__":
    main()
