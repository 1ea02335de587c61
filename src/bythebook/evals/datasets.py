"""Datasets of documents and questions in the layout of the BEIR benchmark, as sources of pages."""

import gzip
import hashlib
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from bythebook.errors import InputError
from bythebook.sources import ListedPage, Page, SkippedPage
from bythebook.sources.document import compose
from bythebook.sources.projects import Style
from bythebook.sources.readers import read


@dataclass(frozen=True, slots=True)
class EvalQuestion:
    """A question with its relevant documents and the other fields of its row."""

    id: str
    text: str
    relevant: dict[str, int]
    given: dict[str, Any]


class Corpus:
    """The documents of a dataset as a page source."""

    def __init__(self, name: str, documents: Mapping[str, dict[str, Any]]) -> None:
        self._name = name
        self._documents = {key: row for key, row in documents.items() if row["text"].strip()}

    @property
    def name(self) -> str:
        return f"corpus:{self._name}"

    async def listing(self) -> AsyncIterator[ListedPage | SkippedPage]:
        for key, row in self._documents.items():
            stamp = hashlib.sha256(json.dumps(row).encode()).hexdigest()
            yield ListedPage(document_url(key), key, stamp)

    async def read(self, listed: ListedPage) -> Page:
        row = self._documents[listed.path]
        text, blocks = compose(read(row["text"], suffix=".md", style=Style.PLAIN).parts)
        return Page(listed.url, row.get("title", ""), text, blocks)

    def titles(self) -> dict[str, str]:
        """The title of each document, or its id if it has none."""
        return {key: row.get("title") or key for key, row in self._documents.items()}

    def only(self, keep: set[str]) -> None:
        """Keep only these documents."""
        self._documents = {key: row for key, row in self._documents.items() if key in keep}


@dataclass(frozen=True, slots=True)
class Dataset:
    """Documents, the questions that they answer, and the questions that they do not answer."""

    corpus: Corpus
    answered: list[EvalQuestion]
    impossible: list[EvalQuestion]


def load_dataset(folder: Path) -> Dataset:
    """Load a folder: corpus, queries and qrels in the layout of BEIR, or examples with their passages."""
    if has_file(folder, "examples"):
        return _load_examples(folder)
    corpus = Corpus(folder.name, {str(row["_id"]): row for row in read_rows(folder, "corpus", needs=("_id", "text"))})
    queries = list(read_rows(folder, "queries", needs=("_id", "text")))
    relevant = _read_qrels(folder)
    return Dataset(
        corpus,
        [_make_question(row, relevant[str(row["_id"])]) for row in queries if str(row["_id"]) in relevant],
        [_make_question(row, {}) for row in queries if row.get("is_impossible")],
    )


def _make_question(row: dict[str, Any], relevant: dict[str, int]) -> EvalQuestion:
    return EvalQuestion(str(row["_id"]), str(row["text"]), relevant, row)


def _read_qrels(folder: Path) -> dict[str, dict[str, int]]:
    """Read the graded relevance of documents by question."""
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


def _load_examples(folder: Path) -> Dataset:
    """Load questions with their passages and whether these answer them, in the layout of CLAPNQ."""
    documents: dict[str, dict[str, Any]] = {}
    kinds: dict[bool, list[EvalQuestion]] = {True: [], False: []}
    for row in read_rows(folder, "examples", needs=("_id", "question", "answerable", "passages")):
        own = {f"{row['_id']}#{number}": passage for number, passage in enumerate(row["passages"])}
        documents.update(own)
        relevant = dict.fromkeys(own, 1) if row["answerable"] else {}
        kinds[row["answerable"]].append(EvalQuestion(str(row["_id"]), row["question"], relevant, row))
    return Dataset(Corpus(folder.name, documents), kinds[True], kinds[False])


def has_file(folder: Path, name: str) -> bool:
    return any((folder / f"{name}{suffix}").exists() for suffix in (".jsonl", ".jsonl.gz"))


def read_rows(folder: Path, name: str, *, needs: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Read `name.jsonl` or `name.jsonl.gz`. Every row must have these fields."""
    for path in (folder / f"{name}.jsonl.gz", folder / f"{name}.jsonl"):
        if path.exists():
            yield from read_objects(path, needs=needs)
            return
    raise InputError(f"{folder} has neither {name}.jsonl nor {name}.jsonl.gz.")


def read_objects(path: Path, *, needs: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Read the rows of a JSON Lines file, which may be compressed with gzip."""
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


_URN = "urn:bythebook:corpus:"


def document_url(document: str) -> str:
    return f"{_URN}{quote(document, safe='')}"


def document_id(url: str) -> str:
    return unquote(url.removeprefix(_URN))
