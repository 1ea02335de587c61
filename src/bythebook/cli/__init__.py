"""The command line. Answers go to standard output, everything else to standard error.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 finished with some pages skipped, 130 interrupted.
"""

from __future__ import annotations

import os
import sys

import typer

from bythebook.cli import ask, chat, config, demo, ingest, model, search, status
from bythebook.cli.doing import FAILED, WRONG, complain
from bythebook.errors import BookError, ConfigurationError, InputError

app = typer.Typer(
    name="bythebook",
    help="Answers questions only from a book's pages, and proves every sentence with a quote.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command()(ingest.ingest)
app.command()(search.search)
app.command()(ask.ask)
app.command()(chat.chat)
app.command()(status.status)
app.command()(config.config)
app.command()(demo.demo)
app.add_typer(model.app, name="model", help="The embedding model that runs on this machine.")


@app.callback(invoke_without_command=True)
def _version(
    version: bool = typer.Option(False, "--version", help="Print the version and leave.", is_eager=True),
) -> None:
    if version:
        from importlib.metadata import version as installed_version

        typer.echo(installed_version("bythebook"))
        raise typer.Exit


def main() -> None:
    """Run the command line; a failure becomes a message and an exit code."""
    try:
        app()
    except BookError as error:
        complain(error, as_object="--json" in sys.argv)
        sys.exit(WRONG if isinstance(error, ConfigurationError | InputError) else FAILED)
    except BrokenPipeError:
        # Whoever was reading has left. Python would complain once more when it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FAILED)
