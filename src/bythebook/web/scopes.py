"""Who may do what: one line for each route. What has no line here is not there."""

from __future__ import annotations

import re
from typing import Literal

from bythebook.access import Scope

PUBLIC: Literal["public"] = "public"

SCOPES: dict[tuple[str, str], Scope | Literal["public"]] = {
    ("POST", "/v1/ask"): Scope.ASK,
    ("POST", "/v1/sessions"): Scope.ASK,
    ("GET", "/v1/sessions/{session_id}"): Scope.ASK,
    ("GET", "/v1/sessions/{session_id}/messages"): Scope.ASK,
    ("POST", "/v1/sessions/{session_id}/reset"): Scope.ASK,
    ("DELETE", "/v1/sessions/{session_id}"): Scope.ASK,
    ("POST", "/v1/search"): Scope.SEARCH,
    ("POST", "/v1/chat/completions"): Scope.ASK,
    ("GET", "/v1/models"): Scope.ASK,
    ("GET", "/metrics"): Scope.METRICS,
    ("GET", "/health/live"): PUBLIC,
    ("GET", "/health/ready"): PUBLIC,
    ("GET", "/docs"): PUBLIC,
    ("GET", "/openapi.json"): PUBLIC,
}

WORK = frozenset({("POST", "/v1/ask"), ("POST", "/v1/search"), ("POST", "/v1/chat/completions")})
"""What takes a place at the desk while it is done."""

_PATTERNS = [(re.compile(re.sub(r"{\w+}", "[^/]+", path)), path) for path in {path for _, path in SCOPES}]


def route_of(path: str) -> str | None:
    """The route that serves this path, None when there is none."""
    return next((route for pattern, route in _PATTERNS if pattern.fullmatch(path)), None)


def methods_of(route: str) -> list[str]:
    return sorted(method for method, path in SCOPES if path == route)
