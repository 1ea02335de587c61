"""Jupyter notebooks: text cells, code cells and the first lines of their output."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from bythebook.sources import BlockKind, Unreadable
from bythebook.sources.document import DocumentPart, DocumentWriter, ParsedDocument
from bythebook.sources.projects import Style
from bythebook.sources.readers import markdown
from bythebook.sources.slugs import AnchorGenerator

MOST_OUTPUT_LINES, MOST_OUTPUT_LETTERS = 20, 1_000
"""Limits for the output of a cell: enough to show what the code does."""

_parser = cache(markdown.build_parser)
_MAGIC = re.compile(r"%%(\w+)[^\n]*\n")
_LANGUAGES = {"bash": "bash", "sh": "bash", "script": "bash", "javascript": "javascript", "js": "javascript"}
_LANGUAGES |= {"html": "html", "latex": "latex", "sql": "sql", "cython": "cython", "perl": "perl", "ruby": "ruby"}
_ANSI_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_OBJECT_REPR = re.compile(r"\[?<[^<>\n]*>\]?|Figure\(.*\)|Text\(.*\)")
_REMOVE_TAG = re.compile(r"remove[-_](cell|input|output)")
_READABLE_RAW = frozenset(["", "text/markdown", "text/x-markdown"])


def read(text: str, *, style: Style = Style.PLAIN) -> ParsedDocument:
    """The notebook, with the heading ids of Jupyter or of the generator that publishes it."""
    try:
        notebook = json.loads(text)
    except ValueError as exc:
        raise Unreadable(f"it is not a notebook: its JSON is invalid ({exc})") from exc
    if not isinstance(notebook, dict):
        raise Unreadable("it is not a notebook: its JSON is not an object")
    language = _find_language(notebook)
    parts = [part for cell in _iterate_cells(notebook) for part in _read_cell(cell, language, style)]
    anchored = tuple(_add_anchors(parts, style))
    return ParsedDocument(_metadata_title(notebook) or markdown.find_title(anchored), anchored)


def _iterate_cells(notebook: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The cells of a notebook. Format versions before 4 keep them in worksheets."""
    for holder in (notebook, *_list(notebook.get("worksheets"))):
        yield from (cell for cell in _list(_mapping(holder).get("cells")) if isinstance(cell, dict))


def _read_cell(cell: Mapping[str, Any], language: str, style: Style) -> tuple[DocumentPart, ...]:
    hidden = _find_hidden_content(cell)
    if "cell" in hidden:
        return ()
    source = _join_lines(cell.get("source", cell.get("input")))
    match cell.get("cell_type"):
        case "code":
            return _read_code(cell, source, language, hidden)
        case "markdown":
            return _read_markdown(source, style)
        case "heading":  # format versions before 4
            level = cell.get("level")
            return _read_markdown(f"{'#' * (min(level, 6) if isinstance(level, int) else 1)} {source}", style)
        case "raw" if _raw_format(cell) in _READABLE_RAW and not source.lstrip().startswith("---"):
            return _read_markdown(source, style)
    return ()


def _read_markdown(source: str, style: Style) -> tuple[DocumentPart, ...]:
    return markdown.parse_body(source, style=style, title="", parser=_parser()).parts


def _read_code(cell: Mapping[str, Any], source: str, language: str, hidden: frozenset[str]) -> tuple[DocumentPart, ...]:
    writer = DocumentWriter()
    if "input" not in hidden:
        magic = _MAGIC.match(source)
        writer.code(source, language=_LANGUAGES.get(magic[1], language) if magic else language)
    if "output" not in hidden:
        printed = "\n".join(said for output in _list(cell.get("outputs")) if (said := _output_text(_mapping(output))))
        writer.code(_truncate(printed), language="text")
    return writer.finish()


def _output_text(output: Mapping[str, Any]) -> str:
    """The plain text of one output. Empty for an image, a warning or the repr of an object."""
    match output.get("output_type"):
        case "stream" if output.get("name", output.get("stream")) == "stdout":
            return _ANSI_COLOURS.sub("", _join_lines(output.get("text"))).strip("\n")
        case "execute_result" | "display_data" | "pyout":
            data = _mapping(output.get("data", output))
            said = _join_lines(data.get("text/plain", data.get("text")))
            return "" if _OBJECT_REPR.fullmatch(said.strip()) else said.strip("\n")
        case "error" | "pyerr":
            said = f"{_join_lines(output.get('ename'))}: {_join_lines(output.get('evalue'))}"
            return _ANSI_COLOURS.sub("", said).strip(": ")
    return ""


def _truncate(printed: str) -> str:
    lines = printed[:MOST_OUTPUT_LETTERS].split("\n")[:MOST_OUTPUT_LINES]
    kept = "\n".join(lines)
    return kept if len(kept) == len(printed) else f"{kept}\n..."


def _add_anchors(parts: Sequence[DocumentPart], style: Style) -> Iterator[DocumentPart]:
    """Assign heading ids. Cells are parsed separately, but ids are unique per page."""
    anchors = AnchorGenerator(style)
    for part in parts:
        if part.kind is not BlockKind.HEADING:
            yield part
        elif style is Style.PLAIN:
            yield replace(part, anchor=part.text.replace(" ", "-"))
        else:
            yield replace(part, anchor=anchors.anchor(part.text, level=part.level))


def _find_hidden_content(cell: Mapping[str, Any]) -> frozenset[str]:
    """What the tags of a cell remove from the published page: the cell, its input or its output."""
    matches = (_REMOVE_TAG.fullmatch(str(tag)) for tag in _list(_mapping(cell.get("metadata")).get("tags")))
    return frozenset(match[1] for match in matches if match)


def _raw_format(cell: Mapping[str, Any]) -> str:
    metadata = _mapping(cell.get("metadata"))
    return str(metadata.get("raw_mimetype") or metadata.get("format") or "")


def _find_language(notebook: Mapping[str, Any]) -> str:
    metadata = _mapping(notebook.get("metadata"))
    info, kernel = _mapping(metadata.get("language_info")), _mapping(metadata.get("kernelspec"))
    return str(info.get("name") or kernel.get("language") or "python").lower()


def _metadata_title(notebook: Mapping[str, Any]) -> str:
    title = _mapping(notebook.get("metadata")).get("title")
    return title.strip() if isinstance(title, str) else ""


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _join_lines(said: Any) -> str:
    """Text in a notebook is a string or a list of lines."""
    if isinstance(said, list):
        return "".join(line for line in said if isinstance(line, str))
    return said if isinstance(said, str) else ""
