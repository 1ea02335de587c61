"""`bythebook index`: where the book is kept, besides on this disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bythebook.cli.console import bold, echo, print_json, run, say, settings, showing_progress
from bythebook.cli.options import DataDir, Json  # noqa: TC001 - typer reads them

if TYPE_CHECKING:
    from bythebook.admin import Copied, Held
    from bythebook.ingest.attach import Findings
    from bythebook.settings import Settings

app = typer.Typer(no_args_is_help=True)

Collection = Annotated[
    str | None, typer.Option("--collection", help="What the book is called on the server.", show_default=False)
]
Url = Annotated[str | None, typer.Option("--qdrant-url", help="The address of the server.", show_default=False)]

_COLUMNS = ("engine", "generation", "state", "pages", "chunks", "embedder", "published")


@app.command("list")
def list_generations(
    url: Url = None, collection: Collection = None, data_dir: DataDir = None, json: Json = False
) -> None:
    """Show every generation of the book, on this disk and on the Qdrant server."""
    from bythebook.admin import list_generations

    held = run(list_generations(settings(data_dir=data_dir, qdrant_url=url, collection_name=collection)))
    if json:
        print_json({"generations": held})
    elif not held:
        say("There is no book yet. 'bythebook ingest FOLDER' makes one.")
    else:
        _show([_COLUMNS, *map(_row, held)])


def _row(held: Held) -> tuple[str, ...]:
    published = held.published_at or "-"
    return (held.engine, held.name, held.state, str(held.pages), str(held.chunks), held.model or "-", published)


def _show(rows: list[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for number, row in enumerate(rows):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        echo(bold(line) if number == 0 else line)


@app.command()
def copy(
    source: Annotated[str, typer.Argument(metavar="FROM", help="embedded or qdrant.", show_default=False)],
    target: Annotated[str, typer.Argument(metavar="TO", help="The other one.", show_default=False)],
    replace: Annotated[bool, typer.Option("--replace", help="Publish it in place of another book there.")] = False,
    url: Url = None,
    collection: Collection = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Copy the book from this disk to the Qdrant server, or back, without embedding anything again."""
    chosen = settings(data_dir=data_dir, qdrant_url=url, collection_name=collection)
    copied = run(_copy(chosen, source, target, instead=replace))
    if json:
        print_json(copied)
        return
    said = f"Published {copied.generation}:" if copied.generation else "Nothing to do: it is there already,"
    echo(f"{said} {copied.pages} pages in {copied.chunks} chunks, from {copied.source} to {copied.target}")


async def _copy(chosen: Settings, source: str, target: str, *, instead: bool) -> Copied:
    from bythebook.admin import copy_index

    with showing_progress() as progress:
        return await copy_index(chosen, source, target, instead=instead, progress=progress)


@app.command()
def remove(
    generation: Annotated[str, typer.Argument(help="As 'index list' shows it.", show_default=False)],
    url: Url = None,
    collection: Collection = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Remove a generation from the Qdrant server that nobody reads any more."""
    from bythebook.admin import remove_generation

    run(remove_generation(settings(data_dir=data_dir, qdrant_url=url, collection_name=collection), generation))
    if json:
        print_json({"removed": generation})
    else:
        echo(f"{generation} is removed.")


@app.command()
def attach(
    collection: Annotated[str, typer.Argument(help="The collection, or an alias of it.", show_default=False)],
    embedder: Annotated[
        str,
        typer.Option(help="What made its vectors: local, cohere:MODEL or openai:MODEL.", show_default=False),
    ],
    vector: Annotated[str, typer.Option(help="Which vector to search, where it has several.", show_default=False)] = "",
    url: Url = None,
    site_url: Annotated[
        str | None, typer.Option(help="What completes relative addresses, for links.", show_default=False)
    ] = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Serve a collection that another program fills, as it is: read-only, and found by meaning alone."""
    chosen = settings(data_dir=data_dir, qdrant_url=url, site_url=site_url, embedder=embedder)
    found = run(_attach(chosen, collection, vector))
    if json:
        print_json(found)
    else:
        _tell(found)


async def _attach(chosen: Settings, collection: str, vector: str) -> Findings:
    from bythebook.admin import attach_collection

    with showing_progress() as progress:
        return await attach_collection(chosen, collection, vector=vector, progress=progress, say=say)


def _tell(found: Findings) -> None:
    _line("Attached", f"{found.collection} on {found.url}: {found.pages} pages in {found.chunks} chunks, read-only")
    agree = f"its vectors agree with the embedder's by {found.agreement:.2f} of 1"
    _line("Embedder", f"{found.model} ({found.dimension} dimensions); {agree}")
    _line("Has", ", ".join(part if part == name else f"{part} (as {name})" for part, name in found.fields.items()))
    for lacking in found.lacks:
        _line("Lacks", lacking)
    tried = found.calibration
    _line(
        "Refusal",
        f"answers {tried.kept:.0%} of {tried.questions} questions made from its own sentences, "
        f"refuses {tried.refused:.0%} of as many foreign ones (cutoff {tried.cutoff})",
    )


def _line(name: str, value: str) -> None:
    echo(f"{bold(f'{name:<11}')} {value}")


@app.command()
def detach(data_dir: DataDir = None, json: Json = False) -> None:
    """Let go of an attached collection, which stays as it is."""
    from bythebook.admin import detach_collection

    name = detach_collection(settings(data_dir=data_dir))
    if json:
        print_json({"detached": name})
    else:
        echo(f"{name} is detached.")
