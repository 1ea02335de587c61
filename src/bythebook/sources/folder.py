"""A page source for a folder of documents or a single document.

The folder is listed in reading order. Links that leave it or form a cycle are reported.
"""

import asyncio
import codecs
import os
import re
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import TypeAlias, TypeVar
from urllib.parse import quote

from bythebook.errors import InputError
from bythebook.serialization import CONTROL
from bythebook.sources import GeneratedPage, ListedPage, Page, SkippedPage, Unreadable
from bythebook.sources.document import ParsedDocument, compose
from bythebook.sources.projects import DEFAULT_SLUGS, SlugOptions, Style, detect_style, is_build_output
from bythebook.sources.readers import find_format
from bythebook.sources.readers.sandbox import Sandbox
from bythebook.sources.urls import is_index, page_url, strip_number_prefix

T = TypeVar("T")

MAX_TEXT_BYTES = 20_000_000
"""Maximum size of a text file."""
MAX_DOCUMENT_BYTES = 200_000_000
"""Maximum size of a binary document. Most of a PDF is images and fonts."""

_AUTODOC = re.compile(r"^(?:::: [\w.]+|\.\. (?:auto\w+|doxygen\w+)::|```\{auto\w+\})", re.MULTILINE)
"""Directives of mkdocstrings, autodoc and Breathe."""
_BAD_NAME = "its name is not valid UTF-8, or has control characters; rename it"
_UNSUPPORTED = {
    ".doc": "an old Word file",
    ".odt": "OpenDocument",
    ".mobi": "Kindle",
    ".tex": "LaTeX",
}
_NOT_CONTENT = frozenset(["robots.txt", "requirements.txt", "cmakelists.txt", "llms.txt", "llms-full.txt", "404.html"])


Preprocess: TypeAlias = Callable[[str, Path], tuple[str, SlugOptions]]
"""Returns the text of a file as the generator sees it, and the rules for its heading ids."""


def _no_preprocessing(text: str, _file: Path) -> tuple[str, SlugOptions]:
    return text, DEFAULT_SLUGS


