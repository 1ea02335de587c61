"""`bythebook ingest`: read pages into the book."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bythebook.cli.doing import SOME_SKIPPED, echo, print_json, run, say, settings, showing_progress
from bythebook.cli.options import DataDir, Json  # noqa: TC001 - typer reads them
from bythebook.errors import BookError

if TYPE_CHECKING:
    from bythebook.ingest import Report
    from bythebook.settings import Settings

_MOST_SHOWN = 20


def ingest(
    sources: Annotated[list[Path], typer.Argument(help="Folders and files to read.", show_default=False)],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")] = False,
    site_url: Annotated[
        str | None, typer.Option(help="Where the pages are published, for links.", show_default=False)
    ] = None,
    site_style: Annotated[
        str | None, typer.Option(help="docusaurus, mkdocs, sphinx, mdbook or plain.", show_default=False)
    ] = None,
    embedder: Annotated[
        str | None,
        typer.Option(help="local, cohere:MODEL or openai:MODEL. By default as the book was made.", show_default=False),
    ] = None,
    engine: Annotated[
        str | None, typer.Option(help="ray: read, cut and embed on a Ray cluster.", show_default=False)
    ] = None,
    alone: Annotated[bool, typer.Option("--alone", help="Remove the pages of all other sources.")] = False,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Make the index from nothing.")] = False,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Read pages into the book: only what is new or has changed."""
    chosen = settings(data_dir=data_dir, site_url=site_url, site_style=site_style, embedder=embedder, engine=engine)
    report = run(_ingest(chosen, sources, dry_run=dry_run, alone=alone, rebuild=rebuild))
    if json:
        print_json(report)
    else:
        echo(summary(report, dry_run=dry_run))
        show_skipped(report)
    if report.skipped:
        raise typer.Exit(SOME_SKIPPED)


async def _ingest(chosen: Settings, sources: list[Path], *, dry_run: bool, alone: bool, rebuild: bool) -> Report:
    from bythebook.assemble import Book

    async with Book.open(chosen, say=say) as book:
        work = book.rehearse if dry_run else book.ingest
        try:
            with showing_progress() as progress:
                return await work(*sources, progress=progress, alone=alone, rebuild=rebuild)
        except BookError as error:
            if error.stage == "embedding":
                say("What was embedded so far is kept: the same command goes on from there.")
            raise


def summary(report: Report, *, dry_run: bool) -> str:
    """The report in two lines."""
    did = "Would be" if dry_run else ("Published" if report.generation else "Nothing to do:")
    name = f" {report.generation}" if report.generation else ""
    return (
        f"{did}{name} {report.pages} pages in {report.chunks} chunks ({report.embedded} embedded), "
        f"{report.seconds:.1f} s\n"
        f"{report.added} added, {report.changed} changed, {report.removed} removed, "
        f"{report.unchanged} unchanged, {len(report.skipped)} skipped"
    )


def show_skipped(report: Report) -> None:
    """Which files are not in the book, and why."""
    for skipped in report.skipped[:_MOST_SHOWN]:
        say(f"skipped {skipped.path}: {skipped.reason}")
    if len(report.skipped) > _MOST_SHOWN:
        say(f"... and {len(report.skipped) - _MOST_SHOWN} more; --json lists them all")
