"""`python -m bythebook.evals retrieval|followups FOLDER ...`: one JSON object for each collection."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from itertools import islice
from pathlib import Path

from bythebook.assemble import Book
from bythebook.evals import followups, retrieval
from bythebook.evals.corpus import Corpus
from bythebook.settings import Settings


def _measured(what: str, folder: Path, *, limit: int) -> dict[str, object]:
    if what == "followups" and not any(folder.glob("corpus.jsonl*")):
        return {"collection": folder.name, **followups.compare(islice(followups.turns(folder), limit))}
    return asyncio.run(_asked(what, folder, limit=limit))


async def _asked(what: str, folder: Path, *, limit: int) -> dict[str, object]:
    measure = {"retrieval": retrieval.measure, "followups": followups.measure}[what]
    corpus = Corpus(folder)
    settings = Settings.load()
    # Each collection is a book of its own, kept so that the next run need not embed it again.
    book_folder = settings.data_dir / "evals" / folder.name
    async with Book.open(Settings.load({"data_dir": book_folder}), say=_say) as book:
        report = await book.ingest(corpus, progress=_show)
        async with book.edition() as edition:
            questions = [question for question in corpus.questions() if question.relevant][:limit]
            figures = await measure(edition, book.embedder, questions, progress=_show)
    return {"collection": folder.name, "documents": report.pages, "chunks": report.chunks, **figures}


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def _show(stage: str, done: int, total: int) -> None:
    if sys.stderr.isatty() and (done % 20 == 0 or done == total):
        sys.stderr.write(f"\r{stage} {done}/{total} " + ("\n" if done == total else ""))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bythebook.evals", description=__doc__)
    parser.add_argument("what", choices=["retrieval", "followups"])
    parser.add_argument(
        "folders", nargs="+", type=Path, help="folders with corpus, queries and qrels; or with examples or turns"
    )
    parser.add_argument("--limit", type=int, default=sys.maxsize, help="ask only the first questions")
    options = parser.parse_args()
    for folder in options.folders:
        sys.stdout.write(json.dumps(_measured(options.what, folder, limit=options.limit)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
