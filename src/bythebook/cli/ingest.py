"""`bythebook ingest`: add pages to the book."""

import json as jsonlib
from dataclasses import dataclass
from typing import Annotated, NoReturn

import typer

from bythebook.cli.console import PAGES_SKIPPED, DataDir, Json, echo, load_settings, print_json, progress_bar, run, say
from bythebook.errors import BookError, InputError
from bythebook.ingest import IngestReport
from bythebook.serialization import to_json
from bythebook.settings import Settings

_MAX_LINES = 20


def ingest(
    sources: Annotated[list[str], typer.Argument(help="Folders, files and sites to ingest.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the changes without making them.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Keep running and ingest after each change.")] = False,
    site_url: Annotated[str | None, typer.Option(help="The base URL of the published pages, for links.")] = None,
    site_style: Annotated[
        str | None,
        typer.Option(help="docusaurus, mkdocs, sphinx, mdbook or plain."),
    ] = None,
    allow_private: Annotated[
        bool, typer.Option("--allow-private", help="Allow the named site on a private network.")
    ] = False,
    site_version: Annotated[str | None, typer.Option(help="The version of a site to read.")] = None,
    site_locale: Annotated[str | None, typer.Option(help="The language of a site to read.")] = None,
    site_builder: Annotated[str | None, typer.Option(help="The builder of a Sphinx project: html or dirhtml.")] = None,
    include: Annotated[
        list[str] | None,
        typer.Option(
            help="Also read blog, pages, starter, changelog, unlisted, repository or all. May be repeated.",
        ),
    ] = None,
    embedder: Annotated[
        str | None,
        typer.Option(help="local, cohere:MODEL or openai:MODEL. Default: that of the index."),
    ] = None,
    engine: Annotated[str | None, typer.Option(help="ray: parse, chunk and embed on a Ray cluster.")] = None,
    prune: Annotated[bool, typer.Option("--prune", help="Remove the pages of all other sources.")] = False,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Rebuild the index from scratch.")] = False,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Add new and changed pages to the book, and remove deleted ones.

    Example: bythebook ingest ./docs --site-url https://docs.example.org
    """
    settings = load_settings(
        data_dir=data_dir,
        site_url=site_url,
        site_style=site_style,
        site_version=site_version,
        site_locale=site_locale,
        site_builder=site_builder,
        site_include=include or None,
        embedder=embedder,
        engine=engine,
        allow_private=True if allow_private else None,
    )
    arguments = _IngestArguments(sources, dry_run=dry_run, prune=prune, rebuild=rebuild, as_json=json)
    if watch:
        _check_watch(arguments)
        run(_watch(settings, arguments))
        return
    report = run(_ingest(settings, arguments))
    if settings.data_dir.is_dir() and not (ignored := settings.data_dir / ".gitignore").exists():
        ignored.write_text("*\n", encoding="ascii")  # an index does not belong into a repository
    _print_report(report, arguments)
    if report.skipped:
        raise typer.Exit(PAGES_SKIPPED)


@dataclass(frozen=True, slots=True)
class _IngestArguments:
    """The arguments of the command."""

    sources: list[str]
    dry_run: bool
    prune: bool
    rebuild: bool
    as_json: bool


def _check_watch(arguments: _IngestArguments) -> None:
    if arguments.dry_run:
        raise InputError("--watch ingests changes and --dry-run ingests nothing: use only one of them.")
    if sites := [source for source in arguments.sources if "://" in source]:
        raise InputError(f"--watch detects changes of files, but {sites[0]!r} is a site: schedule its ingest instead.")


async def _ingest(settings: Settings, arguments: _IngestArguments) -> IngestReport:
    from bythebook.book import Book
    from bythebook.sources.factory import open_source
    from bythebook.sources.projects.project import Project

    sources = [
        source if "://" in source else open_source(settings.source_options(), source) for source in arguments.sources
    ]
    async with Book.open(settings, say=say) as book:
        work = book.plan_ingest if arguments.dry_run else book.ingest
        try:
            with progress_bar() as progress:
                report = await work(*sources, progress=progress, prune=arguments.prune, rebuild=arguments.rebuild)
            for source in sources:
                if isinstance(source, Project):
                    say(source.describe())
            return report
        except BookError as error:
            if error.stage == "embedding":
                say("The finished embeddings are saved. Run the same command again to continue.")
            raise


async def _watch(settings: Settings, arguments: _IngestArguments) -> NoReturn:
    """Ingest the sources, and again after each change, until interrupted."""
    from bythebook.book import Book
    from bythebook.ingest.watcher import SourceWatcher
    from bythebook.sources.factory import open_source

    sources = [open_source(settings.source_options(), path) for path in arguments.sources]
    async with Book.open(settings, say=say) as book:
        rebuild = arguments.rebuild

        async def read() -> None:
            nonlocal rebuild
            with progress_bar() as progress:
                report = await book.ingest(*sources, progress=progress, prune=arguments.prune, rebuild=rebuild)
            rebuild = False
            if arguments.as_json:
                echo(jsonlib.dumps(to_json(report)))
            else:
                _print_report(report, arguments)

        say(f"Watching {', '.join(map(str, arguments.sources))}. Ctrl-C to stop.")
        await SourceWatcher(sources, read, say).run()


def _print_report(report: IngestReport, arguments: _IngestArguments) -> None:
    if arguments.as_json:
        print_json(report)
    else:
        echo(summarize(report, dry_run=arguments.dry_run))
        print_omissions(report)


def summarize(report: IngestReport, *, dry_run: bool) -> str:
    """Format the report in two lines."""
    did = "Would be" if dry_run else ("Published" if report.generation else "Nothing to do:")
    name = f" {report.generation}" if report.generation else ""
    left_out = f", {len(report.left_out)} left out" if report.left_out else ""
    return (
        f"{did}{name} {report.pages} pages in {report.chunks} chunks ({report.embedded} embedded), "
        f"{report.seconds:.1f} s\n"
        f"{report.added} added, {report.changed} changed, {report.removed} removed, "
        f"{report.unchanged} unchanged, {len(report.skipped)} skipped{left_out}"
    )


def print_omissions(report: IngestReport) -> None:
    """Print the files that are not in the book: one line for each reason."""
    for verb, entries in (("skipped", report.skipped), ("left out", report.left_out)):
        by_reason: dict[str, list[str]] = {}
        for entry in entries:
            by_reason.setdefault(entry.reason, []).append(entry.path)
        for reason, paths in list(by_reason.items())[:_MAX_LINES]:
            more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
            say(f"{verb} {paths[0]}{more}: {reason}")
        if len(by_reason) > _MAX_LINES:
            say("... and more; --json lists them all")
