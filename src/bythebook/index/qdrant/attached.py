"""Attached collections: read-only collections that another program fills, searched by dense vectors only."""

import asyncio
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urljoin, urlsplit

from bythebook.chunking import Chunk, with_headings
from bythebook.embeddings import EmbedderId
from bythebook.errors import ConfigurationError, NotFound
from bythebook.index import is_safe_url
from bythebook.index.catalog import Catalog
from bythebook.index.provider import IndexSnapshot, build_snapshot
from bythebook.index.qdrant.client import QdrantServer
from bythebook.index.qdrant.store import CollectionLayout, PointId, QdrantStore
from bythebook.index.terms import Bm25Terms

FIELDS: Mapping[str, Mapping[str, Any]] = json.loads(Path(__file__).with_suffix(".json").read_bytes())
"""The payload field names that are recognised for each field of a chunk, also inside of `metadata`, and what follows if
there is none."""

_LINE_WRAP = re.compile(r"(?<=[\w,;)])\n(?=[a-z(])")
_SCHEME = re.compile(r"\s*[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_FILE = "attached.json"
_CATALOG_SUFFIX = "attached.db"


def detect_fields(payloads: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The payload field that holds each field of a chunk, as far as these payloads have one."""
    used: Counter[str] = Counter()
    for payload in payloads:
        inner = payload.get("metadata")
        nested = {f"metadata.{name}": value for name, value in inner.items()} if isinstance(inner, dict) else {}
        used.update(name for name, value in {**payload, **nested}.items() if value not in (None, "", [], {}))
    return {
        field: max((name for each in names for name in (each, f"metadata.{each}") if used[name]), key=used.__getitem__)
        for field, names in ((field, entry["names"]) for field, entry in FIELDS.items())
        if any(used[each] or used[f"metadata.{each}"] for each in names)
    }


@dataclass(frozen=True, slots=True)
class Attachment:
    """An attached collection and how its payloads are read. `attached.json` stores it."""

    url: str
    collection: str
    vector: str | None
    fields: Mapping[str, str]
    site_url: str
    identity: Mapping[str, Any]
    """The `EmbedderId` of its vectors."""
    snapshot: str
    """The name of the snapshot. It changes whenever the collection is attached again."""

    def layout(self, count_tokens: Callable[[str], int]) -> CollectionLayout:
        """The layout of the collection. `count_tokens` is used for payloads without a token count."""
        fields = self.fields
        return CollectionLayout(
            to_chunk=lambda point, payload: self._to_chunk(point, payload, count_tokens),
            dense=self.vector,
            module=fields.get("module_name", "module_name"),
            chapter=fields.get("chapter_id", "chapter_id"),
            url=fields.get("url", "url"),
        )

    def _to_chunk(self, point: PointId, payload: Mapping[str, Any], count_tokens: Callable[[str], int]) -> Chunk | None:
        found = {field: _get_field(payload, name) for field, name in self.fields.items()}
        text = found.get("text")
        if not isinstance(text, str) or not text.strip():
            return None
        text = _unwrap_lines(text)
        url = self._absolute_url(_to_text(found.get("url")), point)
        headings = _to_headings(found.get("heading_hierarchy"))
        title = _to_text(found.get("title")) or (headings[0] if headings else _title_from_url(url))
        headings = headings or (title,)
        tokens = found.get("token_count")
        return Chunk(
            chunk_id=str(point),
            document_id=_to_text(found.get("document_id")) or url,
            url=url,
            title=title,
            text=text,
            start=0,
            end=len(text),
            chunk_index=_to_index(found.get("chunk_index")),
            token_count=tokens if isinstance(tokens, int) and tokens > 0 else max(count_tokens(text), 1),
            heading_hierarchy=headings,
            anchor=_to_text(found.get("anchor")),
            module_name=_to_text(found.get("module_name")),
            chapter_id=_to_text(found.get("chapter_id")),
            content_hash=hashlib.sha256(with_headings(headings, text).encode("utf-8", "replace")).hexdigest(),
            created_at=_to_text(found.get("created_at")),
        )

    def _absolute_url(self, url: str, point: PointId) -> str:
        """An absolute URL. Without a site URL it is a URN, which is unique but cannot be opened."""
        if is_safe_url(url):
            return url
        # A URL such as `javascript:` must not become a link.
        if url and self.site_url and not _SCHEME.match(url):
            return urljoin(self.site_url.rstrip("/") + "/", url.lstrip("/"))
        return f"urn:qdrant:{quote(self.collection, safe='')}:{quote(url or str(point), safe='')}"


def _unwrap_lines(text: str) -> str:
    """Replace line breaks inside of sentences by spaces. The length stays the same, and code is left alone."""
    return text if "```" in text else _LINE_WRAP.sub(" ", text)


def _get_field(payload: Mapping[str, Any], name: str) -> Any:
    outer, dot, inner = name.partition(".")
    value = payload.get(outer)
    return value.get(inner) if dot and isinstance(value, dict) else value


def _to_text(value: Any) -> str:
    return str(value).strip() if isinstance(value, str | int | float) else ""


def _to_index(value: Any) -> int:
    return value if isinstance(value, int) and value >= 0 else 0


def _to_headings(value: Any) -> tuple[str, ...]:
    if isinstance(value, list):
        return tuple(text for text in map(_to_text, value) if text)
    return tuple(part for part in map(str.strip, _to_text(value).split(" > ")) if part)


def _title_from_url(url: str) -> str:
    """A title for a page without one: the last segment of its URL."""
    last = urlsplit(url).path.rstrip("/").rpartition("/")[2]
    return unquote(last).rpartition(":")[2] or url


def read_attachment(data_dir: Path) -> Attachment | None:
    """The attachment of this data folder, if there is one."""
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
    """Detach the collection. It is not changed."""
    (data_dir / _FILE).unlink(missing_ok=True)


def attached_catalog_path(data_dir: Path, snapshot: str) -> Path:
    """The catalog that was built from the collection when it was attached."""
    return data_dir / "qdrant" / f"{snapshot}.{_CATALOG_SUFFIX}"


class AttachedSnapshotLoader:
    """Opens the only snapshot of an attached collection."""

    def __init__(
        self, server: QdrantServer, data_dir: Path, identity: EmbedderId, *, count_tokens: Callable[[str], int]
    ) -> None:
        self._server = server
        self._data_dir = data_dir
        self._identity = identity
        self._count_tokens = count_tokens

    async def current(self) -> str:
        attachment = read_attachment(self._data_dir)
        return attachment.snapshot if attachment else ""

    async def open(self, stack: ExitStack) -> IndexSnapshot:
        attachment = read_attachment(self._data_dir)
        if attachment is None:
            raise NotFound("the collection was detached. Run 'bythebook index attach' to use it again.")
        path = attached_catalog_path(self._data_dir, attachment.snapshot)
        catalog = stack.enter_context(closing(await asyncio.to_thread(Catalog.open, path)))
        layout = attachment.layout(self._count_tokens)

        def open_store(bm25: Bm25Terms) -> QdrantStore:
            return QdrantStore(self._server, attachment.collection, bm25, layout=layout)

        return build_snapshot(attachment.snapshot, catalog, self._identity, open_store)