class Folder:
    """The documents below a folder, at the URLs at which their generator publishes them.

    `site_url` is the URL of the published book; without it, the URL of a page is the URI of its file. `exclude` are
    paths relative to the root that are not part of the book. `preprocess` is applied to the text of each file before it
    is parsed.
    """

    def __init__(
        self,
        root: str | Path,
        *,
        site_url: str = "",
        style: Style | None = None,
        exclude: Collection[str] = (),
        preprocess: Preprocess = _no_preprocessing,
    ) -> None:
        given = Path(root).expanduser()
        if not (given.is_dir() or given.is_file()):
            raise InputError(f"there is no folder or file {str(root)!r}; check the path")
        self._root = given.resolve()
        self._site_url = site_url
        self._style = style or detect_style(self._root)
        self._exclude = frozenset(map(PurePosixPath, exclude))
        self._sandbox = Sandbox()
        self._chapters: dict[ListedPage, list[ListedPage | SkippedPage]] = {}
        """The pages inside a file, by the entry of the file. A changed file has another entry."""
        self._preprocess = preprocess

    @property
    def name(self) -> str:
        return str(self._root)

    async def listing(self) -> AsyncIterator[ListedPage | SkippedPage]:
        for item in await self._run_in_thread(lambda: list(self._list())):
            yield item

    async def read(self, listed: ListedPage) -> Page:
        return await self._run_in_thread(lambda: self._read(listed))

    async def _run_in_thread(self, work: Callable[[], T]) -> T:
        """Run `work` in a thread. Cancellation stops the sandbox, so that the thread ends at once."""
        try:
            return await asyncio.to_thread(work)
        except asyncio.CancelledError:
            self._sandbox.stop()
            raise

    def _list(self) -> Iterator[ListedPage | SkippedPage]:
        paths = walk(self._root, style=self._style) if self._root.is_dir() else iter([PurePosixPath(self._root.name)])
        known: dict[str, str] = {}
        for path in paths:
            if isinstance(path, SkippedPage):
                yield path
            elif self._exclude.isdisjoint((path, *path.parents)):
                yield from (skip_duplicate(item, known) for item in self._list_pages(path))

    def _list_pages(self, path: PurePosixPath) -> list[ListedPage | SkippedPage]:
        item = self.list_file(path)
        if isinstance(item, ListedPage) and _is_collection(path):
            if item not in self._chapters:
                self._chapters[item] = self._list_chapters(item, self._file(path))
            return self._chapters[item]
        return [item] if item else []

    def _list_chapters(self, document: ListedPage, file: Path) -> list[ListedPage | SkippedPage]:
        try:
            chapters = self._sandbox.list_chapters(file)
        except Unreadable as exc:
            return [SkippedPage(document.path, str(exc))]
        return [
            ListedPage(f"{document.url}#{quote(chapter)}", f"{document.path}/{chapter}", document.stamp)
            if printable_path(PurePosixPath(chapter)) == chapter
            else SkippedPage(f"{document.path}/{printable_path(PurePosixPath(chapter))}", _BAD_NAME)
            for chapter in chapters
        ]

    def list_file(self, path: PurePosixPath) -> ListedPage | SkippedPage | None:
        """The entry of one file, or None for a file that is not a document."""
        if not find_format(path.suffix):
            return self._report_unsupported_file(path, path.suffix.lower())
        if path.name.lower() in _NOT_CONTENT or (self._style is Style.MDBOOK and path.name == "SUMMARY.md"):
            return None
        try:
            stat = self._file(path).stat()
        except OSError as exc:
            return SkippedPage(str(path), f"it cannot be opened: {exc.strerror}")
        if stat.st_size > _max_bytes(path):
            return SkippedPage(str(path), _size_error(stat, _max_bytes(path)))
        # The style determines the anchors of a page. With another style, an unchanged file is a changed page.
        return ListedPage(self._url(path), str(path), f"{stat.st_mtime_ns}:{stat.st_size}:{self._style}")

    def _report_unsupported_file(self, path: PurePosixPath, suffix: str) -> SkippedPage | None:
        if suffix in _UNSUPPORTED:
            return SkippedPage(str(path), f"{_UNSUPPORTED[suffix]} is not supported yet")
        if self._root.is_file():
            return SkippedPage(
                str(path), f"files ending in {suffix!r} are not supported; convert it to Markdown or HTML"
            )
        return None

    def _url(self, path: PurePosixPath) -> str:
        if not self._site_url:
            return self._file(path).as_uri()
        slug = name = ""
        document_format = find_format(path.suffix)
        if self._style is Style.DOCUSAURUS and document_format and document_format.has_front_matter:
            slug, name = _read_slug_and_id(self._file(path))
        return page_url(path, site_url=self._site_url, style=self._style, slug=slug, name=name)

    def _file(self, path: PurePosixPath) -> Path:
        return self._root / path if self._root.is_dir() else self._root

    def _read(self, listed: ListedPage) -> Page:
        path, chapter = self._split(PurePosixPath(listed.path))
        document, stat = self._parse(path, chapter)
        text, blocks = compose(document.parts)
        if not blocks:
            if _AUTODOC.search(self._file(path).read_text(encoding="utf-8", errors="replace")):
                raise GeneratedPage("its text is generated from code; ingest the built site to have it")
            raise Unreadable("there is no text in it")
        return Page(
            url=listed.url,
            title=" ".join((document.title or self._title(path)).split()),
            text=text,
            blocks=blocks,
            module_name=document.module_name or module_from_path(path),
            chapter_id=str(PurePosixPath(listed.path).with_suffix("")),
            modified_at=_format_time(stat.st_mtime),
        )

    def _split(self, path: PurePosixPath) -> tuple[PurePosixPath, str]:
        """The path of the file, and the path of the page inside it if the file holds several."""
        for parent in path.parents:
            if _is_collection(parent) and self._file(parent).is_file():
                return parent, str(path.relative_to(parent))
        return path, ""

    def _parse(self, path: PurePosixPath, chapter: str) -> tuple[ParsedDocument, os.stat_result]:
        file = self._file(path)
        if not file.resolve().is_relative_to(self._root):
            raise Unreadable("it is outside of the folder")
        try:
            stat = file.stat()
            if stat.st_size > _max_bytes(path):
                raise Unreadable(_size_error(stat, _max_bytes(path)))
            if _is_collection(path) and not chapter:
                raise Unreadable("it has no page of its own; its chapters are pages")
            if _is_binary(path):
                return self._sandbox.read_file(file, part=chapter), stat
            return self._parse_text(file, path.suffix), stat
        except FileNotFoundError as exc:
            raise Unreadable("it is gone; it was there when the folder was listed") from exc
        except OSError as exc:
            raise Unreadable(f"it cannot be opened: {exc.strerror}") from exc

    def _parse_text(self, file: Path, suffix: str) -> ParsedDocument:
        text, slugs = self._preprocess(decode_text(file.read_bytes()), file)
        return self._sandbox.read_text(text, suffix=suffix, style=self._style, slugs=slugs)

    def _title(self, path: PurePosixPath) -> str:
        name = path.parent.name if is_index(path) and path.parent.name else path.stem
        return title_from_name(strip_number_prefix(name) if self._style is Style.DOCUSAURUS else name)


