"""A collection that another program has filled, served as it is: read-only, and found by meaning alone."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections import Counter
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urljoin, urlsplit

from bythebook.chunking import Chunk, under
from bythebook.errors import ConfigurationError, NotFound
from bythebook.index import Calibration
from bythebook.index.catalog import Catalogue
from bythebook.index.provider import Edition, check_identity
from bythebook.index.qdrant.store import Layout, QdrantStore
from bythebook.index.terms import Words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from contextlib import ExitStack
    from pathlib import Path

    from bythebook.embeddings import Identity
    from bythebook.index.qdrant.client import QdrantServer
    from bythebook.index.qdrant.store import PointId

NAMES: Mapping[str, tuple[str, ...]] = {
    "text": ("content", "text", "chunk_text", "page_content", "body"),
    "url": ("url", "source_url", "page_url", "source", "link"),
    "title": ("title", "page_title", "document_title"),
    "chunk_index": ("chunk_index", "index", "position"),
    "document_id": ("document_id", "doc_id"),
    "heading_hierarchy": ("heading_hierarchy", "headings", "heading", "section"),
    "module_name": ("module_name", "module"),
    "chapter_id": ("chapter_id", "chapter"),
    "anchor": ("anchor",),
    "token_count": ("token_count", "tokens"),
    "created_at": ("created_at", "timestamp"),
}
"""What of a chunk is looked for, and the names it goes by, also inside of `metadata`."""

_WRAPPED = re.compile(r"(?<=[\w,;)])\n(?=[a-z(])")
_FILE = "attached.json"
_CATALOGUE = "attached.db"


def recognised(payloads: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The name that these payloads use for each part of a chunk, where they have it."""
    used: Counter[str] = Counter()
    for payload in payloads:
        inner = payload.get("metadata")
        nested = {f"metadata.{name}": value for name, value in inner.items()} if isinstance(inner, dict) else {}
        used.update(name for name, value in {**payload, **nested}.items() if value not in (None, "", [], {}))
    return {
        part: max((name for each in names for name in (each, f"metadata.{each}") if used[name]), key=used.__getitem__)
        for part, names in NAMES.items()
        if any(used[each] or used[f"metadata.{each}"] for each in names)
    }


@dataclass(frozen=True, slots=True)
class Attachment:
    """What was attached, and how it is read."""

    url: str
    collection: str
    vector: str | None
    fields: Mapping[str, str]
    site_url: str
    identity: Mapping[str, Any]
    """Whose vectors they are."""
    edition: str
    """Changes whenever it is attached anew."""

    def layout(self, count: Callable[[str], int]) -> Layout:
        """How to read the collection; `count` gives the tokens of a text where the collection does not."""
        fields = self.fields
        return Layout(
            chunk=lambda point, payload: self._chunk(point, payload, count),
            dense=self.vector,
            module=fields.get("module_name", "module_name"),
            chapter=fields.get("chapter_id", "chapter_id"),
            url=fields.get("url", "url"),
        )

    def _chunk(self, point: PointId, payload: Mapping[str, Any], count: Callable[[str], int]) -> Chunk | None:
        found = {part: _at(payload, name) for part, name in self.fields.items()}
        text = found.get("text")
        if not isinstance(text, str) or not text.strip():
            return None
        text = _unwrapped(text)
        url = self._address(_text(found.get("url")), point)
        headings = _headings(found.get("heading_hierarchy"))
        title = _text(found.get("title")) or (headings[0] if headings else _named(url))
        headings = headings or (title,)
        tokens = found.get("token_count")
        return Chunk(
            chunk_id=str(point),
            document_id=_text(found.get("document_id")) or url,
            url=url,
            title=title,
            text=text,
            start=0,
            end=len(text),
            chunk_index=_number(found.get("chunk_index")),
            token_count=tokens if isinstance(tokens, int) and tokens > 0 else max(count(text), 1),
            heading_hierarchy=headings,
            anchor=_text(found.get("anchor")),
            module_name=_text(found.get("module_name")),
            chapter_id=_text(found.get("chapter_id")),
            content_hash=hashlib.sha256(under(headings, text).encode("utf-8", "replace")).hexdigest(),
            created_at=_text(found.get("created_at")),
        )

    def _address(self, url: str, point: PointId) -> str:
        """An absolute address. What has none cannot be opened, but can still be told apart."""
        if urlsplit(url).scheme:
            return url
        if url and self.site_url:
            return urljoin(self.site_url.rstrip("/") + "/", url.lstrip("/"))
        return f"urn:qdrant:{quote(self.collection, safe='')}:{quote(url or str(point), safe='')}"


