"""The MCP server of a book, the same over every transport."""

from __future__ import annotations

from contextlib import contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    ReadResourceResult,
    TextContent,
)

from bythebook.errors import BookError, InputError, NotFound
from bythebook.mcp import pages, tools

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcp.server.context import ServerRequestContext
    from mcp.types import CallToolRequestParams, PaginatedRequestParams, ReadResourceRequestParams

    from bythebook.assemble import Book

    Context = ServerRequestContext[Any]
    Reader = Callable[[Context], str]
    """Whose question this is."""

LONGEST_ADDRESS = 10_000
INSTRUCTIONS = (
    "This server is one book. ask_book answers only from its pages and proves each sentence with a quote; cite the "
    "links it gives. When it refuses, the book does not say: tell the reader so. search_book gives the passages "
    "themselves, and the resources are whole pages."
)


def nobody(_context: Context) -> str:
    """The reader of a program on this machine: the same as on the command line."""
    return ""


def _told(error: BookError) -> str:
    """What the program is told: what to change if it can change something, else what a reader would be told."""
    return str(error) if isinstance(error, InputError | NotFound) else error.said_to_reader


@contextmanager
def _as_mcp_errors() -> Iterator[None]:
    try:
        yield
    except BookError as error:
        code = INVALID_PARAMS if isinstance(error, InputError | NotFound) else INTERNAL_ERROR
        raise MCPError(code, _told(error)) from error


def server_of(book: Book, *, reader: Reader = nobody) -> Server[Any]:
    """The server of an open book. It only reads; what it is asked counts for the gaps like any other question."""

    async def list_tools(_: Context, _params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=list(tools.TOOLS))

    async def call_tool(context: Context, params: CallToolRequestParams) -> CallToolResult:
        if params.name not in {tool.name for tool in tools.TOOLS}:
            raise MCPError(INVALID_PARAMS, "there is no such tool. Use search_book or ask_book.")
        try:
            request = tools.read(params.arguments)
            if params.name == "search_book":
                return await tools.search_book(book, request)
            return await tools.ask_book(book, request, user_id=reader(context))
        except BookError as error:
            return CallToolResult(content=[TextContent(text=_told(error))], is_error=True)

    async def list_resources(_: Context, params: PaginatedRequestParams | None) -> ListResourcesResult:
        after = (params.cursor if params else None) or ""
        if len(after) > LONGEST_ADDRESS:
            raise MCPError(INVALID_PARAMS, "this cursor was not given out by this server.")
        with _as_mcp_errors():
            return await pages.list_pages(book, after=after)

    async def list_templates(_: Context, _params: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult(resource_templates=[pages.TEMPLATE])

    async def read_resource(_: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        with _as_mcp_errors():
            return await pages.read_page(book, str(params.uri)[:LONGEST_ADDRESS])

    return Server(
        "bythebook",
        version=version("bythebook"),
        title="By the Book",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
    )
