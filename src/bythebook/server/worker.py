"""`python -m bythebook.server.worker`: a worker process of the supervisor."""

import asyncio
import json
import os
import socket
import sys
from dataclasses import asdict
from typing import Any

from bythebook.errors import BookError
from bythebook.serialization import error_to_dict
from bythebook.server import serve
from bythebook.server.serve import StartupReport, serve_book
from bythebook.server.signals import StopSignal, handle_signals
from bythebook.settings import Settings


def main() -> None:
    """Serve with the settings from standard input, until a stop signal or the end of standard input."""
    job = json.loads(sys.stdin.readline())
    try:
        serve.run_event_loop(_run_worker(job))
    except BookError as error:
        _write_report(error_to_dict(error))
        sys.exit(1)


async def _run_worker(job: dict[str, Any]) -> None:
    with handle_signals() as stop, socket.socket(fileno=job["socket"]) as listener:
        asyncio.get_running_loop().add_reader(sys.stdin.fileno(), _on_supervisor_exit, stop)
        settings = Settings.load(job["settings"])
        await serve_book(
            settings,
            listener,
            stop=stop,
            ready=_report_ready,
            say=_print_message,
            metrics_folder=settings.metrics_folder,
        )


def _on_supervisor_exit(stop: StopSignal) -> None:
    """Standard input became readable a second time: it was closed, because the supervisor is gone."""
    asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
    stop.set_orphan_flag()


def _report_ready(report: StartupReport) -> None:
    _write_report(asdict(report))
    # The supervisor reads one line. Output that libraries print later must not fill the pipe.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())


def _write_report(report: dict[str, Any]) -> None:
    print(json.dumps(report), flush=True)  # noqa: T201 - read by the supervisor


def _print_message(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - standard error is for people


if __name__ == "__main__":
    main()
