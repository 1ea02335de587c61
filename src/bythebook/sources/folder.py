"""A folder of documents, or one document, as a source of pages.

Walking: the files of a folder in reading order, without leaving it or going in circles.

Decoding: from a file's bytes to its text, or a reason why it has none.
"""

from __future__ import annotations

import asyncio
import codecs
import os
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypeAlias, TypeVar
from urllib.parse import quote

from bythebook.errors import InputError
from bythebook.sources import Listed, Page, Skipped, Unreadable, readers
from bythebook.sources.document import compose
from bythebook.sources.projects import USUAL_SLUGS, Slugs, Style, detect, is_output
from bythebook.sources.readers import sandbox
from bythebook.sources.readers.sandbox import CappedReader
from bythebook.sources.urls import address, is_index, without_number

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Iterator

    from bythebook.sources.document import Draft


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
        if isinstance(item, Listed) and sandbox.has_chapters(path):
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
        if suffix not in readers.SUPPORTED | sandbox.SUPPORTED:
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
            if sandbox.has_chapters(above) and self._file(above).is_file():
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
            if sandbox.has_chapters(path) and not chapter:
                raise Unreadable("it has no page of its own; its chapters are pages")
            if path.suffix.lower() in sandbox.SUPPORTED:
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
    from bythebook.sources.readers import front_matter

    try:
        with file.open("rb") as stream:
            head = stream.read(8_192).decode("utf-8-sig", "ignore").replace("\r\n", "\n")
        matter, _ = front_matter.split(head)
    except (OSError, Unreadable):
        return "", ""
    return matter.slug, matter.id


def _largest(path: PurePosixPath) -> int:
    return LARGEST_DOCUMENT if path.suffix.lower() in sandbox.SUPPORTED else LARGEST


def _too_large(stat: os.stat_result, largest: int) -> str:
    return f"it has {stat.st_size / 1e6:.0f} MB; a page has at most {largest // 1_000_000} MB. Split it"


def _iso(timestamp: float) -> str:
    try:
        return datetime.fromtimestamp(timestamp, UTC).isoformat(timespec="seconds")
    except (OverflowError, OSError, ValueError):
        return ""


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


_MARKED = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


def decode(data: bytes) -> str:
    """The text of a file: UTF-8, or what its byte-order mark says. Raises Unreadable for anything else."""
    encoding = next((name for mark, name in _MARKED if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as exc:
        raise Unreadable(
            f"it is not {encoding.upper().removesuffix('-SIG')}: byte {exc.start} cannot be decoded. Save it as UTF-8"
        ) from exc
    if "\x00" in text:
        raise Unreadable(f"it is not text: character {text.index(chr(0))} is a NUL. Remove it or save it as UTF-8 text")
    if not text.strip():
        raise Unreadable("it is empty")
    return text.replace("\r\n", "\n").replace("\r", "\n")
