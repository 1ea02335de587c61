"""`bythebook serve`: the HTTP server."""

import json as jsonlib
import os
import socket
from collections.abc import Callable
from contextlib import closing, nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from bythebook.cli.console import INTERRUPTED, BaseUrl, DataDir, Model, echo, load_settings, say
from bythebook.errors import InputError
from bythebook.server import serve as loop
from bythebook.server.serve import StartupReport
from bythebook.server.signals import StopSignal
from bythebook.settings import Settings


def serve(
    host: Annotated[str | None, typer.Option(help="The address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="The port to listen on. 0: any free port.")] = None,
    workers: Annotated[int | None, typer.Option(help="The number of server processes.")] = None,
    ingest: Annotated[Path | None, typer.Option(help="Ingest this folder first.", metavar="FOLDER")] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Ingest the folder after each change.")] = False,
    model: Model = None,
    base_url: BaseUrl = None,
    data_dir: DataDir = None,
    json: Annotated[bool, typer.Option("--json", help="Print one line of JSON when ready.")] = False,
) -> None:
    """Answer questions over HTTP until stopped with Ctrl-C."""
    if watch and ingest is None:
        raise InputError("--watch needs a folder. Add --ingest FOLDER.")
    settings = load_settings(host=host, port=port, workers=workers, model=model, base_url=base_url, data_dir=data_dir)
    announce = partial(_announce, settings, as_json=json)
    if loop.run_event_loop(run_server(settings, ingest, watching=watch, announce=announce)):
        say("Stopped.")
        raise typer.Exit(INTERRUPTED)


async def run_server(
    settings: Settings, folder: Path | None, *, watching: bool, announce: Callable[[str, StartupReport], None]
) -> bool:
    """Serve, and call `announce` when the server is ready. True if it was stopped with Ctrl-C."""
    from bythebook.cli.ingest_worker import IngestWorker
    from bythebook.server.serve import bind, format_url
    from bythebook.server.signals import handle_signals

    with closing(bind(settings.host, settings.port)) as listener, handle_signals() as stop:
        worker = IngestWorker(folder, settings) if folder else None
        if worker is None or await stop.run_or_stop(worker.ingest()):
            async with worker.watch() if worker and watching else nullcontext():
                await _run_workers(settings, listener, stop=stop, ready=partial(announce, format_url(listener)))
    return stop.interrupted


async def _run_workers(
    settings: Settings, listener: socket.socket, *, stop: StopSignal, ready: Callable[[StartupReport], None]
) -> None:
    """Serve in this process, or supervise several worker processes."""
    if settings.workers > 1:
        from bythebook.server.supervisor import Supervisor

        await Supervisor(settings, listener, stop, say).run(ready=ready)
    else:
        from bythebook.server.serve import serve_book

        await serve_book(settings, listener, stop=stop, ready=ready, say=say)


def _announce(settings: Settings, url: str, found: StartupReport, *, as_json: bool) -> None:
    """Print the URL, who has access, and the script tag for a site."""
    say(f"Serving {found.chunks} chunks ({found.generation}) on {url}, Ctrl-C to stop.")
    say(f"Chat with it there, or paste this into a site: {script_tag(url, found)}")
    if found.open:
        say("The site must be listed in cors_origins.")
        say(
            "warning: without a key, anyone who can reach this address has access. 'bythebook keys create' creates one."
        )
    else:
        say("'bythebook keys create --site https://your-site.example' creates the TOKEN.")
    if as_json:
        ready = {
            "url": url,
            "pid": os.getpid(),
            "workers": settings.workers,
            **asdict(found),
            "tag": script_tag(url, found),
        }
        echo(jsonlib.dumps(ready))


def script_tag(url: str, found: StartupReport) -> str:
    """The HTML that an author pastes into a site."""
    token = "" if found.open else ' data-site="TOKEN"'
    return f'<script src="{url}/widget.js"{token} async></script>'
