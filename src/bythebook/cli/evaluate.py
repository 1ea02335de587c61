"""`bythebook eval`: how well the book finds, answers and refuses."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bythebook.cli.console import FAILED, bold, echo, print_json, run, say, settings, showing_progress
from bythebook.cli.options import DataDir, Json  # noqa: TC001 - typer reads them
from bythebook.errors import InputError, NotFound

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bythebook.evals import Measured, Wanted
    from bythebook.evals.golden import Checked, Golden
    from bythebook.evals.thresholds import Held
    from bythebook.settings import Settings
    from bythebook.telemetry import Progress

app = typer.Typer(no_args_is_help=True)

_SECONDS_BETWEEN_LINES = 10.0

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="A folder with a collection.", show_default=False)]
Html = Annotated[Path | None, typer.Option(help="Also write a page with plots to this file.", show_default=False)]
Limit = Annotated[int | None, typer.Option(min=1, help="Ask only so many questions of each kind.", show_default=False)]
Seed = Annotated[int, typer.Option(help="Which questions, when there are more; and the samples of the intervals.")]


@app.command()
def golden(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Your questions, in YAML.", show_default=False)],
    with_model: Annotated[
        bool, typer.Option("--with-model", help="Ask through the model of your settings. It may answer otherwise.")
    ] = False,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Ask your own questions. Fails when one is not answered as it should be, naming page and heading."""
    checked = run(_golden(settings(data_dir=data_dir), file, with_model=with_model))
    failed = [one for one in checked if not one.passed]
    if json:
        print_json({"passed": len(checked) - len(failed), "failed": len(failed), "questions": checked})
    else:
        _show_checked(checked, failed, file)
    if failed:
        raise typer.Exit(FAILED)


async def _golden(chosen: Settings, file: Path, *, with_model: bool) -> list[Checked]:
    from bythebook.book import Book
    from bythebook.evals.golden.check import Examination
    from bythebook.evals.golden.load import read
    from bythebook.evals.runner import patient

    talks = read(file)
    async with Book.open(patient(chosen), say=say) as book, book.edition() as edition:
        asker = await book.examiner() if with_model else book.unaided()
        with _showing_progress() as progress:
            return await Examination(asker, edition).check(talks, progress=progress)


def _show_checked(checked: Sequence[Checked], failed: Sequence[Checked], file: Path) -> None:
    for one in failed:
        came = one.came
        where = " > ".join(filter(None, (came.page, came.heading)))
        quoted = f": “{came.quote}”" if came.quote else ""
        what = {"answered": "an answer from", "refused": "a refusal; nearest is", "clarify": "a question back"}
        echo(bold(f"FAILED {file}, line {one.line}: {one.question}"))
        echo(f"  expected: {one.expected}")
        echo(f"  missing:  {'; '.join(one.missing)}")
        echo(f"  came:     {what[came.outcome.value]} {where}{quoted}".rstrip())
        if one.note:
            echo(f"  note:     {one.note}")
        echo("")
    echo(f"{len(checked) - len(failed)} of {len(checked)} questions pass.")


