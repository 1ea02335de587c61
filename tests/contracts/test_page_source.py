"""The contract of every page source."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from bythebook.sources import BlockKind, ListedPage, Page, PageSource, Unreadable
from bythebook.sources.folder import Folder
from bythebook.sources.projects.project import Project
from tests.support.site_server import SiteServer, page, serving, site_of

TEXTS = {"index": ("Lamps", "They glow."), "b": ("Oil", "It burns."), "a": ("Wicks", "They are trimmed.")}


@dataclass
class Shown:
    """A source, and functions that change its content."""

    open: Callable[[], PageSource]
    """Open the source as a later run does."""
    write: Callable[[str, str, str], None]
    """Set the title and text of a page."""
    remove: Callable[[str], None]
    spoil: Callable[[str], object]
    """Make a page unreadable."""


@asynccontextmanager
async def folder(place: Path) -> AsyncIterator[Shown]:
    root = place / "book"
    root.mkdir()

    def write(name: str, title: str, text: str) -> None:
        (root / f"{name}.md").write_text(f"# {title}\n\n{text}\n", encoding="utf-8")

    def spoil(name: str) -> None:
        (root / f"{name}.md").write_bytes(b"\xff\x00")

    yield Shown(
        lambda: Folder(root, site_url="https://book.example"),
        write,
        lambda name: (root / f"{name}.md").unlink(),
        spoil,
    )
    shutil.rmtree(root)


@asynccontextmanager
async def project(place: Path, *, config: str, content: str, docs: str, suffix: str = ".md") -> AsyncIterator[Shown]:
    root = place / "project"
    (root / docs).mkdir(parents=True)
    (root / config).write_text(content, encoding="utf-8")

    def file(name: str) -> Path:
        return root / docs / f"{name}{suffix}"

    def write(name: str, title: str, text: str) -> None:
        heading = f"# {title}" if suffix == ".md" else f"{title}\n====="
        file(name).write_text(f"{heading}\n\n{text}\n", encoding="utf-8")

    yield Shown(
        lambda: Project(root, site_url="https://book.example/"),
        write,
        lambda name: file(name).unlink(),
        lambda name: file(name).write_bytes(b"\xff\x00"),
    )


def docusaurus(place: Path) -> AbstractAsyncContextManager[Shown]:
    return project(place, config="docusaurus.config.js", content="module.exports = {};", docs="docs")


def mkdocs(place: Path) -> AbstractAsyncContextManager[Shown]:
    return project(place, config="mkdocs.yml", content="site_name: Book", docs="docs")


def sphinx(place: Path) -> AbstractAsyncContextManager[Shown]:
    return project(place, config="conf.py", content="extensions = []", docs=".", suffix=".rst")


@asynccontextmanager
async def site(place: Path) -> AsyncIterator[Shown]:
    opened = []
    async with serving(SiteServer()) as server:

        def open_site() -> PageSource:
            source = site_of(server, place / "site.db")
            opened.append(source)
            return source

        def path(name: str) -> str:
            return "/" if name == "index" else f"/{name}"

        def write(name: str, title: str, text: str) -> None:
            server.shown[path(name)] = page(title, text)
            listed = [shown for shown in server.shown if "." not in shown]
            server.sitemap(*listed)

        def remove(name: str) -> None:
            del server.shown[path(name)]
            server.sitemap(*(shown for shown in server.shown if "." not in shown))

        def spoil(name: str) -> None:
            server.shown[path(name)] = "<div>" * 5000

        yield Shown(open_site, write, remove, spoil)
        for source in opened:
            source.close()


ADAPTERS: list[Callable[[Path], AbstractAsyncContextManager[Shown]]] = [folder, site, docusaurus, mkdocs, sphinx]


@pytest.fixture(params=ADAPTERS, ids=lambda adapter: adapter.__name__)
async def shown(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Shown]:
    async with request.param(tmp_path) as made:
        for name, (title, text) in TEXTS.items():
            made.write(name, title, text)
        yield made


async def listed(source: PageSource) -> list[ListedPage]:
    return [entry async for entry in source.listing() if isinstance(entry, ListedPage)]


async def pages(source: PageSource) -> list[Page]:
    return [await source.read(entry) for entry in await listed(source)]


def last(url: str) -> str:
    """The last segment of a page's URL, in any URL style."""
    return url.rstrip("/").rpartition("/")[2].removesuffix(".html")


async def test_every_page_is_listed_once_and_always_in_the_same_order(shown: Shown) -> None:
    first, second = await listed(shown.open()), await listed(shown.open())
    assert first == second
    assert len({entry.url for entry in first}) == len(first) == 3


async def test_a_page_has_the_url_it_is_listed_with(shown: Shown) -> None:
    source = shown.open()
    for entry in await listed(source):
        assert (await source.read(entry)).url == entry.url


async def test_a_page_contains_the_visible_text(shown: Shown) -> None:
    found = {read.title: read for read in await pages(shown.open())}
    assert {title: read.text for title, read in found.items()} == {
        title: f"{title}\n\n{text}" for title, text in TEXTS.values()
    }
    for read in found.values():
        kinds = [(block.kind, read.text[block.start : block.end]) for block in read.blocks]
        assert kinds == [(BlockKind.HEADING, read.title), (BlockKind.PARAGRAPH, read.text.partition("\n\n")[2])]


async def test_reading_is_repeatable(shown: Shown) -> None:
    source = shown.open()
    for entry in await listed(source):
        assert await source.read(entry) == await source.read(entry)


async def test_the_stamp_changes_only_with_the_page(shown: Shown) -> None:
    before = {entry.url: entry.stamp for entry in await listed(shown.open())}
    assert all(before.values())
    shown.write("b", "Oil", "It burns slowly, and it smells of fish.")
    after = {entry.url: entry.stamp for entry in await listed(shown.open())}
    assert [url for url in before if before[url] != after[url]] == [url for url in before if last(url) == "b"]


async def test_added_and_removed_pages_are_listed(shown: Shown) -> None:
    before = {entry.url for entry in await listed(shown.open())}
    shown.remove("b")
    shown.write("c", "Fog", "It hides the light.")
    after = {entry.url for entry in await listed(shown.open())}
    assert {last(url) for url in before ^ after} == {"b", "c"}


async def test_unreadable_pages_are_reported_and_the_rest_is_read(shown: Shown) -> None:
    shown.spoil("b")
    source = shown.open()
    reasons, titles = [], []
    async for entry in source.listing():
        if not isinstance(entry, ListedPage):
            reasons.append(entry.reason)
            continue
        try:
            titles.append((await source.read(entry)).title)
        except Unreadable as exc:
            reasons.append(str(exc))
    assert (sorted(titles), len(reasons), all(reasons)) == (["Lamps", "Wicks"], 1, True)


async def test_the_source_name_is_stable(shown: Shown) -> None:
    assert shown.open().name == shown.open().name != ""
