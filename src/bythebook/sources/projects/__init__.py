"""Projects of documentation generators: which generator publishes the book, and what it does with each document.

Configurations are parsed, never executed: no JavaScript, no Python and no YAML tag is run.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Literal

from bythebook.sources import SkippedPage


class Style(StrEnum):
    """The generator that publishes the book. It determines the ids of headings and the form of URLs."""

    DOCUSAURUS = "docusaurus"
    MKDOCS = "mkdocs"
    SPHINX = "sphinx"
    MDBOOK = "mdbook"
    PLAIN = "plain"


class NonContent(StrEnum):
    """Categories of documents that are not part of the book, by the value of `--include` that adds them."""

    BLOG = "blog"
    PAGES = "pages"
    STARTER = "starter"
    CHANGELOG = "changelog"
    UNLISTED = "unlisted"
    REPOSITORY = "repository"


@dataclass(frozen=True, slots=True)
class ProjectOptions:
    """Which version, language and additional documents of a project to read."""

    include: frozenset[NonContent] = frozenset()
    version: str = ""
    """Empty: the version the site shows by default."""
    locale: str = ""
    """Empty: the default locale of the site."""
    builder: Literal["auto", "html", "dirhtml"] = "auto"
    """The Sphinx builder. `auto` reads it from the Read the Docs configuration."""


DEFAULT_OPTIONS = ProjectOptions()


@dataclass(frozen=True, slots=True)
class SlugOptions:
    """How the ids of headings are made from their texts."""

    rule: Literal["ascii", "unicode", "pymdownx"] = "ascii"
    lower: bool = True
    separator: str = "-"


DEFAULT_SLUGS = SlugOptions()


@dataclass(frozen=True, slots=True)
class ProjectPage:
    """A document of a project, and where its generator publishes it."""

    file: Path
    route: str
    """The path below the URL of the site, with a leading slash. Empty for a file that is not published."""
    chapter: str
    """The generator's own name for the document."""
    module: str = ""
    title: str = ""
    """The title in the navigation, if it takes precedence over the document's own."""
    category: NonContent | None = None
    reason: str = ""
    """Why it is not part of the book; empty if it is."""


@dataclass(frozen=True, slots=True)
class Outline:
    """A project as its generator publishes it: its documents in the order of the navigation."""

    site_url: str
    """Where the site is published according to the configuration; empty if it does not say."""
    base_path: str
    """The path of the site on its host, with a slash at both ends."""
    pages: tuple[ProjectPage, ...]
    skipped: tuple[SkippedPage, ...] = ()
    slugs: SlugOptions = DEFAULT_SLUGS
    prepare: Callable[[str, Path], str] = field(default=lambda text, _file: text, compare=False)
    """Returns the text of a file with its includes expanded."""
    included_files: Callable[[Path], tuple[Path, ...]] = field(default=lambda _file: (), compare=False)
    """Lists the files that a file includes."""
    definitions: str = ""
    """Text from the configuration that every page depends on."""


_CONFIGS = {
    "docusaurus.config.js": Style.DOCUSAURUS,
    "docusaurus.config.ts": Style.DOCUSAURUS,
    "docusaurus.config.mjs": Style.DOCUSAURUS,
    "mkdocs.yml": Style.MKDOCS,
    "mkdocs.yaml": Style.MKDOCS,
    "book.toml": Style.MDBOOK,
    "conf.py": Style.SPHINX,
}

_MAX_CONFIG_CHARACTERS = 50_000

_MARKER_FILES = {
    "_category_.json": Style.DOCUSAURUS,
    "_category_.yml": Style.DOCUSAURUS,
    "*/_category_.json": Style.DOCUSAURUS,
    "*/_category_.yml": Style.DOCUSAURUS,
    "SUMMARY.md": Style.MDBOOK,
}

_BUILD_FOLDERS = {
    "build": Style.DOCUSAURUS,
    "site": Style.MKDOCS,
    "book": Style.MDBOOK,
    "_build": Style.SPHINX,
}


def detect_style(root: Path) -> Style:
    """The generator of the book in `root`: by a configuration there or up to two folders above, else by its files."""
    folder = root if root.is_dir() else root.parent
    for candidate in (folder, *list(folder.parents)[:2]):
        for name, style in _CONFIGS.items():
            if (candidate / name).is_file():
                return style
    for pattern, style in _MARKER_FILES.items():
        if any(folder.glob(pattern)):
            return style
    return Style.PLAIN


def find_configuration(root: Path) -> tuple[Style, Path] | None:
    """The generator and the configuration of the project in `root`. None if the folder is not a project.

    A `conf.py` belongs to Sphinx if it sets a name that only Sphinx uses. It is in the folder, or where repositories
    usually keep it: in `source`, `docs`, `doc`, or `docs/source`.
    """
    if not root.is_dir():
        return None
    for name, style in _CONFIGS.items():
        if style in (Style.DOCUSAURUS, Style.MKDOCS) and (root / name).is_file():
            return style, root / name
    for file in (root / folder / "conf.py" for folder in _SPHINX_FOLDERS):
        if file.is_file() and _is_sphinx_config(file):
            return Style.SPHINX, file
    return None


_TITLE = re.compile(r"^(?:site_name|project|title)\s*[:=]\s*[\"'`]?([^\"'`\n#,]{2,80})", re.MULTILINE)
_INDENTED_TITLE = re.compile(r"^\s*title\s*[:=]\s*[\"'`]([^\"'`\n]{2,80})[\"'`]", re.MULTILINE)


def find_book_name(roots: Iterable[str]) -> str:
    """The name of the book in the configuration of its generator, in one of these folders or in their folder `docs`."""
    for root in roots:
        folders = (Path(root), Path(root) / "docs", Path(root) / "doc") if Path(root).is_dir() else ()
        for file in (folder / name for folder in folders for name in _CONFIGS):
            if file.is_file():
                text = file.read_text(encoding="utf-8", errors="replace")[:_MAX_CONFIG_CHARACTERS]
                if match := _TITLE.search(text) or _INDENTED_TITLE.search(text):
                    return match[1].strip()
    return ""


_SPHINX_FOLDERS = ("", "source", "docs", "doc", "docs/source", "doc/source")
_SPHINX_NAMES = ("extensions", "master_doc", "root_doc", "html_theme", "source_suffix", "exclude_patterns")


def _is_sphinx_config(file: Path) -> bool:
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    lines = {line.partition("=")[0].partition(":")[0].strip() for line in text.splitlines() if "=" in line}
    return any(name in lines for name in _SPHINX_NAMES)


def is_build_output(folder: Path) -> bool:
    """Whether `folder` is the build output of a generator, which only repeats the book."""
    style = _BUILD_FOLDERS.get(folder.name)
    return style is not None and any((folder.parent / name).is_file() for name, of in _CONFIGS.items() if of == style)
