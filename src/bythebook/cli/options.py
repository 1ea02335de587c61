"""The options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DataDir = Annotated[
    Path | None, typer.Option(help="The folder that holds the book. Default: .bythebook", show_default=False)
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
TopK = Annotated[int | None, typer.Option(help="How many passages to find, 1 to 10.", show_default=False)]
Model = Annotated[str | None, typer.Option(help="The model to ask.", show_default=False)]
BaseUrl = Annotated[str | None, typer.Option(help="An OpenAI-compatible address to ask it at.", show_default=False)]
Filtered = Annotated[
    list[str] | None,
    typer.Option(
        "--filter", help="Look only in module=NAME, chapter=ID or url=PREFIX. May be repeated.", show_default=False
    ),
]
