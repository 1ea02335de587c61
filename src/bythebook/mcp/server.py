"""The MCP server of a book, the same for every transport: two tools, the pages as resources, and stdio."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from typing import Annotated, Any
from urllib.parse import quote, unquote

from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from bythebook.answers import LONGEST_QUERY, AgentRequest
from bythebook.book import Book
from bythebook.errors import BookError, InputError, NotFound
from bythebook.index import Filters
from bythebook.serialization import to_json

Context = ServerRequestContext[Any]
GetUserId = Callable[[Context], str]


MAX_FILTER_LENGTH = 1000

_Query = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST_QUERY)]
_Filter = Annotated[str, StringConstraints(max_length=MAX_FILTER_LENGTH)]


class ToolArguments(BaseModel):
    """The arguments of both tools."""

    model_config = ConfigDict(extra="forbid", strict=True)

    query: _Query = Field(description="A stand-alone question, or the subject to search for.")
    top_k: int = Field(default=5, ge=1, le=10, description="How many passages to find.")
    module: _Filter = Field(default="", description="Search only in this module of the book.")
    chapter: _Filter = Field(default="", description="Search only in the chapter with this id.")
    url_prefix: _Filter = Field(default="", description="Search only in pages whose URL has this prefix.")

    def request(self) -> AgentRequest:
        filters = Filters(self.module, self.chapter, self.url_prefix)
        return AgentRequest(self.query, top_k=self.top_k, filters=filters, store=False)


class PassageResult(BaseModel):
    """A passage in the result of `search_book`."""

    position: int
    title: str
    section: str
    url: str
    text: str
    score: float
    page: str = Field(description="The URI of the resource with the whole page.")


class SearchResult(BaseModel):
    """The result of `search_book`."""

    query: str
    passages: list[PassageResult]


class AnswerCitation(BaseModel):
    """The quote that supports a sentence."""

    number: int
    title: str
    url: str = Field(description="Opens the page at the quote.")
    quote: str = Field(description="Verbatim from the page.")


class SuggestedSection(BaseModel):
    """A section of the book."""

    title: str = Field(description="The heading path.")
    url: str


class AnswerResult(BaseModel):
    """The result of `ask_book`."""

    answer: str
    outcome: str = Field(description="answered; refused when the book does not cover it; clarify when it was unclear.")
    grounded: bool
    citations: list[AnswerCitation]
    suggestions: list[SuggestedSection] = Field(
        description="Sections to read: the nearest ones to a refused question, or further ones."
    )
    questions: list[str] = Field(description="After small talk, questions to ask.")
    model: str
    id: str


_READ_ONLY = types.ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)

TOOLS = (
    types.Tool(
        name="search_book",
        title="Search the book",
        description="Find the passages of the book that are most relevant to a query, best first. It never refuses.",
        input_schema=ToolArguments.model_json_schema(),
        output_schema=SearchResult.model_json_schema(),
        annotations=_READ_ONLY,
    ),
    types.Tool(
        name="ask_book",
        title="Ask the book",
        description=(
            "Answer a question only from the book's pages. Every sentence is proven by a verbatim quote with a link to "
            "it. When the book does not cover the question the outcome is 'refused': say so, and do not answer "
            "yourself. Each question must be understandable without the previous ones."
        ),
        input_schema=ToolArguments.model_json_schema(),
        output_schema=AnswerResult.model_json_schema(),
        annotations=_READ_ONLY,
    ),
)


def parse_arguments(arguments: Mapping[str, Any] | None) -> AgentRequest:
    """Validate the arguments of a call. The message of the InputError says what to change and echoes no input."""
    try:
        return ToolArguments.model_validate(arguments or {}).request()
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False, include_context=False)
        reasons = "; ".join(f"{'.'.join(map(str, each['loc']))[:40]}: {each['msg']}" for each in details[:5])
        raise InputError(f"the arguments are invalid: {reasons}.") from None


async def search_book(book: Book, request: AgentRequest) -> types.CallToolResult:
    found = await book.search(request.query, top_k=request.top_k, filters=request.filters)
    passages = [
        PassageResult(
            position=result.position,
            title=result.title,
            section=" > ".join(result.heading_hierarchy),
            url=f"{result.url}#{result.anchor}" if result.anchor else result.url,
            text=result.text,
            score=round(result.score, 3),
            page=page_uri(result.url),
        )
        for result in found.results
    ]
    return _to_tool_result(found.format_for_prompt(), SearchResult(query=found.query, passages=passages))


async def ask_book(book: Book, request: AgentRequest, *, user_id: str) -> types.CallToolResult:
    response = await book.ask(request, user_id=user_id)
    answer = AnswerResult.model_validate(to_json(response))
    return _to_tool_result(response.format_with_sources(), answer)


def _to_tool_result(text: str, structured: BaseModel) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=structured.model_dump())


PAGE_SIZE = 100
# Not the URL of the page: a client may fetch that from the web instead of reading the resource.
_SCHEME = "book://page/"
_PLAIN = "text/plain"

TEMPLATE = types.ResourceTemplate(
    name="page",
    title="A page of the book",
    uri_template=_SCHEME + "{url}",
    description="The text of the page with this percent-encoded URL, as a reader sees it.",
    mime_type=_PLAIN,
)


def page_uri(url: str) -> str:
    """The URI of the resource of a page."""
    return _SCHEME + quote(url, safe="")


async def list_pages(book: Book, *, after: str) -> types.ListResourcesResult:
    """One page of the list of resources, sorted by URL, after this URL."""
    async with book.snapshot() as snapshot:
        found = snapshot.catalog.list_titles(after=after, limit=PAGE_SIZE + 1)
    listed = [
        types.Resource(name=url, title=title, uri=page_uri(url), mime_type=_PLAIN) for url, title in found[:PAGE_SIZE]
    ]
    return types.ListResourcesResult(resources=listed, next_cursor=found[-2][0] if len(found) > PAGE_SIZE else None)


async def read_page(book: Book, uri: str) -> types.ReadResourceResult:
    """The text of a page of the book."""
    url = unquote(uri.removeprefix(_SCHEME)) if uri.startswith(_SCHEME) else ""
    async with book.snapshot() as snapshot:
        page = snapshot.catalog.get_page(url) if "\0" not in url else None
    if page is None:
        raise NotFound("the book has no such page. List the resources to see its pages.")
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type=_PLAIN, text=page.text)])


MAX_URI_LENGTH = 10_000
INSTRUCTIONS = (
    "This server is one book. ask_book answers only from its pages and proves each sentence with a quote; cite its "
    "links. When it refuses, the book does not cover the question: report that. search_book gives the passages "
    "themselves, and the resources are whole pages."
)


def anonymous_user(_context: Context) -> str:
    """The user of a program on this machine: the same as on the command line."""
    return ""


def _error_message(error: BookError) -> str:
    """The full message if the client can change something, else the message for readers."""
    return str(error) if isinstance(error, InputError | NotFound) else error.reader_message


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except BookError as error:
        code = types.INVALID_PARAMS if isinstance(error, InputError | NotFound) else types.INTERNAL_ERROR
        raise MCPError(code, _error_message(error)) from error


def create_server(book: Book, *, get_user_id: GetUserId = anonymous_user) -> Server[Any]:
    """The server of an open book. Its questions are recorded in the answer log like any others."""

    async def list_tools(_: Context, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=list(TOOLS))

    async def call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name not in {tool.name for tool in TOOLS}:
            raise MCPError(types.INVALID_PARAMS, "there is no such tool. Use search_book or ask_book.")
        try:
            request = parse_arguments(params.arguments)
            if params.name == "search_book":
                return await search_book(book, request)
            return await ask_book(book, request, user_id=get_user_id(context))
        except BookError as error:
            return types.CallToolResult(content=[types.TextContent(text=_error_message(error))], is_error=True)

    async def list_resources(_: Context, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        after = (params.cursor if params else None) or ""
        if len(after) > MAX_URI_LENGTH:
            raise MCPError(types.INVALID_PARAMS, "this cursor is not from this server.")
        with _translate_errors():
            return await list_pages(book, after=after)

    async def list_templates(
        _: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=[TEMPLATE])

    async def read_resource(_: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        with _translate_errors():
            return await read_page(book, str(params.uri)[:MAX_URI_LENGTH])

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
    """Serve MCP over standard input and output until the client disconnects."""
    from mcp.server.stdio import stdio_server

    server = create_server(book)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
