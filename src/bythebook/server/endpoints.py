"""Routes: the access policy that each one declares, strict JSON bodies, and FastAPI dependencies."""

import json
import re
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import pydantic_core
from fastapi import Depends, Request, Response
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute, Route
from starlette.types import Scope as AsgiScope

from bythebook.access import Caller, Scope
from bythebook.book import Book
from bythebook.errors import NotFound
from bythebook.server.admission import AdmissionController
from bythebook.server.auth import Authenticator
from bythebook.server.errors import MethodNotAllowed
from bythebook.settings import Settings

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class RoutePolicy:
    """The access policy of a route, and whether calls count against the server's capacity."""

    scope: Scope | None
    """None: no key is needed."""
    admission: bool = False
    """Whether a call holds a slot of the AdmissionController until its response is complete."""
    site_tokens: bool = True
    """Whether the public token of a site is accepted. False where the quota of the site is not charged."""


def public(endpoint: Endpoint) -> Endpoint:
    """Declare that a route needs no key."""
    endpoint.policy = RoutePolicy(None)  # type: ignore[attr-defined]
    return endpoint


def requires(scope: Scope, *, admission: bool = False) -> Callable[[Endpoint], Endpoint]:
    """Declare the scope of a route, and whether it is subject to admission control."""

    def declare(endpoint: Endpoint) -> Endpoint:
        endpoint.policy = RoutePolicy(scope, admission)  # type: ignore[attr-defined]
        return endpoint

    return declare


def get_route_path(scope: AsgiScope) -> str:
    """The path of a request below the path at which the app is mounted."""
    path, mounted = scope["path"], scope.get("root_path", "").rstrip("/")
    return (path[len(mounted) :] or "/") if f"{path}/".startswith(f"{mounted}/") else path


class RouteTable:
    """The policy of each route by its path and method. A route without a policy is an error at start-up."""

    def __init__(self, routes: Iterable[BaseRoute]) -> None:
        self._patterns: dict[str, re.Pattern[str]] = {}
        self.policies: dict[tuple[str, str], RoutePolicy] = {}
        for route in routes:
            policy = getattr(route.endpoint, "policy", None) if isinstance(route, Route) else None
            if not isinstance(route, Route) or not isinstance(policy, RoutePolicy):
                raise TypeError(f"{route} declares no access policy. Add @requires(...) or @public to its function.")
            self._patterns[route.path] = route.path_regex
            self.policies |= {(method, route.path): policy for method in route.methods or () if method != "HEAD"}

    def find_path(self, address: str) -> str:
        """The path template of the route at this address. Raises NotFound."""
        for path, pattern in self._patterns.items():
            if pattern.fullmatch(address):
                return path
        raise NotFound("there is no such address. /docs lists the routes.")

    def find_policy(self, path: str, method: str) -> RoutePolicy:
        """The policy of a method of this path. Raises MethodNotAllowed."""
        if (policy := self.policies.get((method, path))) is None:
            allowed = sorted(method for method, known in self.policies if known == path)
            raise MethodNotAllowed("this address does not support the method. /docs lists the routes.", allowed=allowed)
        return policy


class _StrictJsonRequest(Request):
    async def json(self) -> Any:
        """The body. NaN, a lone surrogate, invalid UTF-8 and excessive nesting are rejected."""
        try:
            return pydantic_core.from_json(await self.body(), allow_inf_nan=False)
        except ValueError:
            # The parser's message may quote the body.
            raise json.JSONDecodeError("not JSON", "", 0) from None


class StrictJsonRoute(APIRoute):
    """A route that parses its body strictly."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_strictly(request: Request) -> Response:
            return await handle(_StrictJsonRequest(request.scope, request.receive))

        return handle_strictly


@dataclass(frozen=True, slots=True)
class AppContext:
    """The resources of one app."""

    book: Book
    settings: Settings
    admission: AdmissionController
    authenticator: Authenticator
    routes: RouteTable


# Async although they await nothing: FastAPI runs a plain function in a thread, which would delay every request.
async def _get_context(request: Request) -> AppContext:
    context: AppContext = request.app.state.context
    return context


async def _get_caller(request: Request) -> Caller:
    caller: Caller = request.scope["state"]["caller"]
    return caller


async def _get_user_id(request: Request) -> str:
    return (await _get_caller(request)).user_id


ContextDep = Annotated[AppContext, Depends(_get_context)]
CallerDep = Annotated[Caller, Depends(_get_caller)]
UserIdDep = Annotated[str, Depends(_get_user_id)]
