"""`bythebook config`: every setting, its value, and where it came from."""

from __future__ import annotations

from bythebook.cli.console import bold, dim, echo, print_json, settings
from bythebook.cli.options import DataDir, Json  # noqa: TC001 - typer reads them


def config(data_dir: DataDir = None, json: Json = False) -> None:
    """Show every setting, its value and where it came from."""
    shown = settings(data_dir=data_dir).shown()
    if json:
        print_json({name: {"value": value, "origin": origin, "help": text} for name, value, origin, text in shown})
        return
    width = max(len(name) for name, *_ in shown)
    for name, value, origin, text in shown:
        echo(f"{bold(name.ljust(width))}  {value or '(empty)'}  {dim(f'({origin})')}")
        echo(f"{' ' * width}  {dim(text)}")
