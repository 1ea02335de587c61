"""The configuration of a Sphinx project: what `conf.py` spells out. It is parsed, never run."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bythebook.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_LARGEST = 1_000_000


@dataclass(frozen=True, slots=True)
class Config:
    """What the configuration says."""

    root_doc: str
    suffixes: tuple[str, ...]
    included: tuple[str, ...]
    excluded: tuple[str, ...]
    base_url: str
    file_suffix: str
    definitions: str
    """The text that every document can rely on: its prolog and epilog, and its version."""


def read(file: Path) -> Config:
    """Read a configuration. What it does not spell out is as Sphinx has it by default."""
    said = _assigned(file)
    extensions = _words(said.get("extensions"))
    suffixes = _words(said.get("source_suffix")) or (".rst",)
    if any(name.startswith("myst") for name in extensions) and ".md" not in suffixes:
        suffixes = (*suffixes, ".md")
    return Config(
        root_doc=_text(said.get("root_doc")) or _text(said.get("master_doc")) or "index",
        suffixes=suffixes,
        included=_words(said.get("include_patterns")) or ("**",),
        excluded=(*_words(said.get("exclude_patterns")), *_words(said.get("templates_path"))),
        base_url=_text(said.get("html_baseurl")).rstrip("/"),
        file_suffix=_text(said.get("html_link_suffix")) or _text(said.get("html_file_suffix")) or ".html",
        definitions="\n\n".join(_definitions(said)),
    )


def _definitions(said: dict[str, Any]) -> Iterator[str]:
    yield from (text for name in ("rst_prolog", "rst_epilog") if (text := _text(said.get(name))))
    for name in ("version", "release"):
        if value := _text(said.get(name)):
            yield f".. |{name}| replace:: {value}"


def _assigned(file: Path) -> dict[str, Any]:
    """The values of the names that are assigned, as far as they are literal."""
    try:
        data = file.read_bytes()
        if len(data) > _LARGEST:
            raise ValueError("it is larger than a configuration can be")
        tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as exc:
        raise ConfigurationError(
            f"{file} cannot be read: {exc}. Correct it, or read the pages as a plain folder."
        ) from exc
    known: dict[str, Any] = {}
    for statement in _statements(tree.body):
        _apply(statement, known)
    return known


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        if isinstance(statement, ast.Try):
            yield from _statements(statement.body)
        else:
            yield statement


def _apply(statement: ast.stmt, known: dict[str, Any]) -> None:
    if isinstance(statement, ast.Assign) and all(isinstance(target, ast.Name) for target in statement.targets):
        value = _value(statement.value, known)
        known.update({target.id: value for target in statement.targets if isinstance(target, ast.Name)})
    elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value:
        known[statement.target.id] = _value(statement.value, known)
    elif isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        name = statement.target.id
        known[name] = _added(known.get(name), _value(statement.value, known))
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        _call(statement.value, known)


def _call(call: ast.Call, known: dict[str, Any]) -> None:
    """`exclude_patterns.append("drafts")` and `.extend([...])`."""
    function = call.func
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and len(call.args) == 1:
        name, value = function.value.id, _value(call.args[0], known)
        if function.attr in ("append", "extend") and isinstance(known.get(name), list):
            known[name] = _added(known[name], [value] if function.attr == "append" else value)


def _value(node: ast.expr, known: dict[str, Any]) -> Any:
    """The value of an expression that needs no running; None for any other."""
    value: Any
    match node:
        case ast.Constant():
            value = node.value
        case ast.List() | ast.Tuple() | ast.Set():
            value = [_value(item, known) for item in node.elts]
        case ast.Dict():
            pairs = zip(node.keys, node.values, strict=True)
            value = {str(_value(key, known)): _value(inner, known) for key, inner in pairs if key}
        case ast.Name():
            value = known.get(node.id)
        case ast.BinOp(op=ast.Add()):
            value = _added(_value(node.left, known), _value(node.right, known))
        case ast.JoinedStr():
            holes = (piece.value if isinstance(piece, ast.FormattedValue) else piece for piece in node.values)
            pieces = [_value(hole, known) for hole in holes]
            known_all = None not in pieces and sum(len(str(piece)) for piece in pieces) < _LARGEST
            value = "".join(map(str, pieces)) if known_all else None
        case _:
            value = None
    return value


def _added(left: Any, right: Any) -> Any:
    texts = isinstance(left, str) and isinstance(right, str)
    lists = isinstance(left, list) and isinstance(right, list)
    return left + right if (texts or lists) and len(left) + len(right) < _LARGEST else left


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _words(value: Any) -> tuple[str, ...]:
    """A list of words: of a list, of the names of a dictionary, or one alone."""
    items = [value] if isinstance(value, str) else value
    return tuple(item for item in items or () if isinstance(item, str)) if isinstance(items, list | dict) else ()
