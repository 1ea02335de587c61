"""Generators: which program publishes the book, as its configuration and files give away."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class Style(StrEnum):
    """How a book is published: it decides the ids of its headings and the shape of its URLs."""

    DOCUSAURUS = "docusaurus"
    MKDOCS = "mkdocs"
    SPHINX = "sphinx"
    MDBOOK = "mdbook"
    PLAIN = "plain"


_CONFIGS = {
    "docusaurus.config.js": Style.DOCUSAURUS,
    "docusaurus.config.ts": Style.DOCUSAURUS,
    "docusaurus.config.mjs": Style.DOCUSAURUS,
    "mkdocs.yml": Style.MKDOCS,
    "mkdocs.yaml": Style.MKDOCS,
    "book.toml": Style.MDBOOK,
    "conf.py": Style.SPHINX,
}

_TRACES = {
    "_category_.json": Style.DOCUSAURUS,
    "_category_.yml": Style.DOCUSAURUS,
    "*/_category_.json": Style.DOCUSAURUS,
    "*/_category_.yml": Style.DOCUSAURUS,
    "SUMMARY.md": Style.MDBOOK,
}

_OUTPUTS = {
    "build": Style.DOCUSAURUS,
    "site": Style.MKDOCS,
    "book": Style.MDBOOK,
    "_build": Style.SPHINX,
}


def detect(root: Path) -> Style:
    """The generator of the book in `root`: by a configuration there or up to two folders above, else by its files."""
    folder = root if root.is_dir() else root.parent
    for place in (folder, *list(folder.parents)[:2]):
        for name, style in _CONFIGS.items():
            if (place / name).is_file():
                return style
    for pattern, style in _TRACES.items():
        if any(folder.glob(pattern)):
            return style
    return Style.PLAIN


def is_output(folder: Path) -> bool:
    """Whether a generator writes its result into `folder`, so that it only repeats the book."""
    style = _OUTPUTS.get(folder.name)
    return style is not None and any((folder.parent / name).is_file() for name, of in _CONFIGS.items() if of == style)
