"""The plan: what differs between the sources and the book, reading as few pages as possible."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bythebook.errors import InputError
from bythebook.pages import Block, LeftOut, Listed, Skipped, Unreadable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from pathlib import Path

    from bythebook.ingest import Progress
    from bythebook.pages import Page, PageSource
    from bythebook.passages.catalogue import Catalogue


@dataclass(frozen=True, slots=True)
class Found:
    """A page that is new, or differs from the one in the book."""

    page: Page
    path: str
    source: str
    fingerprint: str
    is_new: bool


@dataclass(slots=True)
class Coverage:
    """What a source has, pages or not, what of it could not be read, and what is no part of the book."""

    listed: int = 0
    skipped: list[Skipped] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)


@dataclass(slots=True)
class Plan:
    """What must change to bring the book up to its sources."""

    found: list[Found] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    unchanged: int = 0
    coverage: dict[str, Coverage] = field(default_factory=dict)
    """What was there and what of it could not be read, by the name of the source."""
    stamps: dict[str, tuple[str, str]] = field(default_factory=dict)
    order: dict[str, list[str]] = field(default_factory=dict)
    """The pages of each source by their URLs, in the order of the book."""

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        return tuple(skipped for coverage in self.coverage.values() for skipped in coverage.skipped)

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        return tuple(item for coverage in self.coverage.values() for item in coverage.left_out)

    def is_reordered(self, book: Catalogue) -> bool:
        """Whether the pages stand in another order than in the book."""
        return any(list(book.order(source)) != urls for source, urls in self.order.items())


class Stamps:
    """Which fingerprint a page had when its source showed a certain stamp.

    Only ever a hint that saves reading: when the file is lost or damaged, every page is read again.
    """

    def __init__(self, folder: Path, recipe: str) -> None:
        self._path = folder / "stamps.json"
        self._recipe = recipe
        self._known = self._read()

    def _read(self) -> dict[str, list[str]]:
        try:
            data = json.loads(self._path.read_text(encoding="utf-8"))
            pages = data["pages"] if data["recipe"] == self._recipe else {}
        except (OSError, ValueError, TypeError, KeyError):
            return {}
        return pages if isinstance(pages, dict) else {}

    def fingerprint(self, listed: Listed) -> str:
        """The fingerprint the page must still have, empty when it may have changed."""
        stamp, fingerprint = self._known.get(listed.url, ("", ""))
        return fingerprint if stamp and stamp == listed.stamp else ""

    def keep(self, stamps: dict[str, tuple[str, str]]) -> None:
        """Remember these, in place of what was known of the same pages."""
        pages = self._known | {url: list(stamp) for url, stamp in stamps.items()}
        if pages == self._known:
            return
        new = self._path.with_suffix(".new")
        new.write_text(json.dumps({"recipe": self._recipe, "pages": pages}), encoding="utf-8")
        new.replace(self._path)
        self._known = pages


async def look_through(
    sources: Sequence[PageSource],
    plan: Plan,
    *,
    book: Catalogue | None,
    recipe: str,
    stamps: Stamps,
    progress: Progress,
) -> AsyncGenerator[Found]:
    """Compare each source with what the book has of it. Each page that differs comes out as soon as it is read.

    At the end the plan says everything.
    """
    seen: dict[str, str] = {}
    plan.coverage = {source.name: Coverage() for source in sources}
    listings = [(source, await _listed(source, plan.coverage[source.name], seen)) for source in sources]
    if not any(listed for _, listed in listings):
        raise InputError(_nothing_found(sources[0], plan.coverage[sources[0].name]))
    plan.order = {source.name: [entry.url for entry in listed] for source, listed in listings if listed}
    for source, listed in listings:
        for done, entry in enumerate(listed, start=1):
            progress("reading", done, len(listed))
            try:
                found = await _look_at(entry, source, book=book, plan=plan, recipe=recipe, stamps=stamps)
            except Unreadable as exc:
                plan.coverage[source.name].skipped.append(Skipped(entry.path, str(exc)))
                continue
            if found:
                plan.found.append(found)
                yield found
        # A document that has become unreadable keeps the pages it had, as a page does.
        before = book.fingerprints(source.name) if book and listed else {}
        plan.removed.extend(sorted(set(before) - {entry.url for entry in listed}))
    if book is None and not plan.found:
        raise InputError(f"no page could be read. Nothing was changed.{_reasons(plan.skipped)}")
    # A page that went from one of these sources to another has not gone.
    arriving = {found.page.url for found in plan.found}
    plan.removed = [url for url in plan.removed if url not in arriving]


async def _listed(source: PageSource, coverage: Coverage, seen: dict[str, str]) -> list[Listed]:
    """The pages of the source; two pages that would share an address are not both kept."""
    listed: list[Listed] = []
    async for entry in source.listing():
        if isinstance(entry, Skipped):
            coverage.skipped.append(entry)
        elif isinstance(entry, LeftOut):
            coverage.left_out.append(entry)
        elif entry.url in seen:
            coverage.skipped.append(Skipped(entry.path, f"has the same address as {seen[entry.url]}: {entry.url}"))
        else:
            seen[entry.url] = entry.path
            listed.append(entry)
    coverage.listed = len(listed) + len(coverage.skipped)
    if not coverage.listed:
        raise InputError(_nothing_found(source, coverage))
    return listed


def _nothing_found(source: PageSource, coverage: Coverage) -> str:
    why = _reasons([*coverage.skipped, *coverage.left_out])
    return f"there are no pages in {source.name!r}. Is it the right place? Nothing was changed.{why}"


def _reasons(skipped: Sequence[Skipped | LeftOut]) -> str:
    return "".join(f"\n  {entry.path}: {entry.reason}" for entry in skipped[:5])


async def _look_at(
    listed: Listed, source: PageSource, *, book: Catalogue | None, plan: Plan, recipe: str, stamps: Stamps
) -> Found | None:
    """The page if it differs from the one in the book."""
    before = book.page(listed.url) if book else None
    if is_unchanged(source, listed, book=book, stamps=stamps):
        plan.unchanged += 1
        return None
    page = await source.read(listed)
    now = fingerprint(page, recipe)
    plan.stamps[listed.url] = (listed.stamp, now)
    if before and before.fingerprint == now and before.source == source.name:
        plan.unchanged += 1
        return None
    return Found(page, listed.path, source.name, now, is_new=before is None)


def is_unchanged(source: PageSource, listed: Listed, *, book: Catalogue | None, stamps: Stamps) -> bool:
    """Whether the page is known to be as it is in the book, without reading it."""
    before = book.page(listed.url) if book else None
    return before is not None and stamps.fingerprint(listed) == before.fingerprint and before.source == source.name


def fingerprint(page: Page, recipe: str) -> str:
    """Of everything the page's chunks depend on. When it was last touched is not among it."""
    blocks = [[getattr(block, name) for name in Block.__slots__] for block in page.blocks]
    content = [recipe, page.url, page.title, page.text, blocks, page.module_name, page.chapter_id]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()
