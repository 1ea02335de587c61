"""`bythebook status`: what the book is made of, and how far it can be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bythebook.cli.doing import bold, echo, print_json, run, settings
from bythebook.cli.options import DataDir, Json  # noqa: TC001 - typer reads them

if TYPE_CHECKING:
    from bythebook.status import Status


def status(data_dir: DataDir = None, json: Json = False) -> None:
    """Show what the book is made of, and how well it tells what it covers."""
    from bythebook.indexes import status_of

    shown = run(status_of(settings(data_dir=data_dir)))
    if json:
        print_json(shown)
    else:
        _show(shown)


def _show(shown: Status) -> None:
    _line("Book", f"{shown.pages} pages in {shown.chunks} chunks")
    _line("Generation", f"{shown.generation}, published {shown.published_at}")
    kept = shown.kept
    if kept.url:
        _line("Kept", f"{kept.collection} on {kept.url}{' (another program fills it)' if kept.attached else ''}")
    _line("Embedder", f"{shown.model} ({shown.dimension} dimensions)")
    _line("On disk", f"{shown.size_bytes / 1e6:.1f} MB")
    for source in shown.sources:
        _line("Source", f"{source.name}: {source.pages} pages, coverage {source.coverage:.0%}")
        for skipped in source.skipped:
            _line("", f"skipped {skipped.path}: {skipped.reason}")
    tried = shown.calibration
    _line(
        "Refusal",
        f"answers {tried.kept:.0%} of {tried.questions} questions made from its own sentences, "
        f"refuses {tried.refused:.0%} of as many foreign ones (cutoff {tried.cutoff})",
    )


def _line(name: str, value: str) -> None:
    echo(f"{bold(f'{name:<11}')} {value}")
