"""A folder of documents, or one document, as a source of pages."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypeAlias, TypeVar
from urllib.parse import quote

from bythebook.errors import InputError
from bythebook.pages import Listed, Page, Skipped, Unreadable, readers
from bythebook.pages.addresses import address, is_index, without_number
from bythebook.pages.capped import CappedReader
from bythebook.pages.compose import compose
from bythebook.pages.decoding import decode
from bythebook.pages.generators import USUAL_SLUGS, Slugs, Style, detect
from bythebook.pages.readers import documents
from bythebook.pages.walking import walk

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncIterator, Collection, Iterator

    from bythebook.pages.compose import Draft

T = TypeVar("T")

LARGEST = 20_000_000
"""Bytes beyond which a file is not a page."""
LARGEST_DOCUMENT = 200_000_000
"""The same for a PDF and its like, which are mostly pictures and typefaces."""

_EXPECTED = {
    ".doc": "an old Word file",
    ".odt": "OpenDocument",
    ".mobi": "Kindle",
    ".tex": "LaTeX",
}
_NOT_CONTENT = frozenset(["robots.txt", "requirements.txt", "cmakelists.txt", "llms.txt", "llms-full.txt", "404.html"])


Prepare: TypeAlias = Callable[[str, Path], tuple[str, Slugs]]
"""A text as it is to be read, and how the ids of its headings are made."""


def _unchanged(text: str, _file: Path) -> tuple[str, Slugs]:
    return text, USUAL_SLUGS


class Folder:
    """The documents below a folder, at the addresses their generator publishes them under.

    `site_url` is where the book is published; without it, pages are known by their file's URI. Files and folders to
    `exclude`, named from the root, are no part of the book. `prepare` is handed the text of each file, and its path,
    before it is read.
    """

    def __init__(
        self,
        root: str | Path,
        *,
        site_url: str = "",
        style: Style | None = None,
        exclude: Collection[str] = (),
        prepare: Prepare = _unchanged,
    ) -> None:
        given = Path(root).expanduser()
        if not (given.is_dir() or given.is_file()):
            raise InputError(f"there is no folder or file {str(root)!r}; check the path")
        self._root = given.resolve()
        self._site_url = site_url
        self._style = style or detect(self._root)
        self._exclude = frozenset(map(PurePosixPath, exclude))
        self._documents = CappedReader()
        self._chapters: dict[Listed, list[Listed | Skipped]] = {}
        """What a document of several pages was found to hold, when it looked like this."""
        self._prepare = prepare

    @property
    def name(self) -> str:
        return str(self._root)

    async def listing(self) -> AsyncIterator[Listed | Skipped]:
        for item in await self._in_a_thread(lambda: list(self._listing())):
            yield item

    async def read(self, listed: Listed) -> Page:
        return await self._in_a_thread(lambda: self._read(listed))

    async def _in_a_thread(self, work: Callable[[], T]) -> T:
        """Do this beside the event loop. When it is cancelled, no document keeps the thread waiting."""
        try:
            return await asyncio.to_thread(work)
        except asyncio.CancelledError:
            self._documents.stop()
            raise

    def _listing(self) -> Iterator[Listed | Skipped]:
        paths = walk(self._root, style=self._style) if self._root.is_dir() else iter([PurePosixPath(self._root.name)])
        known: dict[str, str] = {}
        for path in paths:
            if isinstance(path, PurePosixPath) and not self._exclude.isdisjoint((path, *path.parents)):
                continue
            for item in [path] if isinstance(path, Skipped) else self._list_pages(path):
                if isinstance(item, Listed) and known.setdefault(item.url, item.path) != item.path:
                    yield Skipped(item.path, f"{known[item.url]!r} is published at the same address, {item.url}")
                else:
                    yield item

    def _list_pages(self, path: PurePosixPath) -> list[Listed | Skipped]:
        """What is said about one file, which may hold several pages."""
        item = self.entry(path)
        if isinstance(item, Listed) and documents.has_chapters(path):
            if item not in self._chapters:
                self._chapters[item] = self._list_chapters(item, self._file(path))
            return self._chapters[item]
        return [item] if item else []

    def _list_chapters(self, document: Listed, file: Path) -> list[Listed | Skipped]:
        try:
            chapters = self._documents.chapters(file)
        except Unreadable as exc:
            return [Skipped(document.path, str(exc))]
        return [
            Listed(f"{document.url}#{quote(chapter)}", f"{document.path}/{chapter}", document.stamp)
            for chapter in chapters
        ]

    def entry(self, path: PurePosixPath) -> Listed | Skipped | None:
        """What is said about one file; nothing at all for a file no one would take for a page."""
        suffix = path.suffix.lower()
        if suffix not in readers.SUPPORTED | documents.SUPPORTED:
            return self._not_supported(path, suffix)
        if path.name.lower() in _NOT_CONTENT or (self._style is Style.MDBOOK and path.name == "SUMMARY.md"):
            return None
        try:
            stat = self._file(path).stat()
        except OSError as exc:
            return Skipped(str(path), f"it cannot be opened: {exc.strerror}")
        if stat.st_size > _largest(path):
            return Skipped(str(path), _too_large(stat, _largest(path)))
        # The style goes into the anchors of a page: with another one, an unchanged file is another page.
        return Listed(self._url(path), str(path), f"{stat.st_mtime_ns}:{stat.st_size}:{self._style}")

    def _not_supported(self, path: PurePosixPath, suffix: str) -> Skipped | None:
        if suffix in _EXPECTED:
            return Skipped(str(path), f"{_EXPECTED[suffix]} is not supported yet")
        if self._root.is_file():
            return Skipped(str(path), f"files ending in {suffix!r} are not supported; convert it to Markdown or HTML")
        return None

    def _url(self, path: PurePosixPath) -> str:
        if not self._site_url:
            return self._file(path).as_uri()
        slug = name = ""
        if self._style is Style.DOCUSAURUS and path.suffix.lower() in readers.MARKDOWN | readers.MDX:
            slug, name = _said_at_the_top(self._file(path))
        return address(path, site_url=self._site_url, style=self._style, slug=slug, name=name)

    def _file(self, path: PurePosixPath) -> Path:
        return self._root / path if self._root.is_dir() else self._root

    def _read(self, listed: Listed) -> Page:
        path = PurePosixPath(listed.path)
        path, chapter = self._split(path)
        draft, stat = self._draft(path, chapter)
        text, blocks = compose(draft.parts)
        if not blocks:
            raise Unreadable("there is no text in it")
        return Page(
            url=listed.url,
            title=draft.title or self._title(path),
            text=text,
            blocks=blocks,
            module_name=draft.module_name or (humanised(path.parts[0]) if len(path.parts) > 1 else ""),
            chapter_id=str(PurePosixPath(listed.path).with_suffix("")),
            modified_at=_iso(stat.st_mtime),
        )

    def _split(self, path: PurePosixPath) -> tuple[PurePosixPath, str]:
        """The file, and the path of the page inside of it where it holds several."""
        for above in path.parents:
            if documents.has_chapters(above) and self._file(above).is_file():
                return above, str(path.relative_to(above))
        return path, ""

    def _draft(self, path: PurePosixPath, chapter: str) -> tuple[Draft, os.stat_result]:
        file = self._file(path)
        if not file.resolve().is_relative_to(self._root):
            raise Unreadable("it is outside of the folder")
        try:
            stat = file.stat()
            if stat.st_size > _largest(path):
                raise Unreadable(_too_large(stat, _largest(path)))
            if documents.has_chapters(path) and not chapter:
                raise Unreadable("it has no page of its own; its chapters are pages")
            if path.suffix.lower() in documents.SUPPORTED:
                return self._documents.read(file, part=chapter), stat
            text, slugs = self._prepare(decode(file.read_bytes()), file)
            return readers.read(text, suffix=path.suffix, style=self._style, slugs=slugs), stat
        except FileNotFoundError as exc:
            raise Unreadable("it is gone; it was there when the folder was listed") from exc
        except OSError as exc:
            raise Unreadable(f"it cannot be opened: {exc.strerror}") from exc

    def _title(self, path: PurePosixPath) -> str:
        name = path.parent.name if is_index(path) and path.parent.name else path.stem
        return humanised(without_number(name) if self._style is Style.DOCUSAURUS else name)


def humanised(name: str) -> str:
    """A file or folder name as a title: `module-1-ros2` is `Module 1 Ros2`."""
    words = re.split(r"[-_\s]+", name)
    return " ".join(word[:1].upper() + word[1:] for word in words if word)


def _said_at_the_top(file: Path) -> tuple[str, str]:
    """A page's slug and id. Nothing when its front matter cannot be read: reading the page will say why."""
    from bythebook.pages.readers import front_matter

    try:
        with file.open("rb") as stream:
            head = stream.read(8_192).decode("utf-8-sig", "ignore").replace("\r\n", "\n")
        matter, _ = front_matter.split(head)
    except (OSError, Unreadable):
        return "", ""
    return matter.slug, matter.id


def _largest(path: PurePosixPath) -> int:
    return LARGEST_DOCUMENT if path.suffix.lower() in documents.SUPPORTED else LARGEST


def _too_large(stat: os.stat_result, largest: int) -> str:
    return f"it has {stat.st_size / 1e6:.0f} MB; a page has at most {largest // 1_000_000} MB. Split it"


def _iso(timestamp: float) -> str:
    try:
        return datetime.fromtimestamp(timestamp, UTC).isoformat(timespec="seconds")
    except (OverflowError, OSError, ValueError):
        return ""
