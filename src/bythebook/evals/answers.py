"""How often the sentences of an answer without a model contain what a person marked as the answer."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from bythebook.answers.extractive import cite, extract
from bythebook.answers.verification import prove
from bythebook.chunking.spans import units
from bythebook.errors import InputError
from bythebook.evals import Measured
from bythebook.evals.datasets import collection
from bythebook.evals.metrics import intervals, percentiles
from bythebook.evals.report import bars, spread
from bythebook.evals.retrieval import averages
from bythebook.evals.runner import opened
from bythebook.index import EVERYWHERE
from bythebook.retrieval.evidence import weigh

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bythebook.evals import Wanted
    from bythebook.evals.datasets import Question
    from bythebook.evals.runner import Row, Subject
    from bythebook.index.provider import Edition
    from bythebook.retrieval import Citation, RetrievalResult

_PASSAGES = _SENTENCES = 5
HITS = ("hit_at_1", "hit_at_2", "hit_at_3", "told_first", "told")


async def measure(wanted: Wanted) -> Measured:
    """Hits among the best ranked sentences, and in what a reader is told; each question is answered, covered or not.

    An answer puts the sentences of a passage in the passage's order, so what is told first need not rank first.
    """
    found = collection(wanted.path)
    marked = [question for question in found.answered if question.given.get("answers")]
    if not marked:
        raise InputError(f"no question in {wanted.path} comes with its answers.")
    questions = wanted.some(marked)
    async with opened(found.corpus, wanted.collection, wanted) as subject:
        rows = await subject.each("answers", questions, lambda question: _look(subject, question))
    columns = {name: [float(row[name]) for row in rows] for name in HITS}
    means, sure = averages(columns), intervals(columns, seed=wanted.seed)
    quotes = sum(row["quotes"] for row in rows)
    times = [row["milliseconds"] - row["proving"] for row in rows]
    figures = {
        "questions": len(questions),
        **means,
        "quotes": quotes,
        "quotes_exact": round(sum(row["exact"] for row in rows) / max(quotes, 1), 4),
        "intervals": sure,
        "milliseconds": percentiles(times),
        "checking": {
            "milliseconds": percentiles([row["weighing"] + row["proving"] for row in rows])["p50"],
            "evidence": percentiles([row["weighing"] for row in rows]),
            "proof_of_five_sentences": percentiles([row["proving"] for row in rows]),
        },
    }
    shown = {name.replace("_", " "): (means[name], sure[name]) for name in HITS}
    plots = (bars("Answers that contain what was asked for", shown), spread("Time to answer", times))
    return Measured("answers", wanted.collection, figures, plots)


async def _look(subject: Subject, question: Question) -> Row:
    edition, book = subject.edition, subject.book
    found = await book.retriever.retrieve(edition, question.text, top_k=_PASSAGES, filters=EVERYWHERE)
    weighing = time.perf_counter()
    closely = (await weigh(edition, book.reader, found)).units
    weighed = time.perf_counter()
    ranked = [entry.text for entry in closely]
    quotes = extract(closely, edition.words)
    told = [quote.text for quote in quotes]
    texts = (ranked[:1], ranked[:2], ranked[:3], told[:1], told)
    citations = cite(quotes)[1] if quotes else ()
    return {
        **{name: contains(said, question.given["answers"]) for name, said in zip(HITS, texts, strict=True)},
        "quotes": len(citations),
        "exact": sum([await stands(edition, citation) for citation in citations]),
        "weighing": (weighed - weighing) * 1000,
        "proving": await _proving(subject, found.context.results),
    }


async def _proving(subject: Subject, results: Sequence[RetrievalResult]) -> float:
    """The milliseconds it takes to prove five sentences that say what the passages say, not quite in their words."""
    texts = [result.text[unit.start : unit.end] for result in results for unit in units(result.text)]
    said = [" ".join(word for place, word in enumerate(text.split()) if place % 4 != 3) for text in texts]
    answer = " ".join(text.rstrip(".") + "." for text in said[:: max(len(said) // _SENTENCES, 1)][:_SENTENCES])
    started = time.perf_counter()
    await prove(answer, results, edition=subject.edition, embedder=subject.book.reader)
    return (time.perf_counter() - started) * 1000


def contains(texts: Sequence[str], answers: Sequence[str]) -> bool:
    """Whether one of the answers stands in one of the texts; case and spacing do not matter."""
    plain = [_plain(text) for text in texts]
    return any(_plain(answer) in text for text in plain for answer in answers)


async def stands(edition: Edition, citation: Citation) -> bool:
    """Whether the quote stands at its offsets, in its chunk and in its page."""
    passage = (await edition.store.fetch([citation.chunk_id])).get(citation.chunk_id)
    page = edition.catalogue.page(passage.chunk.url) if passage else None
    if passage is None or page is None:
        return False
    start, end = (passage.chunk.start + offset for offset in (citation.start, citation.end))
    return passage.chunk.text[citation.start : citation.end] == citation.quote == page.text[start:end]


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
