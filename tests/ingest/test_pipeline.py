"""An ingest processes only changes, and its result equals that of a rebuild."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bythebook.chunking.splitter import ChunkSizes
from bythebook.errors import ConfigurationError, InputError
from bythebook.sources import ListedPage, Page, SkippedPage
from bythebook.sources.folder import Folder
from bythebook.sources.projects import Style
from tests.support.index_contents import contents
from tests.support.markdown_strategies import page_of
from tests.support.word_embedder import WordBook, WordEmbedder

if TYPE_CHECKING:
    from bythebook.ingest import IngestReport

Edit = Callable[[Path], None]


@pytest.fixture
def book(tmp_path: Path) -> WordBook:
    return WordBook(tmp_path / "index")


async def assert_as_if_made_anew(book: WordBook, *sources: Path) -> None:
    clean = WordBook(book.folder.with_name("clean"), book.sizes)
    shutil.rmtree(clean.folder, ignore_errors=True)
    await clean.ingest(*sources)
    mine, its = [await contents(folder, book.embedder.identity) for folder in (book.folder, clean.folder)]
    assert mine == its


def did(report: IngestReport) -> tuple[int, int, int, int]:
    return (report.added, report.changed, report.removed, report.unchanged)


def replaced(name: str, old: str, new: str) -> Edit:
    def edit(pages: Path) -> None:
        text = (pages / name).read_text()
        assert old in text
        (pages / name).write_text(text.replace(old, new))

    return edit


def touched(pages: Path) -> None:
    os.utime(pages / "index.md", (1, 1))


def added(pages: Path) -> None:
    (pages / "new.md").write_text("# New\n\nSomething new.\n\n## More\n\nAnd something more.\n")


def deleted(pages: Path) -> None:
    (pages / "signals" / "fog.md").unlink()


def renamed(pages: Path) -> None:
    (pages / "signals" / "fog.md").rename(pages / "signals" / "mist.md")


def moved(pages: Path) -> None:
    (pages / "signals" / "fog.md").rename(pages / "keeping" / "fog.md")


def reordered(pages: Path) -> None:
    page = pages / "keeping" / "lamp.md"
    title, *sections = page.read_text().split("\n## ")
    page.write_text("\n## ".join([title.rstrip() + "\n", *(section.rstrip() + "\n" for section in sections[::-1])]))


def falsify(pages: Path) -> None:
    """Replace the content but keep size and modification time, so that only reading shows the change."""
    for path in pages.rglob("*.*"):
        stat = path.stat()
        path.write_bytes(b"#" + b"x" * (stat.st_size - 1))
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def all_at_once(pages: Path) -> None:
    added(pages)
    moved(pages)
    reordered(pages)
    (pages / "keeping" / "log.md").unlink()
    touched(pages)


@pytest.mark.parametrize(
    ("edit", "expected", "embedded"),
    [
        pytest.param(touched, (0, 0, 0, 5), 0, id="a page was touched"),
        pytest.param(added, (1, 0, 0, 5), 2, id="a page is new"),
        pytest.param(deleted, (0, 0, 1, 4), 0, id="a page is gone"),
        pytest.param(renamed, (1, 0, 1, 4), 0, id="a page has another name"),
        pytest.param(moved, (1, 0, 1, 4), 0, id="a page is in another folder"),
        pytest.param(reordered, (0, 1, 0, 4), 0, id="sections are in another order"),
        pytest.param(replaced("signals/fog.md", "ninety", "sixty"), (0, 1, 0, 4), 1, id="one word is another"),
        pytest.param(all_at_once, (2, 1, 2, 2), 2, id="all of this at once"),
    ],
)
async def test_an_edit_processes_only_what_has_changed(
    book: WordBook, lighthouse: Path, edit: Edit, expected: tuple[int, int, int, int], embedded: int
) -> None:
    await book.ingest(lighthouse)
    edit(lighthouse)
    plan = await book.plan_ingest(lighthouse)
    report = await book.ingest(lighthouse)

    assert (did(report), report.embedded) == (expected, embedded)
    assert report.generation == ("" if expected == (0, 0, 0, 5) else "g000002")
    assert replace(plan, seconds=0, generation="") == replace(report, seconds=0, generation="")
    await assert_as_if_made_anew(book, lighthouse)
    assert did(await book.ingest(lighthouse)) == (0, 0, 0, report.pages)


@pytest.mark.parametrize("seed", [1, 2])
async def test_any_sequence_of_edits_gives_the_same_index_as_a_rebuild(
    book: WordBook, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)  # noqa: S311 - the same every time
    pages = tmp_path / "pages"
    pages.mkdir()
    words = "lamp horn keeper oil page fog wick lens".split()

    def write(name: str) -> None:
        sections = [
            f"## {chance.choice(words)}\n\n" + " ".join(chance.choices(words, k=chance.randint(1, 90))) + "."
            for _ in range(chance.randint(1, 5))
        ]
        (pages / name).write_text("\n\n".join([f"# {chance.choice(words)}", *sections]))

    for number in range(6):
        write(f"{number}.md")
    await book.ingest(pages)
    for _ in range(4):
        there = sorted(path.name for path in pages.iterdir())
        for name in chance.sample(there, 2):
            (pages / name).unlink()
        write(there[0])
        write(f"new{chance.random()}.md")
        write(f"new{chance.random()}.md")
        await book.ingest(pages)
    await assert_as_if_made_anew(book, pages)


async def test_a_second_run_reads_no_page(book: WordBook, lighthouse: Path) -> None:
    await book.ingest(lighthouse)
    falsify(lighthouse)
    assert did(await book.ingest(lighthouse)) == (0, 0, 0, 5)


@pytest.mark.parametrize(
    "damage", ["", "{", "[]", '{"recipe": 1}', '{"recipe": 1, "pages": []}'], ids=lambda text: text or "empty"
)
async def test_lost_stamps_only_cause_reading(book: WordBook, lighthouse: Path, damage: str) -> None:
    await book.ingest(lighthouse)
    (book.folder / "stamps.json").write_text(damage)
    report = await book.ingest(lighthouse)
    assert (did(report), report.embedded, report.generation) == ((0, 0, 0, 5), 0, "")


async def test_other_chunk_sizes_change_every_page(book: WordBook, lighthouse: Path) -> None:
    await book.ingest(lighthouse)
    smaller = WordBook(book.folder, ChunkSizes(limit=32))
    assert did(await smaller.ingest(lighthouse)) == (0, 5, 0, 0)
    await assert_as_if_made_anew(smaller, lighthouse)
    assert did(await smaller.ingest(lighthouse)) == (0, 0, 0, 5)


async def test_longer_chunks_change_all_term_weights(book: WordBook, tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    pages.mkdir()
    for number in range(4):
        (pages / f"short{number}.md").write_text(f"# Short {number}\n\nThe lamp page {number} burns.")
    await book.ingest(pages)
    before = (await contents(book.folder, book.embedder.identity))["average length"]
    for number in range(4):
        (pages / f"long{number}.md").write_text(f"# Long {number}\n\n" + "The keeper of the horn sees oil ships. " * 6)
    report = await book.ingest(pages)

    assert (did(report), report.embedded) == ((4, 0, 0, 4), 4)
    assert (await contents(book.folder, book.embedder.identity))["average length"] > before
    await assert_as_if_made_anew(book, pages)


async def test_keeps_and_reports_a_page_that_cannot_be_read_any_more(book: WordBook, lighthouse: Path) -> None:
    await book.ingest(lighthouse)
    before = await contents(book.folder, book.embedder.identity)
    fog = lighthouse / "signals" / "fog.md"
    words = fog.read_text()
    fog.write_bytes(b"# Caf\xe9")
    report = await book.ingest(lighthouse)

    assert (did(report), report.pages, report.generation) == ((0, 0, 0, 4), 5, "")
    assert [skipped.path for skipped in report.skipped] == ["signals/fog.md"]
    assert await contents(book.folder, book.embedder.identity) == before
    fog.write_text(words.replace("ninety", "sixty"))
    assert did(await book.ingest(lighthouse)) == (0, 1, 0, 4)


async def test_reports_a_new_page_that_cannot_be_read(book: WordBook, lighthouse: Path) -> None:
    (lighthouse / "broken.md").write_bytes(b"# Caf\xe9")
    report = await book.ingest(lighthouse)
    assert (did(report), report.pages) == ((5, 0, 0, 0), 5)
    assert [(skipped.path, "UTF-8" in skipped.reason) for skipped in report.skipped] == [("broken.md", True)]


@pytest.mark.parametrize("rebuild", [False, True], ids=["first run", "rebuild"])
async def test_raises_if_no_page_can_be_read(book: WordBook, lighthouse: Path, tmp_path: Path, rebuild: bool) -> None:
    if rebuild:
        await book.ingest(lighthouse)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "a.md").write_bytes(b"# Caf\xe9")
    with pytest.raises(InputError, match=r"no page could be read. Nothing was changed.\n  a.md: "):
        await book.ingest(tmp_path / "broken", rebuild=rebuild, prune=rebuild)
    assert book.generations.current() == ("g000001" if rebuild else "")


async def test_raises_for_an_empty_source_and_changes_nothing(book: WordBook, lighthouse: Path, tmp_path: Path) -> None:
    await book.ingest(lighthouse)
    (tmp_path / "empty").mkdir()
    for sources in ([tmp_path / "empty"], [lighthouse, tmp_path / "empty"]):
        with pytest.raises(InputError, match=r"there are no pages in .*Nothing was changed"):
            await book.ingest(*sources, prune=True)
    for page in lighthouse.rglob("*.*"):  # noqa: ASYNC240
        page.unlink()
    with pytest.raises(InputError, match="there are no pages in"):
        await book.ingest(lighthouse)
    assert book.generations.current() == "g000001"


def sources_of(book: WordBook) -> dict[str, int]:
    with closing(sqlite3.connect(book.folder / book.generations.current() / "book.db")) as connection:
        rows = connection.execute("SELECT source, COUNT(*) FROM pages GROUP BY source").fetchall()
    return {Path(source).name: pages for source, pages in rows}


async def test_a_page_belongs_to_the_source_that_listed_it_last(book: WordBook, lighthouse: Path) -> None:
    signals = lighthouse / "signals"
    await book.ingest(lighthouse)
    assert did(await book.ingest(signals)) == (0, 2, 0, 0)
    assert sources_of(book) == {"lighthouse": 3, "signals": 2}

    # Now only the second source can say that the page is gone.
    (signals / "fog.md").unlink()
    assert did(await book.ingest(lighthouse)) == (0, 1, 0, 3)
    assert sources_of(book) == {"lighthouse": 4, "signals": 1}
    assert did(await book.ingest(signals)) == (0, 1, 1, 0)
    assert sources_of(book) == {"lighthouse": 3, "signals": 1}


@dataclass
class Shown:
    """A source with these pages, by URL."""

    name: str
    pages: dict[str, str]

    async def listing(self) -> AsyncIterator[ListedPage | SkippedPage]:
        for url in self.pages:
            yield ListedPage(url, url, stamp="")

    async def read(self, listed: ListedPage) -> Page:
        return page_of(self.pages[listed.url], url=listed.url)


@pytest.mark.parametrize("order", [1, -1], ids=["first the one it left", "first the one it went to"])
async def test_a_page_that_moves_between_sources_is_not_removed(book: WordBook, order: int) -> None:
    lamp, horn, flag = (
        {f"https://b.example/{name}": f"# A {name}\n\nThe {name}."} for name in ("lamp", "horn", "flag")
    )
    await book.ingest(Shown("one", lamp | horn), Shown("two", flag))
    after = [Shown("one", lamp), Shown("two", flag | horn)][::order]
    plan = await book.plan_ingest(*after)
    report = await book.ingest(*after)

    assert (did(report), report.pages, report.embedded) == ((0, 1, 0, 2), 3, 0)
    assert (did(plan), plan.pages, plan.embedded) == ((0, 1, 0, 2), 3, 0)
    assert sources_of(book) == {"one": 1, "two": 2}


async def test_keeps_one_copy_of_a_page_in_two_sources(book: WordBook, lighthouse: Path) -> None:
    report = await book.ingest(lighthouse / "signals", lighthouse)
    assert (report.pages, did(report)) == (5, (5, 0, 0, 0))
    assert sorted(skipped.path for skipped in report.skipped) == ["signals/flags.rst", "signals/fog.md"]
    assert all("has the same address as" in skipped.reason for skipped in report.skipped)


async def test_keeps_other_sources_unless_pruned(book: WordBook, lighthouse: Path) -> None:
    keeping, signals = lighthouse / "keeping", lighthouse / "signals"
    await book.ingest(keeping)
    assert (await book.ingest(signals)).pages == 4
    alone = await book.ingest(signals, prune=True)
    assert (alone.pages, did(alone), alone.embedded) == (2, (0, 0, 2, 2), 0)
    await assert_as_if_made_anew(book, signals)


async def test_a_rebuild_needs_every_source_or_prune(book: WordBook, lighthouse: Path) -> None:
    keeping, signals = lighthouse / "keeping", lighthouse / "signals"
    await book.ingest(keeping, signals)
    for work in (book.ingest, book.plan_ingest):
        with pytest.raises(InputError, match=r"would lose the pages of '.*keeping'.*--prune"):
            await work(signals, rebuild=True)
    assert book.generations.current() == "g000001"

    assert (await book.ingest(signals, keeping, rebuild=True)).pages == 4
    assert (await book.ingest(signals, rebuild=True, prune=True)).pages == 2


async def test_a_rebuild_repairs_a_damaged_book(book: WordBook, lighthouse: Path) -> None:
    await book.ingest(lighthouse / "keeping")
    (book.folder / "g000001" / "book.db").write_bytes(b"damaged")

    assert (await book.ingest(lighthouse / "signals", rebuild=True)).pages == 2


async def test_another_style_changes_the_pages_of_unchanged_files(book: WordBook, lighthouse: Path) -> None:
    (lighthouse / "index.md").write_text("# The café\n\nOil.\n\n## Größe & Co\n\nA lamp.")
    await book.ingest(Folder(lighthouse, style=Style.PLAIN))
    report = await book.ingest(Folder(lighthouse, style=Style.SPHINX))

    assert report.changed > 0
    assert did(await book.ingest(Folder(lighthouse, style=Style.SPHINX))) == (0, 0, 0, 5)


def kept(book: WordBook) -> dict[Path, bytes]:
    """Every file except those of the vector store, which change whenever they are opened."""
    files = [path for path in book.folder.rglob("*") if path.is_file() and "shard" not in path.parts]
    return {path: path.read_bytes() for path in files}


async def test_a_dry_run_writes_nothing(book: WordBook, lighthouse: Path) -> None:
    plan = await book.plan_ingest(lighthouse)
    assert (did(plan), plan.generation, plan.pages) == ((5, 0, 0, 0), "", 5)
    assert not book.folder.exists()

    await book.ingest(lighthouse)
    before = kept(book)
    deleted(lighthouse)
    added(lighthouse)
    assert did(await book.plan_ingest(lighthouse)) == (1, 0, 1, 4)
    assert did(await book.plan_ingest(lighthouse, rebuild=True)) == (5, 0, 0, 0)
    assert kept(book) == before


async def test_another_embedder_needs_a_rebuild(book: WordBook, lighthouse: Path) -> None:
    await book.ingest(lighthouse)
    other = WordBook(book.folder, embedder=WordEmbedder(model="other"))
    with pytest.raises(ConfigurationError, match="ingest --rebuild"):
        await other.ingest(lighthouse)
    assert (await book.ingest(lighthouse)).generation == ""

    report = await other.ingest(lighthouse, rebuild=True)
    assert (report.embedded, report.generation) == (report.chunks, "g000002")
    with pytest.raises(ConfigurationError, match="'other'"):
        await book.ingest(lighthouse)


async def test_deletes_old_generations(book: WordBook, lighthouse: Path) -> None:
    await book.ingest(lighthouse)
    added(lighthouse)
    await book.ingest(lighthouse)
    assert [path.name for path in book.folder.glob("*") if path.is_dir()] == ["g000002"]
