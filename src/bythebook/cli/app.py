"""The typer application with all commands."""

import typer

from bythebook.cli import (
    ask,
    chat,
    config,
    demo,
    evaluate,
    gaps,
    index,
    ingest,
    keys,
    mcp,
    model,
    search,
    serve,
    status,
)

app = typer.Typer(
    name="bythebook",
    help="Answers questions from the pages of a book and proves every sentence with a quote.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_COMMANDS = (ingest.ingest, search.search, ask.ask, chat.chat, serve.serve, mcp.mcp, gaps.gaps, status.status)
for _command in (*_COMMANDS, config.config, demo.demo):
    app.command()(_command)
app.add_typer(evaluate.app, name="eval", help="Golden questions, and evaluation on datasets.")
app.add_typer(keys.app, name="keys", help="API keys and site tokens.")
app.add_typer(index.app, name="index", help="Generations of the book on this disk and on a Qdrant server.")
app.add_typer(model.app, name="model", help="The local models.")


@app.callback(invoke_without_command=True)
def _version(
    version: bool = typer.Option(False, "--version", help="Print the version and exit.", is_eager=True),
) -> None:
    if version:
        from importlib.metadata import version as installed_version

        typer.echo(installed_version("bythebook"))
        raise typer.Exit