def skip_duplicate(item: T, known: dict[str, str]) -> T | SkippedPage:
    """The item, or the report of a page whose URL another path has taken. `known`: the paths by their URLs."""
    if isinstance(item, ListedPage) and known.setdefault(item.url, item.path) != item.path:
        return SkippedPage(item.path, f"{known[item.url]!r} is published at the same address, {item.url}")
    return item


def module_from_path(path: PurePosixPath) -> str:
    """The module of a page outside of any navigation: the title of its outermost folder. Empty outside of folders."""
    return title_from_name(path.parts[0]) if len(path.parts) > 1 else ""


def title_from_name(name: str) -> str:
    """A title for a file or folder: `module-1-ros2` becomes `Module 1 Ros2`."""
    words = re.split(r"[-_\s]+", name)
    return " ".join(word[:1].upper() + word[1:] for word in words if word)


def _read_slug_and_id(file: Path) -> tuple[str, str]:
    """The slug and id in the front matter of a page. Empty if it is invalid: reading the page reports the error."""
    from bythebook.sources.readers import front_matter

    try:
        with file.open("rb") as stream:
            head = stream.read(8_192).decode("utf-8-sig", "ignore").replace("\r\n", "\n")
        matter, _ = front_matter.parse_front_matter(head)
    except (OSError, Unreadable):
        return "", ""
    return matter.slug, matter.id


def _is_binary(path: PurePosixPath) -> bool:
    document_format = find_format(path.suffix)
    return document_format is not None and document_format.is_binary


def _is_collection(path: PurePosixPath) -> bool:
    document_format = find_format(path.suffix)
    return document_format is not None and document_format.is_collection


def _max_bytes(path: PurePosixPath) -> int:
    return MAX_DOCUMENT_BYTES if _is_binary(path) else MAX_TEXT_BYTES


def _size_error(stat: os.stat_result, largest: int) -> str:
    return f"it has {stat.st_size / 1e6:.0f} MB; a page has at most {largest // 1_000_000} MB. Split it"


def _format_time(timestamp: float) -> str:
    try:
        return datetime.fromtimestamp(timestamp, UTC).isoformat(timespec="seconds")
    except (OverflowError, OSError, ValueError):
        return ""


_PACKAGE_FOLDERS = frozenset(["node_modules", "__pycache__", "bower_components", "site-packages", "venv"])
_MAX_DEPTH = 100
_SPHINX_FOLDERS = frozenset(["_static", "_templates", "_build", "_themes", "_ext"])


