"""Options shared by several commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DataDir = Annotated[Path | None, typer.Option(help="The folder of the book. Default: .bythebook", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
TopK = Annotated[int | None, typer.Option(help="The number of passages, 1 to 10.", show_default=False)]
Model = Annotated[str | None, typer.Option(help="The model.", show_default=False)]
BaseUrl = Annotated[str | None, typer.Option(help="An OpenAI-compatible URL of the model.", show_default=False)]
FilterOption = Annotated[
    list[str] | None,
    typer.Option(
        "--filter", help="Search only module=NAME, chapter=ID or url=PREFIX. May be repeated.", show_default=False
    ),
]
