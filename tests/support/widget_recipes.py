"""The recipes of the manual, as the generators they are for would carry them out."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

MANUAL = (Path(__file__).parents[2] / "docs" / "widget.md").read_text(encoding="utf-8")


def tag(recipe: str, server: str) -> str:
    """The tag that ends up in a page, for a server of one's own."""
    made = {"plain": _plain, "docusaurus": _docusaurus, "material": _material, "sphinx": _sphinx}[recipe]()
    assert "https://book.example/" in made
    return made.replace("https://book.example", server)


def _snippet(heading: str, language: str) -> str:
    section = MANUAL.split(f"{heading}\n", 1)[1].split("\n##", 1)[0]
    found = re.search(rf"```{language}\n(.*?)```", section, re.DOTALL)
    assert found is not None, heading
    return found[1]


def _plain() -> str:
    return _snippet("## Put the widget on your site", "html")


def _docusaurus() -> str:
    """Docusaurus writes each script of its configuration into the head, with its attributes."""
    listed = _snippet("### In Docusaurus", "js").strip().removeprefix("scripts:").rstrip(",")
    (script,) = json.loads(re.sub(r"([{,]\s*)(\w+):", r'\1"\2":', listed))
    return _written(script)


def _material() -> str:
    """The template's block, after what was in it before."""
    block = _snippet("### In MkDocs Material", "html")
    assert re.search(
        r'{% extends "base.html" %}\s*{% block scripts %}\s*{{ super\(\) }}.*{% endblock %}', block, re.DOTALL
    )
    return block.split("{{ super() }}")[1].split("{% endblock %}")[0].strip()


def _sphinx() -> str:
    """Sphinx writes each file of the list into the head, with its attributes."""
    ((address, attributes),) = ast.literal_eval(_snippet("### In Sphinx", "python").partition("=")[2].strip())
    return _written({"src": address} | attributes)


def _written(attributes: dict[str, object]) -> str:
    parts = [name if value is True else f'{name}="{value}"' for name, value in attributes.items()]
    return f"<script {' '.join(parts)}></script>"
