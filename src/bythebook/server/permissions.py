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
    ("POST", "/v1/feedback"): Scope.FEEDBACK,
    ("POST", "/v1/chat/completions"): Scope.ASK,
    ("GET", "/v1/models"): Scope.ASK,
    ("POST", "/mcp"): Scope.ASK,
    ("GET", "/metrics"): Scope.METRICS,
    ("GET", "/health/live"): PUBLIC,
    ("GET", "/health/ready"): PUBLIC,
    ("GET", "/"): PUBLIC,
    ("GET", "/widget.js"): PUBLIC,
    ("GET", "/docs"): PUBLIC,
    ("GET", "/openapi.json"): PUBLIC,
}

WORK = frozenset({"/v1/ask", "/v1/search", "/v1/chat/completions", "/mcp"})
"""What takes a place at the desk while it is done."""

FOR_KEYS_ONLY = frozenset({"/mcp"})
"""What the public token of a site cannot be used for, because its budget does not count there."""

_PATTERNS = [(re.compile(re.sub(r"{\w+}", "[^/]+", path)), path) for path in {path for _, path in SCOPES}]


def route_of(path: str) -> str | None:
    """The route that serves this path, None when there is none."""
    return next((route for pattern, route in _PATTERNS if pattern.fullmatch(path)), None)


def methods_of(route: str) -> list[str]:
    return sorted(method for method, path in SCOPES if path == route)
