"""`bythebook eval`: golden questions, and suites on public datasets."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from bythebook.cli.console import FAILED, DataDir, Json, bold, echo, load_settings, print_json, progress_bar, run, say
from bythebook.errors import InputError, NotFound
from bythebook.evals import EvalRequest, EvalResult
from bythebook.evals.golden import GoldenQuestion, GoldenResult
from bythebook.evals.suites import SUITES, run_suite
from bythebook.settings import Settings
from bythebook.telemetry import Progress

app = typer.Typer(no_args_is_help=True)

_SECONDS_BETWEEN_LINES = 10.0

Dataset = Annotated[Path, typer.Argument(metavar="DATASET", help="The folder of a dataset, or a file of claims.")]
Html = Annotated[Path | None, typer.Option(help="Also write an HTML page with plots to this file.")]
Limit = Annotated[int | None, typer.Option(min=1, help="The maximum number of questions of each kind.")]
Seed = Annotated[int, typer.Option(help="The seed of the question sample and of the confidence intervals.")]


@app.command()
def golden(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Your questions, in YAML.")],
    with_model: Annotated[
        bool, typer.Option("--with-model", help="Ask the model of your settings. Its answers may vary.")
    ] = False,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Ask your own questions. Fails if an answer is not as expected, and names its page and heading."""
    results = run(_check_questions(load_settings(data_dir=data_dir), file, with_model=with_model))
    failed = [result for result in results if not result.passed]
    if json:
        print_json({"passed": len(results) - len(failed), "failed": len(failed), "questions": results})
    else:
        _print_question_results(results, failed, file)
    if failed:
        raise typer.Exit(FAILED)


async def _check_questions(settings: Settings, file: Path, *, with_model: bool) -> list[GoldenResult]:
    from bythebook.book import Book
    from bythebook.evals.golden.check import GoldenChecker
    from bythebook.evals.golden.load import load_questions
    from bythebook.evals.runner import without_deadlines

    questions = load_questions(file)
    async with Book.open(without_deadlines(settings), say=say) as book, book.snapshot() as snapshot:
        pipeline = book.evaluation_pipeline() if with_model else book.extractive_pipeline()
        with _log_progress() as progress:
            return await GoldenChecker(pipeline, snapshot).check(questions, progress=progress)


def _print_question_results(results: Sequence[GoldenResult], failed: Sequence[GoldenResult], file: Path) -> None:
    outcomes = {"answered": "an answer from", "refused": "a refusal; nearest is", "clarify": "a question back"}
    for result in failed:
        actual = result.actual
        source = " > ".join(filter(None, (actual.page, actual.heading)))
        quote = f": “{actual.quote}”" if actual.quote else ""
        echo(bold(f"FAILED {file}, line {result.line}: {result.question}"))
        echo(f"  expected: {result.expected}")
        echo(f"  missing:  {'; '.join(result.missing)}")
        echo(f"  actual:   {outcomes[actual.outcome.value]} {source}{quote}".rstrip())
        if result.note:
            echo(f"  note:     {result.note}")
        echo("")
    echo(f"{len(results) - len(failed)} of {len(results)} questions pass.")


@app.command()
def suggest(
    out: Annotated[Path | None, typer.Option(help="Write to this file.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="The number of questions to draft.")] = 20,
    seed: Annotated[int, typer.Option(help="The seed of the selection.")] = 1,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Draft golden questions from the book. Each is currently answered from its origin."""
    from bythebook.evals.golden.suggest import to_fields, to_yaml

    if out is not None and out.exists():
        raise InputError(f"{str(out)!r} already exists and may contain your questions. Choose another name.")
    questions = run(_suggest(load_settings(data_dir=data_dir), limit=limit, seed=seed))
    text = to_yaml(questions)
    if out is not None:
        out.write_text(text, encoding="utf-8")
        say(f"Drafted {len(questions)} questions in {out}. Edit them, then run: bythebook eval golden {out}")
    if json:
        print_json({"questions": [to_fields(question) for question in questions], "file": out})
    elif out is None:
        echo(text.rstrip())


async def _suggest(settings: Settings, *, limit: int, seed: int) -> list[GoldenQuestion]:
    from bythebook.book import Book
    from bythebook.evals.golden.suggest import suggest_questions
    from bythebook.evals.runner import without_deadlines

    async with Book.open(without_deadlines(settings), say=say) as book, book.snapshot() as snapshot:
        with _log_progress() as progress:
            pipeline = book.extractive_pipeline()
            questions = await suggest_questions(pipeline, snapshot, limit=limit, seed=seed, progress=progress)
    if not questions:
        raise NotFound("no question can be drafted from the headings and definitions of this book. Write your own.")
    return questions


def _add_suite(name: str) -> None:
    """Add the command of a suite."""

    @app.command(name, help=SUITES[name])
    def command(
        dataset: Dataset,
        html: Html = None,
        limit: Limit = None,
        seed: Seed = 1,
        data_dir: DataDir = None,
        json: Json = False,
    ) -> None:
        _run_and_print(name, _make_request(dataset, data_dir, limit, seed), html=html, as_json=json)


for _name in SUITES:
    if _name not in ("refusal", "proof"):  # They have additional options.
        _add_suite(_name)


@app.command(help=SUITES["proof"])
def proof(
    dataset: Dataset,
    swaps: Annotated[
        bool, typer.Option("--swaps", help="DATASET is a book. Make true and false claims from its sentences.")
    ] = False,
    html: Html = None,
    limit: Limit = None,
    seed: Seed = 1,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    request = replace(_make_request(dataset, data_dir, limit, seed), swaps=swaps)
    _run_and_print("proof", request, html=html, as_json=json)


@app.command(help=SUITES["refusal"])
def refusal(
    dataset: Dataset,
    out_of_book: Annotated[
        bool, typer.Option("--out-of-book", help="Leave out half of the documents; refuse questions about them.")
    ] = False,
    foreign: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Refuse the questions of this other dataset.")
    ] = None,
    html: Html = None,
    limit: Limit = None,
    seed: Seed = 1,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    if out_of_book and foreign:
        raise InputError("use one of --out-of-book and --foreign: both select the questions that must be refused.")
    request = replace(_make_request(dataset, data_dir, limit, seed), out_of_book=out_of_book, foreign=foreign)
    _run_and_print("refusal", request, html=html, as_json=json)


def _make_request(path: Path, data_dir: Path | None, limit: int | None, seed: int) -> EvalRequest:
    return EvalRequest(path, load_settings(data_dir=data_dir), lambda *_: None, limit=limit or sys.maxsize, seed=seed)


def _run_suite(name: str, request: EvalRequest) -> EvalResult:
    with _log_progress(name) as progress:
        return run(run_suite(name, replace(request, progress=progress)))


def _run_and_print(name: str, request: EvalRequest, *, html: Path | None, as_json: bool) -> None:
    from bythebook.evals.report import to_html, to_text

    result = _run_suite(name, request)
    if as_json:
        print_json(result.to_dict())
    else:
        echo(to_text(result).rstrip())
    if html is not None:
        html.parent.mkdir(parents=True, exist_ok=True)
        html.write_text(to_html([result], title=result.title), encoding="utf-8")
        say(f"The page with plots is {html}.")


@contextmanager
def _log_progress(name: str = "") -> Iterator[Progress]:
    """A progress bar on a terminal, else a line every ten seconds, for log files."""
    if sys.stderr.isatty():
        with progress_bar() as progress:
            yield progress
        return
    last = time.monotonic()

    def show(stage: str, done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last >= _SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            say(f"{name} {stage} {done} of {total}".strip())

    yield show
