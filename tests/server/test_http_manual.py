"""The manual of the HTTP API names the routes there are, and only those."""

from __future__ import annotations

import re
from pathlib import Path

from bythebook import errors
from bythebook.errors import BookError
from bythebook.server.permissions import SCOPES

MANUAL = (Path(__file__).parents[2] / "docs" / "http.md").read_text(encoding="utf-8")


def test_every_route_has_its_place_in_the_manual() -> None:
    headings = "\n".join(re.findall(r"^## .*$", MANUAL, flags=re.MULTILINE))
    named = set(re.findall(r"(GET|POST|DELETE) (/[\w/{}.]*)", headings))
    assert named == set(SCOPES)


def test_every_error_a_caller_can_meet_is_in_the_manual() -> None:
    codes = {kind.code for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, BookError)}
    table = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| `.*? \|", MANUAL, flags=re.MULTILINE))))
    assert codes - {"error", "configuration_error"} <= table
