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
from bythebook.sources import Listed, Page, Skipped
from bythebook.sources.document import compose
from bythebook.sources.projects import Style
from bythebook.sources.readers import read

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
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
        """The title of each document; one without a title is called by its id."""
        return {key: row.get("title") or key for key, row in self._documents.items()}

    def only(self, keep: set[str]) -> None:
        """Leave out every other document."""
        self._documents = {key: row for key, row in self._documents.items() if key in keep}


@dataclass(frozen=True, slots=True)
class Collection:
    """Documents, and questions about them: those that some document answers, and those that none does."""

    corpus: Corpus
    answered: list[Question]
    impossible: list[Question]


def collection(folder: Path) -> Collection:
    """The collection of a folder: corpus, queries and qrels as BEIR has them, or examples with their passages."""
    if has(folder, "examples"):
        return _of_examples(folder)
    corpus = Corpus(folder.name, {str(row["_id"]): row for row in rows(folder, "corpus", needs=("_id", "text"))})
    queries = list(rows(folder, "queries", needs=("_id", "text")))
    relevant = _judged(folder)
    return Collection(
        corpus,
        [_question(row, relevant[str(row["_id"])]) for row in queries if str(row["_id"]) in relevant],
        [_question(row, {}) for row in queries if row.get("is_impossible")],
    )


def _question(row: dict[str, Any], relevant: dict[str, int]) -> Question:
    return Question(str(row["_id"]), str(row["text"]), relevant, row)


def _judged(folder: Path) -> dict[str, dict[str, int]]:
    """Which documents answer which question, and how well."""
    relevant: dict[str, dict[str, int]] = defaultdict(dict)
    judged = folder / "qrels.tsv"
    if not judged.exists():
        raise InputError(f"{folder} has no qrels.tsv.")
    for number, line in enumerate(judged.read_text(encoding="utf-8").splitlines()[1:], start=2):
        try:
            query, document, grade = line.split("\t")
            relevant[query][document] = int(grade)
        except ValueError:
            raise InputError(f"{judged}, line {number}: not a query, a document and a grade, with tabs.") from None
    return relevant


def _of_examples(folder: Path) -> Collection:
    """Questions, each with its passages and whether those answer it, as CLAPNQ has them."""
    documents: dict[str, dict[str, Any]] = {}
    kinds: dict[bool, list[Question]] = {True: [], False: []}
    for row in rows(folder, "examples", needs=("_id", "question", "answerable", "passages")):
        own = {f"{row['_id']}#{number}": passage for number, passage in enumerate(row["passages"])}
        documents.update(own)
        relevant = dict.fromkeys(own, 1) if row["answerable"] else {}
        kinds[row["answerable"]].append(Question(str(row["_id"]), row["question"], relevant, row))
    return Collection(Corpus(folder.name, documents), kinds[True], kinds[False])


def has(folder: Path, name: str) -> bool:
    return any((folder / f"{name}{suffix}").exists() for suffix in (".jsonl", ".jsonl.gz"))


def rows(folder: Path, name: str, *, needs: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The objects of `name.jsonl` or `name.jsonl.gz`, each of which needs these fields."""
    for path in (folder / f"{name}.jsonl.gz", folder / f"{name}.jsonl"):
        if path.exists():
            yield from objects(path, needs=needs)
            return
    raise InputError(f"{folder} has neither {name}.jsonl nor {name}.jsonl.gz.")


def objects(path: Path, *, needs: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The objects of a file, one on each line; the name says whether it is compressed."""
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                row = json.loads(line)
                if missing := [name for name in needs if not isinstance(row, dict) or name not in row]:
                    raise InputError(f"{path}, line {number}: needs an object with {', '.join(missing)}.")
                yield row
    except json.JSONDecodeError as exc:
        raise InputError(f"{path}, line {number}: not JSON: {exc.msg}.") from None
    except (gzip.BadGzipFile, EOFError, UnicodeDecodeError) as exc:
        raise InputError(f"{path} cannot be read: {exc}.") from None


def url_of(document: str) -> str:
    return f"corpus:///{quote(document, safe='')}"


def document_of(url: str) -> str:
    return unquote(url.removeprefix("corpus:///"))
