"""`python -m bythebook.evals retrieval FOLDER ...` or `proof FILE ...`: one JSON object for each collection."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from pathlib import Path

from bythebook.assemble import Book
from bythebook.evals import proof, retrieval
from bythebook.evals.corpus import Corpus
from bythebook.settings import Settings


async def _retrieval(folder: Path, *, limit: int) -> dict[str, object]:
    corpus = Corpus(folder)
    settings = Settings.load()
    # Each collection is a book of its own, kept so that the next run need not embed it again.
    book_folder = settings.data_dir / "evals" / folder.name
    async with Book.open(Settings.load({"data_dir": book_folder}), say=_say) as book:
        report = await book.ingest(corpus, progress=_show)
        async with book.edition() as edition:
            questions = [question for question in corpus.questions() if question.relevant][:limit]
            figures = await retrieval.measure(edition, book.embedder, questions, progress=_show)
    return {"collection": folder.name, "documents": report.pages, "chunks": report.chunks, **figures}


async def _proof(file: Path, *, limit: int) -> dict[str, object]:
    async with Book.open(Settings.load(), say=_say) as book:
        figures = await proof.measure(proof.Pairs(file, limit=limit), book.embedder, progress=_show)
    return {"collection": file.parent.name, **figures}


async def _fit_proof(files: list[Path], *, limit: int) -> dict[str, object]:
    async with Book.open(Settings.load(), say=_say) as book:
        collections = [proof.Pairs(file, limit=limit) for file in files]
        figures = await proof.fit(collections, book.embedder, progress=_show)
    return {"collections": [file.parent.name for file in files], **figures}


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def _show(stage: str, done: int, total: int) -> None:
    if sys.stderr.isatty() and (done % 20 == 0 or done == total):
        sys.stderr.write(f"\r{stage} {done}/{total} " + ("\n" if done == total else ""))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bythebook.evals", description=__doc__)
    parser.add_argument("what", choices=["retrieval", "proof", "fit-proof"])
    parser.add_argument(
        "paths", nargs="+", type=Path, help="folders with corpus, queries and qrels, or files of claims with evidence"
    )
    parser.add_argument("--limit", type=int, default=sys.maxsize, help="ask only the first questions")
    options = parser.parse_args()
    if options.what == "fit-proof":
        _print(asyncio.run(_fit_proof(options.paths, limit=options.limit)))
        return
    measured = {"retrieval": _retrieval, "proof": _proof}[options.what]
    for path in options.paths:
        _print(asyncio.run(measured(path, limit=options.limit)))


def _print(figures: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(figures) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
