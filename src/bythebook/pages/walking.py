"""Walking: the files of a folder in reading order, without leaving it or going in circles."""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from bythebook.pages import Skipped
from bythebook.pages.addresses import is_index
from bythebook.pages.generators import Style, is_output

if TYPE_CHECKING:
    from collections.abc import Iterator

_NEVER = frozenset(["node_modules", "__pycache__", "bower_components", "site-packages", "venv"])
_DEEPEST = 100
_SPHINX_FOLDERS = frozenset(["_static", "_templates", "_build", "_themes", "_ext"])


def walk(root: Path, *, style: Style) -> Iterator[PurePosixPath | Skipped]:
    """The path of every regular file below `root`, each folder's index first, numbers in the order of counting.

    Hidden folders, installed packages and what generators write are passed over in silence; links that loop or leave
    the folder, and folders that cannot be opened, are reported.
    """
    yield from _walk(root, PurePosixPath(), style=style, above=(root.resolve(),))


def _walk(
    folder: Path, inside: PurePosixPath, *, style: Style, above: tuple[Path, ...]
) -> Iterator[PurePosixPath | Skipped]:
    try:
        entries = sorted(os.scandir(folder), key=_reading_order)
    except OSError as exc:
        yield Skipped(shown(inside), f"the folder cannot be opened: {exc.strerror}")
        return
    for entry in entries:
        path = inside / entry.name
        if _is_passed_over(entry, style):
            continue
        if not _is_text(entry.name):
            yield Skipped(shown(path), "its name is not valid UTF-8; rename it")
            continue
        yield from _visit(entry, path, style=style, above=above)


def _visit(
    entry: os.DirEntry[str], path: PurePosixPath, *, style: Style, above: tuple[Path, ...]
) -> Iterator[PurePosixPath | Skipped]:
    if entry.is_symlink():
        problem = _problem_of_link(Path(entry.path), above)
        if problem:
            yield Skipped(str(path), problem)
            return
    if entry.is_dir() and len(above) > _DEEPEST:
        yield Skipped(str(path), f"it is more than {_DEEPEST} folders deep")
    elif entry.is_dir():
        real = Path(entry.path).resolve() if entry.is_symlink() else above[-1] / entry.name
        yield from _walk(Path(entry.path), path, style=style, above=(*above, real))
    elif entry.is_file():
        yield path


def _problem_of_link(link: Path, above: tuple[Path, ...]) -> str:
    try:
        target = link.resolve(strict=True)
    except (OSError, RuntimeError):
        return "it is a link to something that does not exist"
    if target in above:
        return "it is a link to a folder it is in"
    if not target.is_relative_to(above[0]):
        return "it is a link that leaves the folder"
    return ""


def _is_passed_over(entry: os.DirEntry[str], style: Style) -> bool:
    name = entry.name
    if name.startswith(".") or (style is Style.DOCUSAURUS and name.startswith("_")):
        return True
    # Unlike the entry's own answer, this one is no error for a link that leads to itself.
    if not Path(entry.path).is_dir():
        return False
    return name in _NEVER or (style is Style.SPHINX and name in _SPHINX_FOLDERS) or is_output(Path(entry.path))


def _reading_order(entry: os.DirEntry[str]) -> tuple[bool, list[tuple[str, int]], str]:
    """Index first, then by name, with `2` before `10`."""
    pieces = re.split(r"([0-9]+)", entry.name.casefold())
    key = [("", int(piece)) if piece.isascii() and piece.isdigit() else (piece, 0) for piece in pieces if piece]
    return not is_index(PurePosixPath(entry.name)), key, entry.name


def _is_text(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def shown(path: PurePosixPath) -> str:
    """A path as it can be printed, whatever bytes its name has."""
    return str(path).encode("utf-8", "backslashreplace").decode("utf-8")
