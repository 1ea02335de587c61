"""`bythebook index`: the generations of the book on this disk and on a Qdrant server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bythebook.cli import console
from bythebook.cli.console import DataDir, Json

if TYPE_CHECKING:
    from bythebook.admin import GenerationInfo
    from bythebook.ingest.attach import AttachReport

app = typer.Typer(no_args_is_help=True)

Collection = Annotated[str | None, typer.Option("--collection", help="The name of the collection on the server.")]
Url = Annotated[str | None, typer.Option("--qdrant-url", help="The URL of the server.")]

_COLUMNS = ("engine", "generation", "state", "pages", "chunks", "embedder", "published")


@app.command("list")
def list_generations(
    url: Url = None, collection: Collection = None, data_dir: DataDir = None, json: Json = False
) -> None:
    """Show every generation of the book, on this disk and on the Qdrant server."""
    from bythebook.admin import list_generations

    settings = console.load_settings(data_dir=data_dir, qdrant_url=url, collection_name=collection)
    held = console.run(list_generations(settings))
    if json:
        console.print_json({"generations": held})
    elif not held:
        console.say("There is no book yet. 'bythebook ingest FOLDER' creates one.")
    else:
        console.print_table([_COLUMNS, *map(_row, held)])


def _row(held: GenerationInfo) -> tuple[str, ...]:
    published = held.published_at or "-"
    return (held.engine, held.name, held.state, str(held.pages), str(held.chunks), held.model or "-", published)


@app.command()
def copy(
    source: Annotated[str, typer.Argument(metavar="FROM", help="The source: embedded or qdrant.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="The target: the other one.")],
    replace: Annotated[bool, typer.Option("--replace", help="Replace another book at the target.")] = False,
    url: Url = None,
    collection: Collection = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Copy the book from this disk to the Qdrant server, or back, without embedding anything again."""
    from bythebook.admin import copy_index

    settings = console.load_settings(data_dir=data_dir, qdrant_url=url, collection_name=collection)
    with console.progress_bar() as progress:
        copied = console.run(copy_index(settings, source, target, replace=replace, progress=progress))
    if json:
        console.print_json(copied)
        return
    action = f"Published {copied.generation}:" if copied.generation else "Nothing to do: it is there already,"
    console.echo(f"{action} {copied.pages} pages in {copied.chunks} chunks, from {copied.source} to {copied.target}")


@app.command()
def remove(
    generation: Annotated[str, typer.Argument(help="As 'index list' shows it.")],
    url: Url = None,
    collection: Collection = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Remove an unused generation from the Qdrant server."""
    from bythebook.admin import remove_generation

    settings = console.load_settings(data_dir=data_dir, qdrant_url=url, collection_name=collection)
    console.run(remove_generation(settings, generation))
    if json:
        console.print_json({"removed": generation})
    else:
        console.echo(f"{generation} is removed.")


@app.command()
def attach(
    collection: Annotated[str, typer.Argument(help="The collection or an alias.")],
    embedder: Annotated[
        str,
        typer.Option(help="The embedder of its vectors: local, cohere:MODEL or openai:MODEL."),
    ],
    vector: Annotated[str, typer.Option(help="The named vector to search, if it has several.")] = "",
    url: Url = None,
    site_url: Annotated[str | None, typer.Option(help="The base URL for relative URLs.")] = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Serve a collection that another program fills: read-only, with vector search only."""
    from bythebook.admin import attach_collection

    settings = console.load_settings(data_dir=data_dir, qdrant_url=url, site_url=site_url, embedder=embedder)
    with console.progress_bar() as progress:
        work = attach_collection(settings, collection, vector=vector, progress=progress, say=console.say)
        found = console.run(work)
    if json:
        console.print_json(found)
    else:
        _print_report(found)


def _print_report(found: AttachReport) -> None:
    console.print_field(
        "Attached", f"{found.collection} on {found.url}: {found.pages} pages in {found.chunks} chunks, read-only"
    )
    agree = f"its vectors agree with the embedder's by {found.agreement:.2f} of 1"
    console.print_field("Embedder", f"{found.model} ({found.dimension} dimensions); {agree}")
    console.print_field(
        "Has", ", ".join(part if part == name else f"{part} (as {name})" for part, name in found.fields.items())
    )
    for lacking in found.lacks:
        console.print_field("Lacks", lacking)
    calibration = found.calibration
    console.print_field(
        "Refusal",
        f"answers {calibration.kept:.0%} of {calibration.questions} questions made from its own sentences, "
        f"refuses {calibration.refused:.0%} of as many foreign ones (cutoff {calibration.cutoff})",
    )


@app.command()
def detach(data_dir: DataDir = None, json: Json = False) -> None:
    """Detach a collection. The collection itself does not change."""
    from bythebook.admin import detach_collection

    name = detach_collection(console.load_settings(data_dir=data_dir))
    if json:
        console.print_json({"detached": name})
    else:
        console.echo(f"{name} is detached.")
