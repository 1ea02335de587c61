"""Showing: what is said, as HTML for a page, beside the text it was made of. Asked for by `Prefer: render=html`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from bythebook.passages.links import link
from bythebook.web.rendering import Rendering, render
from bythebook.web.streams import line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.requests import Request

    from bythebook.web.streams import Happening


def wants_html(request: Request) -> bool:
    """Whether the caller shows answers on a page."""
    preferred = ",".join(request.headers.getlist("prefer"))
    return "render=html" in (part.strip() for part in preferred.split(","))


def shown(said: Mapping[str, Any], *, text: str) -> dict[str, Any]:
    """What was said, with `html` made of its `text` and leading where its citations lead."""
    return {**said, "html": render(said[text], _leading(said["citations"]))}


class Showing:
    """Follows one stream, and adds to its events what a page shows of them."""

    def __init__(self) -> None:
        self._links: dict[int, str] = {}
        self._rendering = Rendering({})

    def tell(self, happening: Happening) -> str:
        """The event's data, with HTML wherever there is something to show."""
        match happening.name:
            case "sources":
                self._found(json.loads(happening.data)["sources"])
            case "state" if json.loads(happening.data)["state"] == "generating":
                # An answer begins, perhaps anew.
                self._rendering = Rendering(self._links)
            case "delta":
                return self._more(json.loads(happening.data)["text"])
            case "answer":
                return line(shown(json.loads(happening.data), text="answer"))
        return happening.data

    def _found(self, sources: Sequence[Mapping[str, Any]]) -> None:
        """Until an answer is proven its numbers are those of the passages."""
        for source in sources:
            self._links[source["position"]] = link(source["url"], anchor=source["anchor"], words="")

    def _more(self, text: str) -> str:
        rendered = self._rendering.feed(text)
        return line({"text": text, "html": rendered.html, "settled": rendered.settled})


def _leading(citations: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    return {citation["number"]: citation["url"] for citation in citations}
