"""The manual of the HTTP API documents exactly the existing routes and error codes."""

from __future__ import annotations

import re
from pathlib import Path

from bythebook import errors
from bythebook.errors import BookError
from tests.server.test_routing import CALLS

MANUAL = (Path(__file__).parents[2] / "docs" / "http.md").read_text(encoding="utf-8")


def test_the_manual_documents_every_route() -> None:
    headings = "\n".join(re.findall(r"^## .*$", MANUAL, flags=re.MULTILINE))
    named = set(re.findall(r"(GET|POST|DELETE) (/[\w/{}.]*)", headings))
    assert named == set(CALLS)


def test_the_manual_documents_every_error_code() -> None:
    codes = {kind.code for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, BookError)}
    table = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| `.*? \|", MANUAL, flags=re.MULTILINE))))
    assert codes - {"error", "configuration_error"} <= table
