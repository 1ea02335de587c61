"""`bythebook ingest`: read pages into the book."""

from __future__ import annotations

import json as jsonlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from bythebook.cli.console import SOME_SKIPPED, echo, print_json, run, say, settings, showing_progress
from bythebook.cli.options import DataDir, Json  # noqa: TC001 - typer reads them
from bythebook.errors import BookError, InputError
from bythebook.serialization import as_json

if TYPE_CHECKING:
    from bythebook.ingest import Report
    from bythebook.settings import Settings

_MOST_SHOWN = 20


def ingest(
    sources: Annotated[list[str], typer.Argument(help="Folders, files and sites to read.", show_default=False)],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Stay, and read in again whatever changes.")] = False,
    site_url: Annotated[
        str | None, typer.Option(help="Where the pages are published, for links.", show_default=False)
    ] = None,
    site_style: Annotated[
        str | None, typer.Option(help="docusaurus, mkdocs, sphinx, mdbook or plain.", show_default=False)
    ] = None,
    allow_private: Annotated[
        bool, typer.Option("--allow-private", help="Let the named site be on a private network.")
    ] = False,
    site_version: Annotated[str | None, typer.Option(help="The version of a site to read.", show_default=False)] = None,
    site_locale: Annotated[str | None, typer.Option(help="The language of a site to read.", show_default=False)] = None,
    site_builder: Annotated[
        str | None, typer.Option(help="Of a Sphinx project: html or dirhtml.", show_default=False)
    ] = None,
    include: Annotated[
        list[str] | None,
        typer.Option(
            help="Also read blog, pages, starter, changelog, unlisted, repository or all. May be repeated.",
            show_default=False,
        ),
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
    chosen = settings(
        data_dir=data_dir,
        site_url=site_url,
        site_style=site_style,
        site_version=site_version,
        site_locale=site_locale,
        site_builder=site_builder,
        site_include=include or None,
        embedder=embedder,
        engine=engine,
        allow_private="on" if allow_private else None,
    )
    wanted = _Wanted(sources, dry_run=dry_run, alone=alone, rebuild=rebuild, as_json=json)
    if watch:
        _refuse_to_watch(wanted)
        run(_keep_up(chosen, wanted))
        return
    report = run(_ingest(chosen, wanted))
    _show(report, wanted)
    if report.skipped:
        raise typer.Exit(SOME_SKIPPED)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What the command was told to do."""

    sources: list[str]
    dry_run: bool
    alone: bool
    rebuild: bool
    as_json: bool


def _refuse_to_watch(wanted: _Wanted) -> None:
    if wanted.dry_run:
        raise InputError("--watch reads in what changes, and --dry-run reads in nothing: give one of them.")
    if sites := [source for source in wanted.sources if "://" in source]:
        raise InputError(
            f"--watch sees when files change, and {sites[0]!r} is a site: ingest it again from time to time."
        )


async def _ingest(chosen: Settings, wanted: _Wanted) -> Report:
    from bythebook.book import Book

    async with Book.open(chosen, say=say) as book:
        work = book.rehearse if wanted.dry_run else book.ingest
        try:
            with showing_progress() as progress:
                return await work(*wanted.sources, progress=progress, alone=wanted.alone, rebuild=wanted.rebuild)
        except BookError as error:
            if error.stage == "embedding":
                say("What was embedded so far is kept: the same command goes on from there.")
            raise


async def _keep_up(chosen: Settings, wanted: _Wanted) -> NoReturn:
    """Read the sources in, and again whenever they change, until interrupted."""
    from bythebook.book import Book
    from bythebook.ingest.watcher import Keeping
    from bythebook.sources.factory import open_source

    sources = [open_source(chosen.source_options(), path) for path in wanted.sources]
    async with Book.open(chosen, say=say) as book:
        rebuild = wanted.rebuild

        async def read() -> None:
            nonlocal rebuild
            with showing_progress() as progress:
                report = await book.ingest(*sources, progress=progress, alone=wanted.alone, rebuild=rebuild)
            rebuild = False
            if wanted.as_json:
                echo(jsonlib.dumps(as_json(report)))
            else:
                _show(report, wanted)

        say(f"Watching {', '.join(map(str, wanted.sources))}. Ctrl-C to stop.")
        await Keeping(sources, read, say).go_on()


def _show(report: Report, wanted: _Wanted) -> None:
    if wanted.as_json:
        print_json(report)
    else:
        echo(summary(report, dry_run=wanted.dry_run))
        show_rest(report)


def summary(report: Report, *, dry_run: bool) -> str:
    """The report in two lines."""
    did = "Would be" if dry_run else ("Published" if report.generation else "Nothing to do:")
    name = f" {report.generation}" if report.generation else ""
    left_out = f", {len(report.left_out)} left out" if report.left_out else ""
    return (
        f"{did}{name} {report.pages} pages in {report.chunks} chunks ({report.embedded} embedded), "
        f"{report.seconds:.1f} s\n"
        f"{report.added} added, {report.changed} changed, {report.removed} removed, "
        f"{report.unchanged} unchanged, {len(report.skipped)} skipped{left_out}"
    )


def show_rest(report: Report) -> None:
    """Which files are not in the book, and why."""
    _show_some([f"skipped {entry.path}: {entry.reason}" for entry in report.skipped])
    _show_some([f"left out {entry.path}: {entry.reason}" for entry in report.left_out])


def _show_some(lines: list[str]) -> None:
    for line in lines[:_MOST_SHOWN]:
        say(line)
    if len(lines) > _MOST_SHOWN:
        say(f"... and {len(lines) - _MOST_SHOWN} more; --json lists them all")
