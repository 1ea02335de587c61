"""The answers suite: how often the sentences of an extractive answer contain the marked answer."""

import time
from collections.abc import Sequence

from bythebook.answers.extractive import AnswerReader, compose_answer
from bythebook.answers.verification import prove
from bythebook.chunking.spans import split_spans
from bythebook.errors import InputError
from bythebook.evals import EvalRequest, EvalResult
from bythebook.evals.datasets import EvalQuestion, load_dataset
from bythebook.evals.metrics import mean_intervals, percentiles
from bythebook.evals.report import bar_chart, histogram
from bythebook.evals.retrieval import averages
from bythebook.evals.runner import BookUnderTest, Row, open_dataset
from bythebook.index import NO_FILTERS
from bythebook.index.provider import IndexSnapshot
from bythebook.retrieval import Citation, RetrievalResult
from bythebook.retrieval.evidence import score_evidence

_PASSAGES = _SENTENCES = 5
HITS = ("hit_at_1", "hit_at_2", "hit_at_3", "first_sentence", "answer")


async def measure(request: EvalRequest) -> EvalResult:
    """Hits in the best ranked sentences and in the answer. Every question is answered, even if it would be refused.

    The answer is a block; `first_sentence` is the one that it marks, which is not always the best ranked one.
    """
    dataset = load_dataset(request.path)
    marked = [question for question in dataset.answered if question.given.get("answers")]
    if not marked:
        raise InputError(f"no question in {request.path} comes with its answers.")
    questions = request.sample(marked)
    async with open_dataset(dataset.corpus, request.dataset, request) as subject:
        rows = await subject.run_questions("answers", questions, lambda question: _answer(subject, question))
    columns = {name: [float(row[name]) for row in rows] for name in HITS}
    means, intervals = averages(columns), mean_intervals(columns, seed=request.seed)
    quotes = sum(row["quotes"] for row in rows)
    times = [row["milliseconds"] - row["proving"] for row in rows]
    metrics = {
        "questions": len(questions),
        **means,
        "quotes": quotes,
        "quotes_exact": round(sum(row["exact"] for row in rows) / max(quotes, 1), 4),
        "intervals": intervals,
        "milliseconds": percentiles(times),
        "checking": {
            "milliseconds": percentiles([row["weighing"] + row["proving"] for row in rows])["p50"],
            "evidence": percentiles([row["weighing"] for row in rows]),
            "proof_of_five_sentences": percentiles([row["proving"] for row in rows]),
        },
    }
    shown = {name.replace("_", " "): (means[name], intervals[name]) for name in HITS}
    plots = (bar_chart("Answers that contain what was asked for", shown), histogram("Time to answer", times))
    return EvalResult("answers", request.dataset, metrics, plots)


async def _answer(subject: BookUnderTest, question: EvalQuestion) -> Row:
    snapshot, book = subject.snapshot, subject.book
    found = await book.retriever.retrieve(snapshot, question.text, top_k=_PASSAGES, filters=NO_FILTERS)
    weighing = time.perf_counter()
    spans = (await score_evidence(snapshot, book.reader, found)).spans
    weighed = time.perf_counter()
    ranked = [entry.text for entry in spans]
    answer = await compose_answer(AnswerReader(question.text, snapshot, found.reading), found.context.results)
    citations = answer.citations if answer else ()
    shown = [citation.quote for citation in citations]
    texts = (ranked[:1], ranked[:2], ranked[:3], [answer.sentence] if answer else [], shown)
    return {
        **{name: contains_answer(text, question.given["answers"]) for name, text in zip(HITS, texts, strict=True)},
        "quotes": len(citations),
        "exact": sum([await is_exact_quote(snapshot, citation) for citation in citations]),
        "weighing": (weighed - weighing) * 1000,
        "proving": await _time_verification(subject, found.context.results),
    }


async def _time_verification(subject: BookUnderTest, results: Sequence[RetrievalResult]) -> float:
    """The milliseconds to verify five sentences that paraphrase the passages."""
    texts = [result.text[unit.start : unit.end] for result in results for unit in split_spans(result.text)]
    reworded = [" ".join(word for index, word in enumerate(text.split()) if index % 4 != 3) for text in texts]
    chosen = reworded[:: max(len(reworded) // _SENTENCES, 1)][:_SENTENCES]
    answer = " ".join(text.rstrip(".") + "." for text in chosen)
    entailment = await subject.book.open_entailment()
    started = time.perf_counter()
    await prove(answer, results, snapshot=subject.snapshot, entailment=entailment)
    return (time.perf_counter() - started) * 1000


def contains_answer(texts: Sequence[str], answers: Sequence[str]) -> bool:
    """True if one of the texts contains one of the answers. Case and whitespace are ignored."""
    plain = [_normalize(text) for text in texts]
    return any(_normalize(answer) in text for text in plain for answer in answers)


async def is_exact_quote(snapshot: IndexSnapshot, citation: Citation) -> bool:
    """True if the chunk and the page contain the quote at its offsets."""
    passage = (await snapshot.store.fetch([citation.chunk_id])).get(citation.chunk_id)
    page = snapshot.catalog.get_page(passage.chunk.url) if passage else None
    if passage is None or page is None:
        return False
    start, end = (passage.chunk.start + offset for offset in (citation.start, citation.end))
    return passage.chunk.text[citation.start : citation.end] == citation.quote == page.text[start:end]


def _normalize(text: str) -> str:
    return " ".join(text.casefold().split())
