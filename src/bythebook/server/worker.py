"""`python -m bythebook.server.worker`: one process of a crew."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bythebook.errors import BookError
from bythebook.serialization import error_response
from bythebook.server import serve
from bythebook.server.serve import work
from bythebook.server.signals import heeding_signals
from bythebook.settings import Settings

if TYPE_CHECKING:
    from bythebook.server.serve import Ready
    from bythebook.server.signals import Stop


def main() -> None:
    """Do what standard input says, until told to stop or until it ends."""
    job = json.loads(sys.stdin.readline())
    try:
        serve.run(_work(job))
    except BookError as error:
        _report(error_response(error))
        sys.exit(1)


async def _work(job: dict[str, Any]) -> None:
    with heeding_signals() as stop, socket.socket(fileno=job["socket"]) as bound:
        asyncio.get_running_loop().add_reader(sys.stdin.fileno(), _orphaned, stop)
        settings = Settings.load(job["settings"])
        await work(settings, bound, stop=stop, ready=_ready, say=_say, figures=settings.metrics_folder)


def _orphaned(stop: Stop) -> None:
    """Nothing is ever written here a second time: it is the end, and whoever comes next wants the port."""
    asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
    stop.abandon()


def _ready(report: Ready) -> None:
    _report(asdict(report))
    # Nobody listens any more: what libraries print must not fill a pipe.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())


def _report(report: dict[str, Any]) -> None:
    print(json.dumps(report), flush=True)  # noqa: T201 - whoever started this process reads it


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - standard error is for people


if __name__ == "__main__":
    main()
