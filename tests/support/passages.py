"""Factories of chunks, passages and results from their text."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from bythebook.chunking import Chunk
from bythebook.chunking.splitter import document_id
from bythebook.index import Passage
from bythebook.retrieval import RetrievalResult
from tests.support.word_embedder import count_words, vector_of

if TYPE_CHECKING:
    from bythebook.embeddings import Vector


def chunk(text: str, *, url: str = "https://book.example/page", index: int = 0, **fields: Any) -> Chunk:
    document = document_id(url)
    digest = hashlib.sha256(f"{text}/{index}".encode()).hexdigest()
    return Chunk(
        chunk_id=f"{document[:18]}-8{digest[:3]}-{digest[3:15]}",
        document_id=document,
        url=url,
        text=text,
        start=fields.get("start", 0),
        end=fields.get("start", 0) + len(text),
        chunk_index=index,
        token_count=max(count_words(text), 1),
        content_hash=hashlib.sha256(text.encode()).hexdigest(),
        **{
            "title": "The Lamp",
            "heading_hierarchy": ("The Lamp",),
            "anchor": "",
            "module_name": "",
            "chapter_id": "",
            "created_at": "2026-01-02T03:04:05+00:00",
        }
        | {name: value for name, value in fields.items() if name != "start"},
    )


def passage(text: str, *, vector: Vector | None = None, **fields: Any) -> Passage:
    made = chunk(text, **fields)
    return Passage(made, vector_of(made.embedded) if vector is None else vector)


def result(text: str, **fields: Any) -> RetrievalResult:
    made = chunk(text, url=fields.pop("url", "https://book.example/page"))
    known: dict[str, Any] = {
        "chunk_id": made.chunk_id,
        "document_id": made.document_id,
        "text": text,
        "score": 0.5,
        "position": 1,
        "url": made.url,
        "title": made.title,
        "chunk_index": 0,
        "token_count": made.token_count,
    }
    return RetrievalResult(**known | fields)
