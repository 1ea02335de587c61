"""MkDocs: its navigation, its addresses, and the pages it makes of a folder of Markdown."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from bythebook.errors import ConfigurationError
from bythebook.pages import Skipped
from bythebook.pages.anchors import configured_slug
from bythebook.pages.generators import Aside, Outline, Place, Slugs, Style, besides, mkdocs_parts
from bythebook.pages.generators.glances import Glance, Glances, heading_of_markdown
from bythebook.pages.generators.mkdocs_config import Config, read
from bythebook.pages.generators.navigation import Allowance, Arranged, Entry, Section, arranged, entries
from bythebook.pages.generators.patterns import ignored
from bythebook.pages.walking import walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bythebook.pages.generators import Wish
    from bythebook.pages.generators.navigation import Item

_WRITTEN = frozenset([".md", ".markdown", ".mdown", ".mkdn", ".mkd"])
_USUALLY_IGNORED = (".*", "/templates/")
_DEEPEST = 30
_POST_SLUGS = Slugs("pymdownx")


def look(fields: dict[str, Any], text: str, file: Path) -> Glance:
    title = fields.get("title")
    return Glance(
        fields,
        title if isinstance(title, str) else heading_of_markdown(text),
        mkdocs_parts.references(text),
        ("sample",) if besides.is_sample(file, text) else (),
    )


def outline(root: Path, config: Path, *, within: Path, wish: Wish, glances: Glances) -> Outline:
    """What a MkDocs project publishes, in the order of its navigation."""
    del wish  # A MkDocs project is one book; what is included is decided by whoever lists it.
    said = read(config)
    folder = (root / said.docs_dir).resolve()
    if not folder.is_dir() or not folder.is_relative_to(within):
        raise ConfigurationError(
            f"{config.name} says the pages are in {said.docs_dir!r}: there is no such folder here."
        )
    skipped: list[Skipped] = []
    docs = _Docs(folder, said, glances, tuple(_files(folder, said, skipped)))
    places = docs.places()
    places.extend(besides.of_the_repository(root, published={place.file.resolve() for place in places}))
    inclusion = mkdocs_parts.inclusion(root, folder, said, within=within, glances=glances)
    return Outline(
        said.site_url,
        "/",
        tuple(places),
        skipped=tuple(skipped),
        slugs=said.slugs,
        prepare=lambda text, file: mkdocs_parts.without_annotation_marks(inclusion.prepare(text, file)),
        parts=inclusion.parts,
    )


def _files(folder: Path, said: Config, skipped: list[Skipped]) -> Iterator[PurePosixPath]:
    """The Markdown files, a folder's own before those of the folders in it, an index before the others."""
    found: list[PurePosixPath] = []
    for path in walk(folder, style=Style.MKDOCS):
        if isinstance(path, Skipped):
            skipped.append(path)
        elif path.suffix.lower() in _WRITTEN and not ignored(str(path), (*_USUALLY_IGNORED, *said.excluded)):
            found.append(path)
    yield from sorted(found, key=lambda path: (_folders(path), path.stem not in ("index", "README"), path.name))


def _folders(path: PurePosixPath) -> tuple[str, ...]:
    return path.parent.parts


