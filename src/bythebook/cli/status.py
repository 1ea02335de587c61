"""`bythebook status`: the contents of the book and the quality of its refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from bythebook.cli.console import DataDir, Json, load_settings, print_field, print_json, run
from bythebook.serialization import to_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bythebook.admin import BookStatus
    from bythebook.index import Calibration

_MAX_LINES = 20


def status(data_dir: DataDir = None, json: Json = False) -> None:
    """Show the contents of the book, and how well it detects questions that it does not cover."""
    from bythebook.admin import read_status

    settings = load_settings(data_dir=data_dir)
    shown = run(read_status(settings))
    if json:
        print_json({**to_json(shown), "retrieval_threshold": settings.retrieval_threshold})
        return
    _print_status(shown)
    for name, line in _refusal_lines(shown.calibration, settings.retrieval_threshold):
        print_field(name, line)


def _print_status(shown: BookStatus) -> None:
    print_field("Book", f"{shown.pages} pages in {shown.chunks} chunks")
    print_field("Generation", f"{shown.generation}, published {shown.published_at}")
    kept = shown.location
    if kept.url:
        print_field("Kept", f"{kept.collection} on {kept.url}{' (another program fills it)' if kept.attached else ''}")
    print_field("Embedder", f"{shown.model} ({shown.dimension} dimensions)")
    for number, model in enumerate(shown.models):
        remedy = f"not installed: {model.fallback}; run 'bythebook model download {model.title}'"
        state = model.purpose if model.installed else remedy
        print_field("" if number else "Models", f"{model.title} ({model.license}, {model.author}): {state}")
    print_field("On disk", f"{shown.size_bytes / 1e6:.1f} MB")
    for source in shown.sources:
        print_field(
            "Source",
            f"{source.name}: {source.pages} pages, coverage {source.coverage:.0%} of the {source.listed} listed",
        )
        for skipped in source.skipped[:_MAX_LINES]:
            print_field("", f"skipped {skipped.path}: {skipped.reason}")
        if len(source.skipped) > _MAX_LINES:
            print_field("", f"... and {len(source.skipped) - _MAX_LINES} more; --json lists them all")
        if source.left_out:
            print_field("", f"{len(source.left_out)} left out on purpose; 'bythebook ingest --dry-run' names them")


def _refusal_lines(calibration: Calibration, threshold: float | Literal["auto"]) -> Iterator[tuple[str, str]]:
    """The quality of the refusal rule, and how it was measured."""
    if calibration.questions:
        precision = "-" if calibration.precision is None else f"{calibration.precision:.0%}"
        own = f"keeps {calibration.kept:.0%} of its own questions (cutoff {calibration.cutoff})"
        yield "Refusal", f"precision {precision}, recall {calibration.recall:.0%}; {own}"
    else:
        yield "Refusal", f"not measured (cutoff {calibration.cutoff})"
    yield "", calibration.explanation
    from bythebook.retrieval.calibration import is_current

    if not is_current(calibration):
        yield "", "made for an earlier version of the rule: run 'bythebook ingest' again"
    if threshold != "auto":
        yield "", f"not used: retrieval_threshold is set to {threshold}, a minimum cosine"
