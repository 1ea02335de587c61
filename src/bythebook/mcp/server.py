"""The two tools: what they take, what they give, and how they are described to a model.

The pages of the book as resources: a list to page through, and the text of each.

The MCP server of a book, the same over every transport.

MCP over standard input and output, for a program that starts the book itself.
"""

from __future__ import annotations

from contextlib import contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote, unquote

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
    Resource,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
    Tool,
    ToolAnnotations,
)
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from bythebook.answers import LONGEST_QUERY, AgentRequest
from bythebook.errors import BookError, InputError, NotFound
from bythebook.index import Filters
from bythebook.serialization import as_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mcp.server.context import ServerRequestContext
    from mcp.types import CallToolRequestParams, PaginatedRequestParams, ReadResourceRequestParams

    from bythebook.book import Book

    Context = ServerRequestContext[Any]
    Reader = Callable[[Context], str]
    """Whose question this is."""


LONGEST_FILTER = 1000

_Query = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST_QUERY)]
_Filter = Annotated[str, StringConstraints(max_length=LONGEST_FILTER)]


class Arguments(BaseModel):
    """What both tools take."""

    model_config = ConfigDict(extra="forbid", strict=True)

    query: _Query = Field(description="A question that can be understood by itself, or what to look for.")
    top_k: int = Field(default=5, ge=1, le=10, description="How many passages to find.")
    module: _Filter = Field(default="", description="Look only in this module of the book.")
    chapter: _Filter = Field(default="", description="Look only in the chapter with this id.")
    url_prefix: _Filter = Field(default="", description="Look only in pages whose address begins like this.")

    def request(self) -> AgentRequest:
        return AgentRequest(self.query, top_k=self.top_k, filters=Filters(self.module, self.chapter, self.url_prefix))


class Passage(BaseModel):
    """A passage of the book, as `search_book` gives it."""

    position: int
    title: str
    section: str
    url: str
    text: str
    score: float
    page: str = Field(description="The resource that holds the whole page.")


class Passages(BaseModel):
    """The result of `search_book`."""

    query: str
    passages: list[Passage]


class Cited(BaseModel):
    """The very words a sentence rests on."""

    number: int
    title: str
    url: str = Field(description="Opens the page at the quote.")
    quote: str = Field(description="Verbatim from the page.")


class Answer(BaseModel):
    """The result of `ask_book`."""

    answer: str
    outcome: str = Field(description="answered; refused when the book does not cover it; clarify when it was unclear.")
    grounded: bool
    citations: list[Cited]
    suggestions: list[str] = Field(description="The nearest sections, when the question was refused.")
    model: str
    id: str


_READ_ONLY = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)

TOOLS = (
    Tool(
        name="search_book",
        title="Search the book",
        description="Find the passages of the book that bear most on a query, best first. It never refuses.",
        input_schema=Arguments.model_json_schema(),
        output_schema=Passages.model_json_schema(),
        annotations=_READ_ONLY,
    ),
    Tool(
        name="ask_book",
        title="Ask the book",
        description=(
            "Answer a question only from the book's pages. Every sentence is proven by a verbatim quote with a link to "
            "it. When the book does not cover the question the outcome is 'refused': say so, and do not answer "
            "yourself. Each question stands alone: name what it is about."
        ),
        input_schema=Arguments.model_json_schema(),
        output_schema=Answer.model_json_schema(),
        annotations=_READ_ONLY,
    ),
)


def read(arguments: Mapping[str, Any] | None) -> AgentRequest:
    """The arguments of a call, checked. Raises InputError that says what to change, without repeating what was sent."""
    try:
        return Arguments.model_validate(arguments or {}).request()
    except ValidationError as error:
        flaws = error.errors(include_url=False, include_input=False, include_context=False)
        told = "; ".join(f"{'.'.join(map(str, flaw['loc']))[:40]}: {flaw['msg']}" for flaw in flaws[:5])
        raise InputError(f"these arguments cannot be used: {told}.") from None


