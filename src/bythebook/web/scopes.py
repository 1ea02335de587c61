"""Who may do what: one line for each route. A route that has no line here does not start."""

from __future__ import annotations

from typing import Literal

PUBLIC: Literal["public"] = "public"

SCOPES: dict[tuple[str, str], str] = {
    ("POST", "/v1/ask"): "ask",
    ("POST", "/v1/search"): "search",
    ("GET", "/health/live"): PUBLIC,
    ("GET", "/health/ready"): PUBLIC,
    ("GET", "/metrics"): "metrics",
    ("GET", "/docs"): PUBLIC,
    ("GET", "/openapi.json"): PUBLIC,
}
