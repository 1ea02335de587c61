"""`bythebook search`: the passages a question finds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bythebook.cli.ask import show_passages
from bythebook.cli.console import print_json, run, say, settings
from bythebook.cli.options import DataDir, Filtered, Json, TopK  # noqa: TC001 - typer reads them
from bythebook.index import Filters

if TYPE_CHECKING:
    from bythebook.retrieval import RetrievalContext
    from bythebook.settings import Settings


def search(
    query: Annotated[str, typer.Argument(help="What to look for.", show_default=False)],
    top_k: TopK = None,
    filters: Filtered = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Find the passages that bear on a question, best first."""
    chosen = settings(data_dir=data_dir)
    found = run(_search(chosen, query, top_k, Filters.parse(filters or [])))
    if json:
        print_json(found)
        return
    show_passages(found.results)
    if not found.results:
        say("Nothing was found." + (f" The filter is {found.filter_applied}." if found.filter_applied else ""))


async def _search(chosen: Settings, query: str, top_k: int | None, filters: Filters) -> RetrievalContext:
    from bythebook.book import Book

    async with Book.open(chosen, say=say) as book:
        return await book.search(query, top_k=top_k, filters=filters)
