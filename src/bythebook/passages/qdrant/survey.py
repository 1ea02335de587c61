"""The survey of a collection that others fill: one look at every point, and what it lacks."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from bythebook.passages.catalogue import Catalogue, ChunkRecord, PageRecord
from bythebook.passages.tally import Tally
from bythebook.passages.words import Words, stepped

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from qdrant_client import models

    from bythebook.chunks import Chunk
    from bythebook.passages.qdrant.attached import Attachment
    from bythebook.vectors import Identity


class Survey:
    """What is learned from one look at every point."""

    def __init__(self, found: Attachment, count: Callable[[str], int]) -> None:
        self.found = found
        self.points = 0
        self.records: list[ChunkRecord] = []
        self.tally = Tally()
        self.missing: Counter[str] = Counter()
        self._layout = found.layout(count)
        self._pages: dict[str, list[tuple[int, str, str, str]]] = defaultdict(list)
        self._digest = hashlib.sha256(repr(found).encode())

    def take(self, points: Sequence[models.Record]) -> None:
        for point in points:
            self.points += 1
            chunk = self._layout.chunk(_id(point.id), point.payload or {})
            if chunk is None:
                self.missing["text"] += 1
            else:
                self._note(chunk)

    def _note(self, chunk: Chunk) -> None:
        length = self.tally.add(chunk.embedded)
        headings = " > ".join(chunk.heading_hierarchy)
        self.records.append(ChunkRecord(chunk.chunk_id, chunk.url, chunk.content_hash, "", length, headings))
        self._pages[chunk.url].append((chunk.chunk_index, chunk.chunk_id, chunk.title, chunk.text))
        self._digest.update(f"{chunk.chunk_id} {chunk.content_hash} ".encode())
        self.missing["url"] += chunk.url.startswith("urn:qdrant:")

    @property
    def edition(self) -> str:
        """A name that another look at the same collection gives again."""
        return f"g000000-{self._digest.hexdigest()[:8]}"

    def pages(self) -> list[PageRecord]:
        """A page for each address: the chunks there are of it, in their order."""
        return [self._page(url, sorted(parts)) for url, parts in self._pages.items()]

    def _page(self, url: str, parts: Sequence[tuple[int, str, str, str]]) -> PageRecord:
        text = "\n\n".join(part[3] for part in parts)
        path = urlsplit(url).path.strip("/") or url
        return PageRecord(url, self.found.collection, path, parts[0][2], "", text)

    def lacks(self) -> tuple[str, ...]:
        return tuple(_lacking(self.found, self.missing, self.points))


def _id(point: Any) -> int | str:
    return point if isinstance(point, int) else str(point)


def _lacking(found: Attachment, missing: Counter[str], points: int) -> list[str]:
    said = [
        "an index of words: passages are found by meaning alone",
        "the pages themselves: a quote's place is known within its chunk, and a page is the chunks there are of it",
    ]
    if missing["text"]:
        said.append(f"text in {missing['text']} of {points} points: they are passed over")
    if missing["url"]:
        said.append(
            f"an absolute address in {missing['url']} points: their citations cannot be opened (site_url completes "
            "relative ones)"
        )
    meant = {
        "title": "titles: the last part of the address stands in for one",
        "chunk_index": "the order of chunks in their page",
        "heading_hierarchy": "headings: a passage is shown below its title alone",
        "module_name": "modules: the filter module=NAME finds nothing",
        "chapter_id": "chapters: the filter chapter=ID finds nothing",
        "anchor": "anchors: a citation opens its page at the quote, without the section's anchor",
        "token_count": "token counts: they are counted when a passage is read",
    }
    return said + [text for part, text in meant.items() if part not in found.fields]


def write_catalogue(path: Path, survey: Survey, identity: Identity) -> Words:
    """Write down what was learned. Returns the words as they are weighed from now on."""
    with closing(Catalogue.edit(path)) as catalogue:
        for record in survey.records:
            catalogue.put_chunk(record)
        for page in survey.pages():
            catalogue.put_page(page)
        catalogue.count(survey.tally)
        totals = catalogue.totals()
        words = Words(stepped(totals.length / max(totals.chunks, 1)))
        catalogue.state("average_length", words.average_length)
        catalogue.state("identity", asdict(identity))
        catalogue.state("published_at", datetime.now(UTC).isoformat(timespec="seconds"))
        return words
