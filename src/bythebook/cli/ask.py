"""`bythebook ask`: one question, one proven answer."""

from __future__ import annotations

from typing import Annotated

import typer

from bythebook.cli.answering import Asked, answer
from bythebook.cli.options import BaseUrl, DataDir, Filtered, Json, Model, TopK  # noqa: TC001 - typer reads them


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
