"""The pages of the book as resources: a list to page through, and the text of each."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from mcp.types import ListResourcesResult, ReadResourceResult, Resource, ResourceTemplate, TextResourceContents

from bythebook.errors import NotFound

if TYPE_CHECKING:
    from bythebook.assemble import Book

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
