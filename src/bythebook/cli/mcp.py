"""`bythebook mcp`: the book as an MCP server for a program that starts it."""

from bythebook.cli.console import BaseUrl, DataDir, Json, Model, load_settings, run_with_book


def mcp(
    model: Model = None,
    base_url: BaseUrl = None,
    data_dir: DataDir = None,
    json: Json = False,  # noqa: ARG001 - standard output is JSON in any case
) -> None:
    """Serve the book over the Model Context Protocol on standard input and output."""
    from bythebook.mcp.server import serve

    run_with_book(load_settings(data_dir=data_dir, model=model, base_url=base_url), serve)