@app.command()
def suggest(
    out: Annotated[Path | None, typer.Option(help="Write to this file.", show_default=False)] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many questions to draft.")] = 20,
    seed: Annotated[int, typer.Option(help="Which ones, when there are more.")] = 1,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Draft golden questions from the book: each is answered now from where it was taken."""
    from bythebook.evals.golden.suggest import as_fields, written

    if out is not None and out.exists():
        raise InputError(f"{str(out)!r} is there already, and may hold your questions. Choose another name.")
    drafted = run(_suggest(settings(data_dir=data_dir), limit=limit, seed=seed))
    text = written(drafted)
    if out is not None:
        out.write_text(text, encoding="utf-8")
        say(f"Drafted {len(drafted)} questions in {out}. Edit them, then run: bythebook eval golden {out}")
    if json:
        print_json({"questions": [as_fields(one) for one in drafted], "file": out})
    elif out is None:
        echo(text.rstrip())


async def _suggest(chosen: Settings, *, limit: int, seed: int) -> list[Golden]:
    from bythebook.book import Book
    from bythebook.evals.golden.suggest import suggest as drafted
    from bythebook.evals.runner import patient

    async with Book.open(patient(chosen), say=say) as book, book.edition() as edition:
        with _showing_progress() as progress:
            found = await drafted(book.unaided(), edition, limit=limit, seed=seed, progress=progress)
    if not found:
        raise NotFound("no question could be made of this book's headings and definitions. Write your own.")
    return found


@app.command()
def retrieval(
    folder: Folder,
    html: Html = None,
    limit: Limit = None,
    seed: Seed = 1,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Measure how well the right documents are found, and how well words or meaning alone would find them."""
    _report("retrieval", _wanted(folder, data_dir, limit, seed), html=html, as_json=json)


@app.command()
def followups(
    folder: Folder,
    html: Html = None,
    limit: Limit = None,
    seed: Seed = 1,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Measure how well the questions of a conversation are understood without a model."""
    _report("followups", _wanted(folder, data_dir, limit, seed), html=html, as_json=json)


@app.command()
def refusal(
    folder: Folder,
    out_of_book: Annotated[
        bool, typer.Option("--out-of-book", help="Leave out half of the documents; refuse what is asked about them.")
    ] = False,
    strangers: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Refuse another collection's questions.", show_default=False)
    ] = None,
    html: Html = None,
    limit: Limit = None,
    seed: Seed = 1,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Measure how well questions are refused that the documents do not answer."""
    from dataclasses import replace

    if out_of_book and strangers:
        raise InputError("use one of --out-of-book and --strangers: both say which questions must be refused.")
    wanted = replace(_wanted(folder, data_dir, limit, seed), out_of_book=out_of_book, strangers=strangers)
    _report("refusal", wanted, html=html, as_json=json)


@app.command()
def answers(
    folder: Folder,
    html: Html = None,
    limit: Limit = None,
    seed: Seed = 1,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Measure how often the sentences of an answer contain what people marked as the answer."""
    _report("answers", _wanted(folder, data_dir, limit, seed), html=html, as_json=json)


@app.command()
def proof(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Claims with their evidence.", show_default=False)],
    html: Html = None,
    limit: Limit = None,
    seed: Seed = 1,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Measure how well claims that their evidence supports are told from others."""
    _report("proof", _wanted(file, data_dir, limit, seed), html=html, as_json=json)


@app.command()
def gaps(
    folder: Folder,
    html: Html = None,
    limit: Limit = None,
    seed: Seed = 1,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Measure how well unanswered questions come together by topic."""
    _report("gaps", _wanted(folder, data_dir, limit, seed), html=html, as_json=json)


@app.command()
def quality(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder of collections.", show_default=False)],
    html: Html = None,
    limit: Limit = None,
    seed: Seed = 1,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Measure everything this project promises, and hold each figure against its floor and its goal."""
    from bythebook.evals.thresholds import WHERE_FROM, everything, missed

    if not folder.is_dir():
        raise InputError(f"there is no folder {str(folder)!r} with collections. {WHERE_FROM}")
    measured: list[Measured] = []
    held: list[Held] = []
    started = time.perf_counter()
    for found in everything(_wanted(folder, data_dir, limit, seed), run=_run_measure):
        measured += [found.measured] if found.measured else []
        held += found.held
        if not json:
            echo("\n".join(map(str, found.held)))
    took = round(time.perf_counter() - started)
    if json:
        print_json({"figures": held, "measured": [one.as_json() for one in measured], "seconds": took})
    _write(html, measured, title="Quality", above=_table(held))
    failed = missed(held)
    say(f"{len(held) - len(failed)} of {len(held)} figures hold their floors. It took {took} s.")
    if limit:
        say("Only a part of the questions was asked, so that the floors are not held against it.")
    elif failed:
        raise typer.Exit(FAILED)


def _wanted(path: Path, data_dir: Path | None, limit: int | None, seed: int) -> Wanted:
    from bythebook.evals import Wanted

    return Wanted(path, settings(data_dir=data_dir), lambda *_: None, limit=limit or sys.maxsize, seed=seed)


def _run_measure(name: str, wanted: Wanted) -> Measured:
    from dataclasses import replace

    from bythebook.evals.suites import measured

    with _showing_progress(name) as progress:
        return run(measured(name, replace(wanted, progress=progress)))


def _report(name: str, wanted: Wanted, *, html: Path | None, as_json: bool) -> None:
    from bythebook.evals.report import as_text

    found = _run_measure(name, wanted)
    if as_json:
        print_json(found.as_json())
    else:
        echo(as_text(found).rstrip())
    _write(html, [found], title=found.title)


def _write(html: Path | None, measured: Sequence[Measured], *, title: str, above: str = "") -> None:
    from bythebook.evals.report import as_html

    if html is not None:
        html.parent.mkdir(parents=True, exist_ok=True)
        html.write_text(as_html(measured, title=title, above=above), encoding="utf-8")
        say(f"The page with plots is {html}.")


def _table(held: Sequence[Held]) -> str:
    from bythebook.evals.report import table

    rows = [
        (one.name, "-" if one.value is None else f"{one.value:.4g}", f"{one.floor:g}", f"{one.goal:g}", one.verdict)
        for one in held
    ]
    return table(("figure", "measured", "floor", "goal", ""), rows)


@contextmanager
def _showing_progress(name: str = "") -> Iterator[Progress]:
    """A bar on a terminal. Elsewhere a line from time to time, so that a long run can be followed in a log."""
    if sys.stderr.isatty():
        with showing_progress() as progress:
            yield progress
        return
    last = time.monotonic()

    def show(stage: str, done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last >= _SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            say(f"{name} {stage} {done} of {total}".strip())

    yield show
