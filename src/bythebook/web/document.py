"""The document: what OpenAPI says of the routes, with examples, and with what only the guard knows: who may call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import FastAPI

from bythebook.web.examples import EXAMPLES
from bythebook.web.scopes import PUBLIC, SCOPES

if TYPE_CHECKING:
    from fastapi.routing import APIRoute

KEY = "key"
"""The name of the one way to show who one is."""


def plain_name(route: APIRoute) -> str:
    """What a call is named in clients that are made of the document."""
    return route.name


class Documented(FastAPI):
    """An app with such a document."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            document = super().openapi()
            # Examples in the types themselves would lose what is null in them.
            for name, examples in EXAMPLES.items():
                document["components"]["schemas"][name]["examples"] = examples
            _add_keys(document)
        return super().openapi()


def _add_keys(document: dict[str, Any]) -> None:
    """Say which key each route needs, where the server has keys at all."""
    about = "A key, or the token of a site. A server that has neither answers without."
    document["components"]["securitySchemes"] = {KEY: {"type": "http", "scheme": "bearer", "description": about}}
    for path, methods in document["paths"].items():
        for method, call in methods.items():
            needed = SCOPES.get((method.upper(), path), PUBLIC)
            call["security"] = [] if needed == PUBLIC else [{KEY: [needed.value]}, {}]