@dataclass(frozen=True, slots=True)
class _Docs:
    folder: Path
    config: Config
    glances: Glances
    files: tuple[PurePosixPath, ...]
    _allowance: Allowance = field(default_factory=Allowance)

    def places(self) -> list[Place]:
        nav = self.config.nav
        items = list(self._items(nav, 0)) if nav is not None else self._folder(())
        order = arranged(items)
        known = {str(path): path for path in self.files}
        listed = [at for at in order.values() if at.document in known]
        inside = {at.document for at in listed}
        rest = [Arranged(str(path), "", _title_of_folder(path)) for path in self.files if str(path) not in inside]
        return [self._place(known[at.document], at) for at in (*listed, *rest)]

    def _place(self, path: PurePosixPath, at: Arranged) -> Place:
        file = self.folder / path
        glance = self.glances.of(file)
        route = self._route(path)
        chapter = str(path.with_suffix(""))
        if aside := self._aside(path, glance):
            if aside[0] is Aside.BLOG:
                route = self._post(path, glance) or route
            return Place(file, route, chapter, module=at.module, title=at.title, aside=aside[0], reason=aside[1])
        return Place(file, route, chapter, module=at.module, title=at.title)

    def _aside(self, path: PurePosixPath, glance: Glance) -> tuple[Aside | None, str] | None:
        if ignored(str(path), self.config.drafts) or self._is_draft(path, glance):
            return None, "a draft, which is not published"
        if self.config.blog is not None and path.is_relative_to(self.config.blog.folder):
            return Aside.BLOG, "a blog post" if path.stem != "index" else "the first page of the blog"
        if "sample" in glance.contents:
            return Aside.STARTER, "a sample page that comes with MkDocs"
        if besides.is_changelog(path.stem):
            return Aside.CHANGELOG, "a list of changes"
        return None

    def _is_draft(self, path: PurePosixPath, glance: Glance) -> bool:
        blog = self.config.blog
        return blog is not None and path.is_relative_to(blog.folder) and glance.fields.get("draft") is True

    def _post(self, path: PurePosixPath, glance: Glance) -> str:
        """The address of a post of Material's blog; empty for a page that is none."""
        blog, date = self.config.blog, glance.fields.get("date")
        date = date.get("created") if isinstance(date, dict) else date
        if blog is None or not isinstance(date, datetime.date) or not path.is_relative_to(f"{blog.folder}/posts"):
            return ""
        slug = glance.word("slug") or configured_slug(glance.title or path.stem, slugs=_POST_SLUGS)
        filled = blog.post_url.replace("{slug}", slug).replace("{file}", path.stem)
        address = filled.replace("{date}", f"{date:%Y/%m/%d}").strip("/")
        return self._shape(PurePosixPath(blog.folder, address), index=False)

    def _route(self, path: PurePosixPath) -> str:
        index = path.stem in ("index", "README")
        return self._shape(path.parent if index else path.with_suffix(""), index=index)

    def _shape(self, path: PurePosixPath, *, index: bool) -> str:
        if self.config.directory_urls:
            return f"/{path}/".replace("/./", "/")
        return f"/{path / 'index.html' if index else f'{path}.html'}".replace("/./", "/")

    def _items(self, nav: Iterable[Any], depth: int) -> Iterator[Item]:
        for item in nav if depth < _DEEPEST else ():
            if not self._allowance.take():
                return
            if isinstance(item, str):
                yield Entry(_document(item))
            elif isinstance(item, dict):
                for title, inner in item.items():
                    yield from self._named(str(title or ""), inner, depth)

    def _named(self, title: str, inner: Any, depth: int) -> Iterator[Item]:
        if isinstance(inner, str):
            yield Entry(_document(inner), title)
        elif isinstance(inner, list):
            items = tuple(self._items(inner, depth + 1))
            yield Section(title or self._first_title(items), items)

    def _first_title(self, items: tuple[Item, ...]) -> str:
        """What the first document of a section without a name calls itself."""
        first = next((entry for item in items for entry in entries(item)), None)
        return first.title or self.glances.of(self.folder / first.document).title if first else ""

    def _folder(self, folder: tuple[str, ...]) -> list[Item]:
        """The navigation where none is configured: a folder's documents, then the folders in it."""
        inside = [path for path in self.files if _folders(path)[: len(folder)] == folder]
        here: list[Item] = [Entry(str(path)) for path in inside if _folders(path) == folder]
        below = dict.fromkeys(_folders(path)[len(folder)] for path in inside if _folders(path) != folder)
        return [*here, *(Section(_title(name), tuple(self._folder((*folder, name)))) for name in below)]


def _document(path: str) -> str:
    return str(PurePosixPath(path.strip().removeprefix("./").lstrip("/")))


def _title_of_folder(path: PurePosixPath) -> str:
    return _title(path.parts[0]) if len(path.parts) > 1 else ""


def _title(name: str) -> str:
    title = re.sub(r"[-_]", " ", name)
    return title.capitalize() if title.lower() == title else title