def _unwrapped(text: str) -> str:
    """The text with each sentence on one line, where lines were only broken to be short. No letter moves."""
    return text if "```" in text else _WRAPPED.sub(" ", text)


def _at(payload: Mapping[str, Any], name: str) -> Any:
    outer, dot, inner = name.partition(".")
    value = payload.get(outer)
    return value.get(inner) if dot and isinstance(value, dict) else value


def _text(value: Any) -> str:
    return str(value).strip() if isinstance(value, str | int | float) else ""


def _number(value: Any) -> int:
    return value if isinstance(value, int) and value >= 0 else 0


def _headings(value: Any) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(text for text in map(_text, value) if text)
    return tuple(part for part in map(str.strip, _text(value).split(" > ")) if part)


def _named(url: str) -> str:
    """Something to call a page that has no title: the last part of its address."""
    last = urlsplit(url).path.rstrip("/").rpartition("/")[2]
    return unquote(last).rpartition(":")[2] or url


def read_attachment(data_dir: Path) -> Attachment | None:
    """What this data folder is attached to, if anything."""
    path = data_dir / _FILE
    try:
        return Attachment(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as exc:
        raise ConfigurationError(f"{path} cannot be read: {exc}. Run 'bythebook index attach' again.") from exc


def write_attachment(data_dir: Path, attachment: Attachment) -> None:
    data_dir.mkdir(parents=True, exist_ok=True)
    new = data_dir / f"{_FILE}.new"
    new.write_text(json.dumps(asdict(attachment), indent=2), encoding="utf-8")
    new.replace(data_dir / _FILE)


def remove_attachment(data_dir: Path) -> None:
    """Forget what was attached. The collection stays as it is."""
    (data_dir / _FILE).unlink(missing_ok=True)


def attached_catalogue(data_dir: Path, edition: str) -> Path:
    """Where is kept what was learned of the collection when it was attached."""
    return data_dir / "qdrant" / f"{edition}.{_CATALOGUE}"


class AttachedLibrary:
    """The one edition there is of a collection that others fill."""

    def __init__(
        self, server: QdrantServer, data_dir: Path, identity: Identity, *, count: Callable[[str], int]
    ) -> None:
        self._server = server
        self._data_dir = data_dir
        self._identity = identity
        self._count = count

    async def current(self) -> str:
        attachment = read_attachment(self._data_dir)
        return attachment.edition if attachment else ""

    async def open(self, stack: ExitStack) -> Edition:
        attachment = read_attachment(self._data_dir)
        if attachment is None:
            raise NotFound("the collection was detached. 'bythebook index attach' serves it again.")
        path = attached_catalogue(self._data_dir, attachment.edition)
        catalogue = stack.enter_context(closing(await asyncio.to_thread(Catalogue.open, path)))
        check_identity(catalogue, self._identity)
        words = Words(catalogue.fact("average_length"))
        store = QdrantStore(self._server, attachment.collection, words, layout=attachment.layout(self._count))
        calibration = Calibration(**catalogue.fact("calibration"))
        return Edition(attachment.edition, store, catalogue, words, catalogue.chunk_count(), calibration)
