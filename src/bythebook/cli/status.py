"""`bythebook status`: what the book is made of, and how far it can be trusted."""

from __future__ import annotations

from bythebook.cli.doing import DataDir, Json, print_json, run, settings


def status(data_dir: DataDir = None, json: Json = False) -> None:
    """Show the pages, the chunks, the model, and how well the book tells what it covers."""
    from bythebook.assemble import status_of

    shown = run(status_of(settings(data_dir=data_dir)))
    if json:
        print_json(shown)