async def search_book(book: Book, request: AgentRequest) -> CallToolResult:

    found = await book.search(request.query, top_k=request.top_k, filters=request.filters)
    passages = [
        Passage(
            position=result.position,
            title=result.title,
            section=" > ".join(result.heading_hierarchy),
            url=f"{result.url}#{result.anchor}" if result.anchor else result.url,
            text=result.text,
            score=round(result.score, 3),
            page=uri_of(result.url),
        )
        for result in found.results
    ]
    return _result(found.format_for_prompt(), Passages(query=found.query, passages=passages))


async def ask_book(book: Book, request: AgentRequest, *, user_id: str) -> CallToolResult:
    response = await book.ask(request, user_id=user_id)
    answer = Answer.model_validate(as_json(response))
    return _result(response.format_with_sources(), answer)


def _result(text: str, structured: BaseModel) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=text)], structured_content=structured.model_dump())


PAGES_AT_ONCE = 100
# Not the page's own address: a client may take that as leave to fetch it by itself.
_SCHEME = "book://page/"
_PLAIN = "text/plain"

TEMPLATE = ResourceTemplate(
    name="page",
    title="A page of the book",
    uri_template=_SCHEME + "{url}",
    description="The text of the page with this address, as a reader sees it. The address is percent-encoded.",
    mime_type=_PLAIN,
)


def uri_of(url: str) -> str:
    """The resource of the page at this address."""
    return _SCHEME + quote(url, safe="")


async def list_pages(book: Book, *, after: str) -> ListResourcesResult:
    """The pages whose address comes after this one, as many as are listed at once."""
    async with book.edition() as edition:
        found = edition.catalogue.titles(after=after, limit=PAGES_AT_ONCE + 1)
    listed = [
        Resource(name=url, title=title, uri=uri_of(url), mime_type=_PLAIN) for url, title in found[:PAGES_AT_ONCE]
    ]
    return ListResourcesResult(resources=listed, next_cursor=found[-2][0] if len(found) > PAGES_AT_ONCE else None)


async def read_page(book: Book, uri: str) -> ReadResourceResult:
    """The text of one page."""
    url = unquote(uri.removeprefix(_SCHEME)) if uri.startswith(_SCHEME) else ""
    async with book.edition() as edition:
        page = edition.catalogue.page(url) if "\0" not in url else None
    if page is None:
        raise NotFound("the book has no such page. List the resources to see its pages.")
    return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=_PLAIN, text=page.text)])


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
        return ListToolsResult(tools=list(TOOLS))

    async def call_tool(context: Context, params: CallToolRequestParams) -> CallToolResult:
        if params.name not in {tool.name for tool in TOOLS}:
            raise MCPError(INVALID_PARAMS, "there is no such tool. Use search_book or ask_book.")
        try:
            request = read(params.arguments)
            if params.name == "search_book":
                return await search_book(book, request)
            return await ask_book(book, request, user_id=reader(context))
        except BookError as error:
            return CallToolResult(content=[TextContent(text=_told(error))], is_error=True)

    async def list_resources(_: Context, params: PaginatedRequestParams | None) -> ListResourcesResult:
        after = (params.cursor if params else None) or ""
        if len(after) > LONGEST_ADDRESS:
            raise MCPError(INVALID_PARAMS, "this cursor was not given out by this server.")
        with _as_mcp_errors():
            return await list_pages(book, after=after)

    async def list_templates(_: Context, _params: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult(resource_templates=[TEMPLATE])

    async def read_resource(_: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        with _as_mcp_errors():
            return await read_page(book, str(params.uri)[:LONGEST_ADDRESS])

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


async def serve(book: Book) -> None:
    """Speak MCP until the other side hangs up. Only the protocol goes to standard output."""
    from mcp.server.stdio import stdio_server

    server = server_of(book)
    async with stdio_server() as (heard, said):
        await server.run(heard, said, server.create_initialization_options())
