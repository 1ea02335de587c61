"""Bodies: JSON read strictly, so that nothing gets in that JSON does not have."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pydantic_core
from fastapi.routing import APIRoute
from starlette.requests import Request

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from starlette.responses import Response


class _StrictRequest(Request):
    async def json(self) -> Any:
        """The body. NaN, half a surrogate pair, bytes that are no UTF-8 and nesting without end are not JSON."""
        try:
            return pydantic_core.from_json(await self.body(), allow_inf_nan=False)
        except ValueError:
            # The parser's own words may quote the body.
            raise json.JSONDecodeError("not JSON", "", 0) from None


class StrictRoute(APIRoute):
    """A route that reads its body strictly."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def strictly(request: Request) -> Response:
            return await handle(_StrictRequest(request.scope, request.receive))

        return strictly
