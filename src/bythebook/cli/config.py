"""`bythebook config`: every setting, its value, and where it came from."""

from __future__ import annotations

import typer

from bythebook.cli.doing import DataDir, Json, print_json, settings


def config(data_dir: DataDir = None, json: Json = False) -> None:
    """Show every setting, its value and where it came from."""
    shown = settings(data_dir=data_dir).shown()
    if json:
        print_json({name: {"value": value, "origin": origin, "help": text} for name, value, origin, text in shown})
        return
    width = max(len(name) for name, *_ in shown)
    for name, value, origin, text in shown:
        typer.echo(
            f"{typer.style(name.ljust(width), bold=True)}  {value or '(empty)'}  {typer.style(f'({origin})', dim=True)}"
        )
        typer.echo(f"{' ' * width}  {typer.style(text, dim=True)}")
