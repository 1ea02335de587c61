"""`bythebook status`: what the book is made of, and how far it can be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from bythebook.cli.console import bold, echo, print_json, run, settings
from bythebook.cli.options import DataDir, Json  # noqa: TC001 - typer reads them
from bythebook.serialization import as_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bythebook.admin import Status
    from bythebook.index import Calibration

_MOST_SHOWN = 20


def status(data_dir: DataDir = None, json: Json = False) -> None:
    """Show what the book is made of, and how well it tells what it covers."""
    from bythebook.admin import status_of

    chosen = settings(data_dir=data_dir)
    shown = run(status_of(chosen))
    if json:
        print_json({**as_json(shown), "retrieval_threshold": chosen.retrieval_threshold})
        return
    _show(shown)
    for name, line in _refusal(shown.calibration, chosen.retrieval_threshold):
        _line(name, line)


def _show(shown: Status) -> None:
    _line("Book", f"{shown.pages} pages in {shown.chunks} chunks")
    _line("Generation", f"{shown.generation}, published {shown.published_at}")
    kept = shown.kept
    if kept.url:
        _line("Kept", f"{kept.collection} on {kept.url}{' (another program fills it)' if kept.attached else ''}")
    _line("Embedder", f"{shown.model} ({shown.dimension} dimensions)")
    _line("On disk", f"{shown.size_bytes / 1e6:.1f} MB")
    for source in shown.sources:
        _line(
            "Source",
            f"{source.name}: {source.pages} pages, coverage {source.coverage:.0%} of the {source.listed} listed",
        )
        for skipped in source.skipped[:_MOST_SHOWN]:
            _line("", f"skipped {skipped.path}: {skipped.reason}")
        if len(source.skipped) > _MOST_SHOWN:
            _line("", f"... and {len(source.skipped) - _MOST_SHOWN} more; --json lists them all")
        if source.left_out:
            _line("", f"{len(source.left_out)} left out on purpose; 'bythebook ingest --dry-run' names them")


def _refusal(tried: Calibration, threshold: float | Literal["auto"]) -> Iterator[tuple[str, str]]:
    """How well the book tells what it covers, and how that was found out."""
    if tried.questions:
        precision = "-" if tried.precision is None else f"{tried.precision:.0%}"
        yield (
            "Refusal",
            (
                f"precision {precision}, recall {tried.recall:.0%}; keeps {tried.kept:.0%} of its own questions "
                f"(line at {tried.cutoff})"
            ),
        )
    else:
        yield "Refusal", f"not tried (line at {tried.cutoff})"
    yield "", tried.how
    from bythebook.retrieval.calibration import is_current

    if not is_current(tried):
        yield "", "drawn for an earlier version of the rule: run 'bythebook ingest' again"
    if threshold != "auto":
        yield "", f"not in force: retrieval_threshold is set to {threshold}, a least cosine"


def _line(name: str, value: str) -> None:
    echo(f"{bold(f'{name:<11}')} {value}")
