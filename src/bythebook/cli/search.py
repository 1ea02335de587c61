"""`bythebook search`: the passages for a question."""

from typing import Annotated

import typer

from bythebook.cli.ask import print_passages
from bythebook.cli.console import DataDir, FilterOption, Json, load_settings, print_json, run_with_book, say
from bythebook.index import Filters


def search(
    query: Annotated[str, typer.Argument(help="The search query.")],
    top_k: Annotated[int | None, typer.Option(help="The number of passages, 1 to 20.", show_default=False)] = None,
    threshold: Annotated[float, typer.Option(help="The minimum cosine of a passage.")] = 0.0,
    filters: FilterOption = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Find the passages that are relevant to a question, best first."""
    settings = load_settings(data_dir=data_dir)
    parsed = Filters.parse(filters or [])
    found = run_with_book(settings, lambda book: book.search(query, top_k=top_k, threshold=threshold, filters=parsed))
    if json:
        print_json(found)
        return
    print_passages(found.results)
    if not found.results:
        say("Nothing was found." + (f" The filter is {found.filter_applied}." if found.filter_applied else ""))
