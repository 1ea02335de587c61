"""`bythebook serve`: the book on the network."""

from __future__ import annotations

import json as jsonlib
import os
from contextlib import closing, nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bythebook.cli.console import INTERRUPTED, echo, say, settings
from bythebook.cli.options import BaseUrl, DataDir, Model  # noqa: TC001 - typer reads them
from bythebook.errors import InputError
from bythebook.server import serve as loop

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from bythebook.server.serve import Ready
    from bythebook.server.signals import Stop
    from bythebook.settings import Settings


def serve(
    host: Annotated[str | None, typer.Option(help="The address to listen on.", show_default=False)] = None,
    port: Annotated[int | None, typer.Option(help="The port to listen on; 0 is any.", show_default=False)] = None,
    workers: Annotated[int | None, typer.Option(help="How many processes answer.", show_default=False)] = None,
    ingest: Annotated[
        Path | None, typer.Option(help="Read this folder in first.", show_default=False, metavar="FOLDER")
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Read the folder in again whenever it changes.")] = False,
    model: Model = None,
    base_url: BaseUrl = None,
    data_dir: DataDir = None,
    json: Annotated[bool, typer.Option("--json", help="Print one line of JSON when ready.")] = False,
) -> None:
    """Answer readers over HTTP, until stopped with Ctrl-C."""
    if watch and ingest is None:
        raise InputError("--watch needs to know which folder: give it with --ingest FOLDER.")
    chosen = settings(host=host, port=port, workers=workers, model=model, base_url=base_url, data_dir=data_dir)
    announce = partial(_announce, chosen, as_json=json)
    if loop.run(serve_until_stopped(chosen, ingest, watching=watch, announce=announce)):
        say("Stopped.")
        raise typer.Exit(INTERRUPTED)


async def serve_until_stopped(
    chosen: Settings, folder: Path | None, *, watching: bool, announce: Callable[[str, Ready], None]
) -> bool:
    """Serve, and announce the address once readers can come. Says whether it was stopped with Ctrl-C."""
    from bythebook.cli.ingest_worker import Reading
    from bythebook.server.serve import bind, url_of
    from bythebook.server.signals import heeding_signals

    with closing(bind(chosen.host, chosen.port)) as bound, heeding_signals() as stop:
        reading = Reading(folder, chosen) if folder else None
        if reading is None or await stop.unless_asked(reading.begin()):
            async with reading.going_on() if reading and watching else nullcontext():
                await _answer(chosen, bound, stop=stop, ready=partial(announce, url_of(bound)))
    return stop.interrupted


async def _answer(chosen: Settings, bound: socket.socket, *, stop: Stop, ready: Callable[[Ready], None]) -> None:
    """Answer readers: in this process, or in several that it looks after."""
    if chosen.workers > 1:
        from bythebook.server.supervisor import Crew

        await Crew(chosen, bound, stop, say).work(ready=ready)
    else:
        from bythebook.server.serve import work

        await work(chosen, bound, stop=stop, ready=ready, say=say)


def _announce(chosen: Settings, url: str, found: Ready, *, as_json: bool) -> None:
    """Say where the book is served, once, who may ask it, and what to paste into a site."""
    say(f"Serving {found.chunks} chunks ({found.generation}) on {url}, Ctrl-C to stop.")
    say(f"Chat with it there, or paste this into a site: {tag(url, found)}")
    if found.open:
        say("The site must be listed in cors_origins.")
        say("warning: there is no key yet, so whoever reaches this address may ask. 'bythebook keys create' makes one.")
    else:
        say("'bythebook keys create --site https://your-site.example' makes the TOKEN.")
    if as_json:
        ready = {"url": url, "pid": os.getpid(), "workers": chosen.workers, **asdict(found), "tag": tag(url, found)}
        echo(jsonlib.dumps(ready))


def tag(url: str, found: Ready) -> str:
    """What an author pastes into a site."""
    token = "" if found.open else ' data-site="TOKEN"'
    return f'<script src="{url}/widget.js"{token} async></script>'