def walk(root: Path, *, style: Style) -> Iterator[PurePosixPath | SkippedPage]:
    """The path of every regular file below `root`, index files first, then by name with numbers in numeric order.

    Hidden folders, installed packages and generator output are ignored without a report. Links that form a cycle
    or leave the folder, and folders that cannot be opened, are reported.
    """
    yield from _walk(root, PurePosixPath(), style=style, ancestors=(root.resolve(),))


def _walk(
    folder: Path, relative: PurePosixPath, *, style: Style, ancestors: tuple[Path, ...]
) -> Iterator[PurePosixPath | SkippedPage]:
    try:
        entries = sorted(os.scandir(folder), key=_sort_key)
    except OSError as exc:
        yield SkippedPage(printable_path(relative), f"the folder cannot be opened: {exc.strerror}")
        return
    for entry in entries:
        path = relative / entry.name
        if _is_ignored(entry, style):
            continue
        if printable_path(path) != str(path):
            yield SkippedPage(printable_path(path), _BAD_NAME)
            continue
        yield from _walk_entry(entry, path, style=style, ancestors=ancestors)


def _walk_entry(
    entry: os.DirEntry[str], path: PurePosixPath, *, style: Style, ancestors: tuple[Path, ...]
) -> Iterator[PurePosixPath | SkippedPage]:
    if entry.is_symlink():
        problem = _find_link_problem(Path(entry.path), ancestors)
        if problem:
            yield SkippedPage(str(path), problem)
            return
    if entry.is_dir() and len(ancestors) > _MAX_DEPTH:
        yield SkippedPage(str(path), f"it is more than {_MAX_DEPTH} folders deep")
    elif entry.is_dir():
        real = Path(entry.path).resolve() if entry.is_symlink() else ancestors[-1] / entry.name
        yield from _walk(Path(entry.path), path, style=style, ancestors=(*ancestors, real))
    elif entry.is_file():
        yield path


def _find_link_problem(link: Path, ancestors: tuple[Path, ...]) -> str:
    try:
        target = link.resolve(strict=True)
    except (OSError, RuntimeError):
        return "it is a link to something that does not exist"
    if target in ancestors:
        return "it is a link to a folder it is in"
    if not target.is_relative_to(ancestors[0]):
        return "it is a link that leaves the folder"
    return ""


def _is_ignored(entry: os.DirEntry[str], style: Style) -> bool:
    name = entry.name
    if name.startswith(".") or (style is Style.DOCUSAURUS and name.startswith("_")):
        return True
    # `entry.is_dir()` raises an error for a link to itself; `Path.is_dir()` returns False.
    if not Path(entry.path).is_dir():
        return False
    return (
        name in _PACKAGE_FOLDERS
        or (style is Style.SPHINX and name in _SPHINX_FOLDERS)
        or is_build_output(Path(entry.path))
    )


def _sort_key(entry: os.DirEntry[str]) -> tuple[bool, list[tuple[str, int]], str]:
    """Index files first, then by name, with `2` before `10`."""
    pieces = re.split(r"([0-9]+)", entry.name.casefold())
    key = [("", int(piece)) if piece.isascii() and piece.isdigit() else (piece, 0) for piece in pieces if piece]
    return not is_index(PurePosixPath(entry.name)), key, entry.name


def printable_path(path: PurePosixPath) -> str:
    """A path that can be printed, with invalid bytes and control characters escaped."""
    text = str(path).encode("utf-8", "backslashreplace").decode("utf-8")
    return re.sub(rf"[\n\t]|{CONTROL.pattern}", lambda found: repr(found[0])[1:-1], text)


_BYTE_ORDER_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


def decode_text(data: bytes) -> str:
    """Decode a file as UTF-8, or by its byte order mark. Raises Unreadable if that fails."""
    encoding = next((name for mark, name in _BYTE_ORDER_MARKS if data.startswith(mark)), "utf-8")
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
