"""A chunk as it is stored: under the names a stored chunk has everywhere."""

from __future__ import annotations

from typing import Any

from bythebook.chunks import Chunk


def payload_of(chunk: Chunk) -> dict[str, Any]:
    return {
        "content": chunk.text,
        "url": chunk.url,
        "chunk_id": chunk.chunk_id,
        "document_id": chunk.document_id,
        "title": chunk.title,
        "chunk_index": chunk.chunk_index,
        "created_at": chunk.created_at,
        "heading_hierarchy": list(chunk.heading_hierarchy),
        "module_name": chunk.module_name,
        "chapter_id": chunk.chapter_id,
        "anchor": chunk.anchor,
        "token_count": chunk.token_count,
        "content_hash": chunk.content_hash,
        "start": chunk.start,
        "fence": chunk.fence,
    }


def chunk_of(payload: dict[str, Any]) -> Chunk:
    """The chunk a payload of ours was made from. The payload is used up."""
    text = payload.pop("content")
    headings = tuple(payload.pop("heading_hierarchy"))
    return Chunk(text=text, end=payload["start"] + len(text), heading_hierarchy=headings, **payload)
