"""The two tools: what they take, what they give, and how they are described to a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from mcp.types import CallToolResult, TextContent, Tool, ToolAnnotations
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from bythebook.answers import LONGEST_QUERY, AgentRequest
from bythebook.errors import InputError
from bythebook.passages import Filters
from bythebook.wire import as_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bythebook.assemble import Book

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
    from bythebook.mcp.pages import uri_of

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
