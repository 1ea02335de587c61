"""Collections of documents and questions, as the BEIR benchmark lays them out, made into a book."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from bythebook.errors import InputError
from bythebook.pages import Listed, Page, Skipped
from bythebook.pages.compose import compose
from bythebook.pages.generators import Style
from bythebook.pages.readers import read

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Question:
    """A question with the documents that answer it, and whatever else its collection says of it."""

    id: str
    text: str
    relevant: dict[str, int]
    given: dict[str, Any]


class Corpus:
    """The documents of a collection, each with its text and perhaps a title, as a source of pages."""

    def __init__(self, name: str, documents: Mapping[str, dict[str, Any]]) -> None:
        self._name = name
        self._documents = {key: row for key, row in documents.items() if row["text"].strip()}

    @classmethod
    def of(cls, folder: Path) -> Corpus:
        """The documents of corpus.jsonl, or of corpus.jsonl.gz, in a folder."""
        return cls(folder.name, {str(row["_id"]): row for row in rows(folder, "corpus")})

    @property
    def name(self) -> str:
        return f"corpus:{self._name}"

    async def listing(self) -> AsyncIterator[Listed | Skipped]:
        for key, row in self._documents.items():
            stamp = hashlib.sha256(json.dumps(row).encode()).hexdigest()
            yield Listed(url_of(key), key, stamp)

    async def read(self, listed: Listed) -> Page:
        row = self._documents[listed.path]
        text, blocks = compose(read(row["text"], suffix=".md", style=Style.PLAIN).parts)
        return Page(listed.url, row.get("title", ""), text, blocks)

    def titles(self) -> dict[str, str]:
        """The title of each document."""
        return {key: row.get("title", "") for key, row in self._documents.items()}

    def only(self, keep: set[str]) -> None:
        """Leave out every other document."""
        self._documents = {key: row for key, row in self._documents.items() if key in keep}


def questions_in(folder: Path) -> list[Question]:
    """The questions of a folder that its documents answer: queries.jsonl (or .gz), and qrels.tsv that says which."""
    relevant: dict[str, dict[str, int]] = defaultdict(dict)
    judged = folder / "qrels.tsv"
    if not judged.exists():
        raise InputError(f"{folder} has no qrels.tsv.")
    for line in judged.read_text(encoding="utf-8").splitlines()[1:]:
        query, document, grade = line.split("\t")
        relevant[query][document] = int(grade)
    return [
        Question(key, row["text"], relevant[key], row)
        for row in rows(folder, "queries")
        if (key := str(row["_id"])) in relevant
    ]


def rows(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    """The objects of `name.jsonl` or `name.jsonl.gz`."""
    for path, opener in ((folder / f"{name}.jsonl.gz", gzip.open), (folder / f"{name}.jsonl", open)):
        if path.exists():
            with opener(path, "rt", encoding="utf-8") as file:
                yield from map(json.loads, file)
            return
    raise InputError(f"{folder} has neither {name}.jsonl nor {name}.jsonl.gz.")


def url_of(document: str) -> str:
    return f"corpus:///{quote(document, safe='')}"


def document_of(url: str) -> str:
    return unquote(url.removeprefix("corpus:///"))
