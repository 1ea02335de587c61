"""`bythebook search`: the passages for a question."""

from typing import Annotated

import typer

from bythebook.cli.ask import print_passages
from bythebook.cli.console import DataDir, FilterOption, Json, TopK, load_settings, print_json, run, say
from bythebook.index import Filters
from bythebook.retrieval import RetrievalContext
from bythebook.settings import Settings


def search(
    query: Annotated[str, typer.Argument(help="The search query.", show_default=False)],
    top_k: TopK = None,
    filters: FilterOption = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Find the passages that are relevant to a question, best first."""
    settings = load_settings(data_dir=data_dir)
    found = run(_search(settings, query, top_k, Filters.parse(filters or [])))
    if json:
        print_json(found)
        return
    print_passages(found.results)
    if not found.results:
        say("Nothing was found." + (f" The filter is {found.filter_applied}." if found.filter_applied else ""))


async def _search(settings: Settings, query: str, top_k: int | None, filters: Filters) -> RetrievalContext:
    from bythebook.book import Book

    async with Book.open(settings, say=say) as book:
        return await book.search(query, top_k=top_k, filters=filters)
