"""What `bythebook ask` does, once its arguments are read.

A plain question is the one thing people type and wait for. Its arguments are read here, without typer, which takes
about as long to import and to set up as the answer takes to find.

`bythebook ask`: one question, one proven answer.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from bythebook.answers import AgentRequest
from bythebook.cli.console import bold, dim, echo, print_json, run, say, settings
from bythebook.cli.options import BaseUrl, DataDir, Filtered, Json, Model, TopK  # noqa: TC001 - typer reads them
from bythebook.embeddings.minilm.embedder import begin
from bythebook.index import Filters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from bythebook.answers import AgentResponse
    from bythebook.retrieval import RetrievalResult


_FLAGS = {"--json": "json", "--show-sources": "show_sources"}
_VALUES = {
    "--top-k": "top_k",
    "--threshold": "threshold",
    "--filter": "filters",
    "--data-dir": "data_dir",
    "--model": "model",
    "--base-url": "base_url",
}


class Asked(NamedTuple):
    """The arguments of `ask`."""

    question: str
    top_k: int | None = None
    threshold: str | None = None
    show_sources: bool = False
    filters: tuple[str, ...] = ()
    data_dir: Path | None = None
    json: bool = False
    model: str | None = None
    base_url: str | None = None


def read(arguments: Sequence[str]) -> Asked | None:
    """The arguments of a plain `ask`. None for whatever typer must see: other commands, help, and mistakes."""
    given: dict[str, Any] = {}
    if arguments[:1] != ["ask"]:
        return None
    rest = iter(arguments[1:])
    for argument in rest:
        name, _, value = argument.partition("=")
        if not argument.startswith("-") and "question" not in given:
            given["question"] = argument
        elif argument in _FLAGS:
            given[_FLAGS[argument]] = True
        elif name not in _VALUES or not _take(given, name, value or next(rest, "")):
            return None
    return Asked(**given) if "question" in given else None


def _take(given: dict[str, Any], option: str, value: str) -> bool:
    """Note the value of an option. Says whether it can be one."""
    name = _VALUES[option]
    if not value or value.startswith("-") or (name == "top_k" and not (value.isascii() and value.isdigit())):
        return False
    if name == "filters":
        given[name] = (*given.get(name, ()), value)
    else:
        given[name] = {"top_k": int, "data_dir": Path}.get(name, str)(value)
    return True


def answer(asked: Asked, *, then: Callable[[], None] = lambda: None) -> None:
    """Find the answer, print it, and `then` do this, all before the book is closed."""
    chosen = settings(
        data_dir=asked.data_dir,
        retrieval_threshold=asked.threshold,
        model=asked.model,
        base_url=asked.base_url,
    )
    request = AgentRequest(asked.question, top_k=asked.top_k, filters=Filters.parse(asked.filters))
    begun = begin(chosen.model_folder)

    async def work() -> None:
        from bythebook.book import Book

        async with Book.open(chosen, say=say, begun=begun) as book:
            book.part()
            _show(await book.ask(request), asked)
            await book.settle()
            then()

    run(work())


def _show(response: AgentResponse, asked: Asked) -> None:
    if asked.json:
        print_json(response)
        return
    show_answer(response)
    if asked.show_sources:
        echo("")
        show_passages(response.sources)


def show_answer(response: AgentResponse) -> None:
    """The answer, then each citation with its page and the address that opens it at the quote."""
    echo("\n".join(_lines(response)))


def _lines(response: AgentResponse) -> Iterator[str]:
    yield response.answer
    if response.citations:
        yield ""
    for citation in response.citations:
        yield bold(f"[{citation.number}] {citation.title}")
        yield dim(f"    {citation.url}")


def show_passages(results: Sequence[RetrievalResult]) -> None:
    """Each passage with where it stands and how near it is."""
    for result in results:
        path = " > ".join(result.heading_hierarchy)
        address = f"{result.url}#{result.anchor}" if result.anchor else result.url
        echo(f"{bold(f'[{result.position}] {path}')}  {result.score:.3f}")
        echo(dim(address))
        echo(f"{result.text}\n")


def ask(
    question: Annotated[str, typer.Argument(help="What you want to know.", show_default=False)],
    top_k: TopK = None,
    threshold: Annotated[
        str | None, typer.Option(help="'auto', or the least cosine from 0 to 1 to answer from.", show_default=False)
    ] = None,
    show_sources: Annotated[
        bool, typer.Option("--show-sources", help="Also print the passages that were found.")
    ] = False,
    filters: Filtered = None,
    model: Model = None,
    base_url: BaseUrl = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Answer a question from the book, or say that the book does not cover it."""
    asked = Asked(question, top_k, threshold, show_sources, tuple(filters or ()), data_dir, json, model, base_url)
    answer(asked)
