"""Generators: which program publishes the book, and what its configuration makes of each document.

Configurations are read, never run: no JavaScript, no Python, no YAML tag does anything here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bythebook.sources import Skipped


class Style(StrEnum):
    """How a book is published: it decides the ids of its headings and the shape of its URLs."""

    DOCUSAURUS = "docusaurus"
    MKDOCS = "mkdocs"
    SPHINX = "sphinx"
    MDBOOK = "mdbook"
    PLAIN = "plain"


class Aside(StrEnum):
    """What a project has besides its book, by the word that includes it."""

    BLOG = "blog"
    PAGES = "pages"
    STARTER = "starter"
    CHANGELOG = "changelog"
    UNLISTED = "unlisted"
    REPOSITORY = "repository"


@dataclass(frozen=True, slots=True)
class Wish:
    """Which of the books in a project is meant, where there is more than one."""

    include: frozenset[Aside] = frozenset()
    version: str = ""
    """Empty: the one readers of the site see first."""
    locale: str = ""
    """Empty: the site's own."""
    builder: Literal["auto", "html", "dirhtml"] = "auto"
    """Of Sphinx."""


@dataclass(frozen=True, slots=True)
class Slugs:
    """How the ids of headings are made, where a configuration says so."""

    rule: Literal["ascii", "unicode", "pymdownx"] = "ascii"
    lower: bool = True
    separator: str = "-"


USUAL_SLUGS = Slugs()


@dataclass(frozen=True, slots=True)
class Place:
    """A document of a project, and where its generator puts it."""

    file: Path
    route: str
    """Below the address of the site, with a slash in front. Empty for a file that is not published."""
    chapter: str
    """What the generator itself calls the document."""
    module: str = ""
    title: str = ""
    """What the navigation calls it, where that comes before what the document says."""
    aside: Aside | None = None
    reason: str = ""
    """Why it is no part of the book; empty where it is."""


def _unchanged(text: str, _file: Path) -> str:
    return text


def _nothing(_file: Path) -> tuple[Path, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class Outline:
    """A project as its generator sees it: its documents in the order of its navigation."""

    address: str
    """Where the configuration says the site is published; empty where it is silent."""
    base: str
    """The path of the site on its host, with a slash at both ends."""
    places: tuple[Place, ...]
    skipped: tuple[Skipped, ...] = ()
    slugs: Slugs = USUAL_SLUGS
    prepare: Callable[[str, Path], str] = field(default=_unchanged, compare=False)
    """The text of a file with what it takes in from other files."""
    parts: Callable[[Path], tuple[Path, ...]] = field(default=_nothing, compare=False)
    """Those other files."""
    says: str = ""
    """Anything else in the configuration that the text of every page depends on."""


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


def configuration_in(root: Path) -> tuple[Style, Path] | None:
    """The generator whose project `root` is, and its configuration. None for any other folder.

    A `conf.py` is Sphinx's when it says what only Sphinx wants to know; it may also be in a folder `source`.
    """
    if not root.is_dir():
        return None
    for name, style in _CONFIGS.items():
        if style in (Style.DOCUSAURUS, Style.MKDOCS) and (root / name).is_file():
            return style, root / name
    for file in (root / "conf.py", root / "source" / "conf.py"):
        if file.is_file() and _is_of_sphinx(file):
            return Style.SPHINX, file
    return None


_SPHINX_NAMES = ("extensions", "master_doc", "root_doc", "html_theme", "source_suffix", "exclude_patterns")


def _is_of_sphinx(file: Path) -> bool:
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    lines = {line.partition("=")[0].partition(":")[0].strip() for line in text.splitlines() if "=" in line}
    return any(name in lines for name in _SPHINX_NAMES)


def is_output(folder: Path) -> bool:
    """Whether a generator writes its result into `folder`, so that it only repeats the book."""
    style = _OUTPUTS.get(folder.name)
    return style is not None and any((folder.parent / name).is_file() for name, of in _CONFIGS.items() if of == style)
