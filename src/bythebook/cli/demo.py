"""`bythebook demo`: the manual as a book, answering questions about itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bythebook.cli.answering import show_answer
from bythebook.cli.doing import bold, echo, print_json, run, say, settings, showing_progress
from bythebook.cli.ingest import summary
from bythebook.cli.options import DataDir, Json  # noqa: TC001 - typer reads them
from bythebook.errors import NotFound

if TYPE_CHECKING:
    from bythebook.answers import AgentResponse
    from bythebook.settings import Settings

NOT_THE_MANUAL = ("transcripts",)
"""Conversations about other books are kept beside the manual; they would answer what they were asked."""
QUESTION = "How does By the Book prove an answer?"


def demo(
    question: Annotated[str, typer.Argument(help="A question about By the Book.")] = QUESTION,
    data_dir: DataDir = None,
    json: Json = False,
) -> None:
    """Read the manual into a book of its own and ask it a question."""
    chosen = settings(data_dir=data_dir)
    # Never on the server the settings name: another book is kept there.
    response = run(_demo(settings(data_dir=chosen.data_dir / "demo", qdrant_url=""), question))
    if json:
        print_json(response)
        return
    echo(bold(f"> {question}") + "\n")
    show_answer(response)


async def _demo(chosen: Settings, question: str) -> AgentResponse:
    from bythebook.assemble import Book
    from bythebook.pages.folder import Folder

    async with Book.open(chosen, say=say) as book:
        with showing_progress() as progress:
            report = await book.ingest(Folder(manual(), exclude=NOT_THE_MANUAL), progress=progress)
        say(summary(report, dry_run=False) + "\n")
        book.part()
        return await book.ask(question)


def manual() -> Path:
    """The folder of the manual: beside the package when installed, at the top of a clone otherwise."""
    here = Path(__file__).resolve().parent.parent
    for folder in (here / "manual", here.parent.parent / "docs"):
        if (folder / "index.md").exists():
            return folder
    raise NotFound("the manual is missing from this installation. Install bythebook again.")
