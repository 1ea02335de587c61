"""`bythebook model`: the local models."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from bythebook.cli import console
from bythebook.cli.console import Json
from bythebook.errors import ConfigurationError, InputError
from bythebook.models import ENTAILMENT, MODELS, REQUIRED, ModelSpec

app = typer.Typer(no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="A model of `bythebook model list`. Default: all that a new book needs.")]


@app.command("list")
def list_models(json: Json = False) -> None:
    """List the models: what each is for, its licence and its maker, and whether it is installed."""
    folder = console.load_settings().model_folder
    rows = [_describe(spec, folder) for spec in (*MODELS, ENTAILMENT)]
    if json:
        console.print_json({"models": rows})
        return
    for row in rows:
        missing = f"{row['download_mb']} MB to download" if row["wheel"] else "missing"
        state = f"{row['size_mb']} MB installed" if row["installed"] else missing
        console.echo(f"{console.bold(row['title'])}  {state}")
        origin = f"wheel {row['wheel']}" if row["wheel"] else "a part of this package"
        console.echo(f"  {row['purpose']}; {row['license']}, by {row['author']}; {origin}")


@app.command()
def download(
    name: Name = "",
    source: Annotated[
        Path | None,
        typer.Option("--from", help="A wheel, or a folder that has the model or its wheel."),
    ] = None,
    json: Json = False,
) -> None:
    """Download the models with your package installer, verify them, and convert them."""
    from bythebook.models import install

    folder = console.load_settings().model_folder
    chosen = install.identify(source) if source and not name else _select(name)
    for spec in chosen:
        if not spec.wheel:
            install.verify(folder, spec)
        elif source:
            install.install(source, folder, spec, say=console.say)
        else:
            install.download(folder, spec, say=console.say)
    _print([_describe(spec, folder) for spec in chosen], as_object=json)


@app.command()
def verify(name: Name = "", json: Json = False) -> None:
    """Read every byte of the installed models and compare it with what was installed."""
    from bythebook.models import install

    folder = console.load_settings().model_folder
    chosen = _select(name)
    for spec in chosen:
        install.verify(folder, spec)
    _print([_describe(spec, folder) for spec in chosen], as_object=json)


def _select(name: str) -> list[ModelSpec]:
    if not name:
        return list(REQUIRED)
    found = [spec for spec in (*MODELS, ENTAILMENT) if name in (spec.name, spec.title)]
    if not found:
        raise InputError(f"there is no model {name!r}. The models are: {', '.join(spec.title for spec in MODELS)}.")
    return found


def _describe(spec: ModelSpec, folder: Path) -> dict[str, Any]:
    from bythebook.models import install

    try:
        found = install.find(folder, spec)
        size, place = found.size, found.folder
    except ConfigurationError:
        size, place = 0, (folder if spec.wheel else install.PACKAGE_DATA) / spec.name
    described = {name: value for name, value in asdict(spec).items() if name != "files"}
    return {**described, "installed": size > 0, "size_mb": round(size / 1e6), "folder": place}


def _print(rows: list[dict[str, Any]], *, as_object: bool) -> None:
    if as_object:
        console.print_json({"models": rows})
        return
    for row in rows:
        console.echo(f"{row['title']} is ready in {row['folder']}")
