"""Jupyter notebooks: their text, their code, and the beginning of what the code printed."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any

from bythebook.sources import Kind, Unreadable
from bythebook.sources.document import Draft, Part, Writer
from bythebook.sources.projects import Style
from bythebook.sources.readers import markdown
from bythebook.sources.slugs import Anchors

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MOST_OUTPUT_LINES, MOST_OUTPUT_LETTERS = 20, 1_000
"""How much of what a cell printed is kept: enough to see what it does."""

_parser = cache(markdown.build_parser)
_MAGIC = re.compile(r"%%(\w+)[^\n]*\n")
_LANGUAGES = {"bash": "bash", "sh": "bash", "script": "bash", "javascript": "javascript", "js": "javascript"}
_LANGUAGES |= {"html": "html", "latex": "latex", "sql": "sql", "cython": "cython", "perl": "perl", "ruby": "ruby"}
_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_ONLY_AN_OBJECT = re.compile(r"\[?<[^<>\n]*>\]?|Figure\(.*\)|Text\(.*\)")
_REMOVED = re.compile(r"remove[-_](cell|input|output)")
_READABLE_RAW = frozenset(["", "text/markdown", "text/x-markdown"])


def read(text: str, *, style: Style = Style.PLAIN) -> Draft:
    """The notebook, with heading ids as Jupyter gives them, or the generator that publishes it."""
    try:
        notebook = json.loads(text)
    except ValueError as exc:
        raise Unreadable(f"it is no notebook: its JSON is broken ({exc})") from exc
    if not isinstance(notebook, dict):
        raise Unreadable("it is no notebook: its JSON is no object")
    language = _language(notebook)
    parts = [part for cell in _cells(notebook) for part in _parts(cell, language, style)]
    anchored = tuple(_anchored(parts, style))
    return Draft(_said_title(notebook) or markdown.title_of(anchored), anchored)


def _cells(notebook: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The cells of a notebook; before 2015 they stood on worksheets."""
    sheets = notebook.get("worksheets")
    holders = [notebook, *(sheets if isinstance(sheets, list) else [])]
    for holder in holders:
        cells = holder.get("cells") if isinstance(holder, dict) else None
        yield from (cell for cell in (cells if isinstance(cells, list) else []) if isinstance(cell, dict))


def _parts(cell: Mapping[str, Any], language: str, style: Style) -> tuple[Part, ...]:
    hidden = _hidden(cell)
    if "cell" in hidden:
        return ()
    source = _text(cell.get("source", cell.get("input")))
    match cell.get("cell_type"):
        case "code":
            return _code(cell, source, language, hidden)
        case "markdown":
            return _markdown(source, style)
        case "heading":  # before 2015
            level = cell.get("level")
            return _markdown(f"{'#' * (level if isinstance(level, int) else 1)} {source}", style)
        case "raw" if _raw_kind(cell) in _READABLE_RAW and not source.lstrip().startswith("---"):
            return _markdown(source, style)
    return ()


def _markdown(source: str, style: Style) -> tuple[Part, ...]:
    return markdown.draft(source, style=style, title="", parser=_parser()).parts


def _code(cell: Mapping[str, Any], source: str, language: str, hidden: frozenset[str]) -> tuple[Part, ...]:
    writer = Writer()
    if "input" not in hidden:
        magic = _MAGIC.match(source)
        writer.code(source, language=_LANGUAGES.get(magic[1], language) if magic else language)
    outputs = cell.get("outputs")
    if "output" not in hidden and isinstance(outputs, list):
        printed = "\n".join(said for output in outputs if isinstance(output, dict) and (said := _printed(output)))
        writer.code(_short(printed), language="text")
    return writer.finish()


def _printed(output: Mapping[str, Any]) -> str:
    """What one output says in plain text: nothing for a picture, a warning or the name of an object."""
    match output.get("output_type"):
        case "stream" if output.get("name", output.get("stream")) == "stdout":
            return _COLOURS.sub("", _text(output.get("text"))).strip("\n")
        case "execute_result" | "display_data" | "pyout":
            data = output.get("data", output)
            said = _text(data.get("text/plain", data.get("text"))) if isinstance(data, dict) else ""
            return "" if _ONLY_AN_OBJECT.fullmatch(said.strip()) else said.strip("\n")
        case "error" | "pyerr":
            return f"{_text(output.get('ename'))}: {_COLOURS.sub('', _text(output.get('evalue')))}".strip(": ")
    return ""


def _short(printed: str) -> str:
    lines = printed[:MOST_OUTPUT_LETTERS].split("\n")[:MOST_OUTPUT_LINES]
    kept = "\n".join(lines)
    return kept if len(kept) == len(printed) else f"{kept}\n..."


def _anchored(parts: Sequence[Part], style: Style) -> Iterator[Part]:
    """Each cell was read by itself; the ids of headings are given out for the whole page."""
    anchors = Anchors(style)
    for part in parts:
        if part.kind is not Kind.HEADING:
            yield part
        elif style is Style.PLAIN:
            yield Part(part.kind, part.text, level=part.level, anchor=part.text.replace(" ", "-"))
        else:
            yield Part(part.kind, part.text, level=part.level, anchor=anchors.anchor(part.text, level=part.level))


def _hidden(cell: Mapping[str, Any]) -> frozenset[str]:
    """What the author has taken out of the published page by a tag: the cell, its input or its output."""
    metadata = cell.get("metadata")
    tags = metadata.get("tags") if isinstance(metadata, dict) else None
    matches = (_REMOVED.fullmatch(str(tag)) for tag in (tags if isinstance(tags, list) else []))
    return frozenset(match[1] for match in matches if match)


def _raw_kind(cell: Mapping[str, Any]) -> str:
    metadata = cell.get("metadata")
    kind = (metadata.get("raw_mimetype") or metadata.get("format")) if isinstance(metadata, dict) else ""
    return str(kind or "")


def _language(notebook: Mapping[str, Any]) -> str:
    metadata = notebook.get("metadata")
    about_all = metadata if isinstance(metadata, dict) else {}
    for place in ("language_info", "kernelspec"):
        about = about_all.get(place)
        if isinstance(about, dict) and (name := about.get("language" if place == "kernelspec" else "name")):
            return str(name).lower()
    return "python"


def _said_title(notebook: Mapping[str, Any]) -> str:
    metadata = notebook.get("metadata")
    title = metadata.get("title") if isinstance(metadata, dict) else None
    return title.strip() if isinstance(title, str) else ""


def _text(said: Any) -> str:
    """Text as notebooks have it: whole, or as a list of lines."""
    if isinstance(said, list):
        return "".join(line for line in said if isinstance(line, str))
    return said if isinstance(said, str) else ""
