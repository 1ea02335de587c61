"""MCP over standard input and output, for a program that starts the book itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bythebook.assemble import Book


async def serve(book: Book) -> None:
    """Speak MCP until the other side hangs up. Only the protocol goes to standard output."""
    from mcp.server.stdio import stdio_server

    from bythebook.mcp.server import server_of

    server = server_of(book)
    async with stdio_server() as (heard, said):
        await server.run(heard, said, server.create_initialization_options())
