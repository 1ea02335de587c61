"""`bythebook ask`: one question, one proven answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bythebook.answers import AgentRequest
from bythebook.cli.doing import BaseUrl, DataDir, Filtered, Json, Model, TopK, print_json, run, say, settings
from bythebook.cli.search import show_passages
from bythebook.passages import Filters

if TYPE_CHECKING:
    from bythebook.answers import AgentResponse
    from bythebook.settings import Settings


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
    chosen = settings(data_dir=data_dir, retrieval_threshold=threshold, model=model, base_url=base_url)
    request = AgentRequest(question, top_k=top_k, filters=Filters.parse(filters or []))
    response = run(_ask(chosen, request))
    if json:
        print_json(response)
        return
    show_answer(response)
    if show_sources:
        typer.echo("")
        show_passages(response.sources)


async def _ask(chosen: Settings, request: AgentRequest) -> AgentResponse:
    from bythebook.assemble import Book

    async with Book.open(chosen, say=say) as book:
        return await book.ask(request)


def show_answer(response: AgentResponse) -> None:
    """The answer, then each citation with its page and the address that opens it at the quote."""
    typer.echo(response.answer)
    if response.citations:
        typer.echo("")
    for citation in response.citations:
        typer.echo(f"{typer.style(f'[{citation.number}] {citation.title}', bold=True)}")
        typer.echo(typer.style(f"    {citation.url}", dim=True))
