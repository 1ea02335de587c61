"""The evidence check: whether the passages answer the question, and which of their spans do so best.

It runs on the retrieved passages, before a language model is called.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bythebook.chunking import with_headings
from bythebook.chunking.spans import Span, split_spans
from bythebook.index.terms import SATURATION, weighted_overlap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bythebook.embeddings import Embedder
    from bythebook.index.provider import IndexSnapshot
    from bythebook.retrieval import RetrievalResult
    from bythebook.retrieval.retriever import Retrieval


MAX_EMBEDDED_SPANS = 4
"""Spans that are embedded and compared with the question where no reranker reads them: the best by lexical score."""
MAX_READ_SPANS = 24
READ_PASSAGES = 3
"""The reranker reads the spans of this many passages."""
PAIR_TOKENS = 16
"""The usual tokens of a question, which is read again with each span."""
PASSAGE_WEIGHT = 0.3
"""The weight of the passage's logit in the score of a span that was read."""
_CHARACTERS_PER_TOKEN = 4
_BATCH = 4
LEAST_LOGIT = -12.0
"""About the least that the reranker gives."""
_MAX_PASSAGES = 5
_MOST_LOG_ODDS = 4.0

_WORD = re.compile(r"\w[\w.'’-]*")
_EVERYDAY_WORDS = frozenset(json.loads(Path(__file__).with_suffix(".json").read_bytes())["everyday_words"].split())
MAX_TERM_WORDS = 4
"""The longest term of a definition. A longer phrase is about a property, such as the default size of a chunk."""

_DEFINITION_QUESTION = re.compile(
    r"\W*(?:(?:so|and|but|ok|okay|please|(?:can|could) you|tell me|explain|describe)\W+)*"
    r"(?:(?:what|who)(?:\s+exactly)?(?:['’]s|\s+(?:is|are|was|were))|what\s+(?:do|does)(?=.*\bmean\W*$)|define)\s+"
    r"(?:(?:an?|the)\s+)?(?P<term>\S.*?)(?:\s+mean)?\W*",
    re.IGNORECASE,
)
_PROPERTY = re.compile(r"\b(?:of|for|in|on|at|to|from|with|by|between|when|if|that|which|and|or)\b", re.IGNORECASE)
_PRONOUNS = frozenset("it they this that these those he she".split())
"""A resolved follow-up has the referent after the pronoun: "What is it? Isaac Sim"."""
_DEFINING_VERB = r"(?:is|are|was|were|means?|refers?\s+to|stands?\s+for|describes?|denotes?|represents?|serves?\s+as)\b"


@dataclass(frozen=True, slots=True)
class EvidenceFeatures:
    """The inputs of the logistic models."""

    span_cosine: float = 0.0
    """The cosine of the question and the nearest span."""
    passage_overlap: float = 0.0
    """The share of the question's terms, weighted by idf, that occur in the first three passages."""
    passage_logit: float = 0.0
    """The reranker's best logit of a passage."""
    span_logit: float = 0.0
    """The reranker's best logit of a span."""
    span_entailment: float = 0.0
    """The log-odds of the entailment model for the question and the best span."""
    unknown_word: float = 0.0
    """1 if a word of the question occurs nowhere in the book."""


class ScoredSpan(NamedTuple):
    """A span of a passage with its score for the question."""

    result: RetrievalResult
    span: Span
    score: float

    @property
    def text(self) -> str:
        return self.result.text[self.span.start : self.span.end]


@dataclass(frozen=True, slots=True)
class CoverageRule:
    """A logistic model: the probability that the book covers the question."""

    bias: float
    weights: EvidenceFeatures

    def __call__(self, features: EvidenceFeatures) -> float:
        total = self.bias + sum(getattr(self.weights, name) * getattr(features, name) for name in _FEATURES)
        return 1 / (1 + math.exp(-total))


class Evidence(NamedTuple):
    """The features of a question's passages, and their best spans."""

    features: EvidenceFeatures
    spans: tuple[ScoredSpan, ...]
    """Best first."""
    rule: CoverageRule

    @property
    def confidence(self) -> float:
        """The probability that the book covers the question."""
        return self.rule(self.features)


# Fitted to three collections together: see docs/quality.md. `python -m bench.fitting refusal` fits them again and
# evaluates them on a collection that was held out.
_FEATURES = EvidenceFeatures.__slots__
READ_RULE = CoverageRule(
    1.2, EvidenceFeatures(passage_logit=0.48, span_logit=0.22, span_entailment=0.43, unknown_word=-1.4)
)
"""For passages that the reranker has read. It says whether a passage is about the question. The entailment model, which
reads the question like a claim, tells an answer from what only has the same subject."""
COSINE_RULE = CoverageRule(-17.9, EvidenceFeatures(span_cosine=21.9, passage_overlap=3.7))
"""For passages that it has not read: there is no reranker, or too many questions are answered at once."""
RULES = f"{READ_RULE} {COSINE_RULE} {MAX_READ_SPANS} {MAX_EMBEDDED_SPANS}"
"""The serialised rules. A cutoff that was calibrated for other rules is invalid."""


def lexical_evidence(snapshot: IndexSnapshot, retrieval: Retrieval) -> Evidence:
    """The evidence before any span is read or embedded."""
    results = retrieval.context.results[:_MAX_PASSAGES]
    if not results:
        return Evidence(EvidenceFeatures(), (), COSINE_RULE)
    query = retrieval.context.query
    wanted = snapshot.idf_weights(snapshot.bm25.terms(query))
    spans = _rank_lexically(snapshot, results, wanted)
    terms = snapshot.bm25.terms
    features = EvidenceFeatures(
        passage_overlap=weighted_overlap(
            wanted,
            {term for result in results[:3] for term in terms(with_headings(result.heading_hierarchy, result.text))},
        ),
        passage_logit=max(retrieval.reading.logits.values()) if retrieval.reading else 0.0,
        span_logit=LEAST_LOGIT,
        unknown_word=float(_has_unknown_word(snapshot, query)),
    )
    return Evidence(features, tuple(spans), READ_RULE if retrieval.reading else COSINE_RULE)


def _has_unknown_word(snapshot: IndexSnapshot, query: str) -> bool:
    """Whether the question names something that the book does not. Words that any question may have do not count."""
    terms = [snapshot.bm25.terms(word) for word in _WORD.findall(query) if word.lower() not in _EVERYDAY_WORDS]
    counts = snapshot.catalog.term_counts(frozenset().union(*terms))
    return any(word and not any(counts.get(term) for term in word) for word in terms)


async def score_evidence(
    snapshot: IndexSnapshot, embedder: Embedder, retrieval: Retrieval, *, sure: float = math.inf
) -> Evidence:
    """Compare the best spans with the question: the reranker reads them, or they are embedded.

    It stops when the confidence reaches `sure`, for callers that need to know whether the book covers the question
    but not which spans answer it.
    """
    evidence = lexical_evidence(snapshot, retrieval)
    read = retrieval.reading
    spans = _affordable_spans(evidence.spans, read.budget.block_tokens) if read else evidence.spans[:MAX_EMBEDDED_SPANS]
    features, scored = evidence.features, list[ScoredSpan]()
    for first in range(0, len(spans), _BATCH):
        if first and evidence.rule(features) >= sure:
            break
        batch = spans[first : first + _BATCH]
        texts = [entry.text for entry in batch]
        if read:
            scores = await read.model.score([(retrieval.context.query, text) for text in texts])
            features = replace(features, span_logit=max(features.span_logit, *scores))
            scored += [
                entry._replace(score=score + PASSAGE_WEIGHT * read.logits.get(entry.result.chunk_id, 0.0))
                for entry, score in zip(batch, scores, strict=True)
            ]
            if read.entailment:
                best = max(scored, key=lambda entry: entry.score)
                (log_odds,) = await read.entailment.score([(retrieval.context.query, best.text)])
                features = replace(features, span_entailment=min(max(log_odds, -_MOST_LOG_ODDS), _MOST_LOG_ODDS))
        else:
            question = await embedder.embed_query(retrieval.context.query)
            scores = [float(vector @ question) async for vector in embedder.embed_documents(texts)]
            features = replace(features, span_cosine=min(max(features.span_cosine, *scores), 1.0))
            scored += [
                entry._replace(score=entry.score + score / 2) for entry, score in zip(batch, scores, strict=True)
            ]
    return Evidence(features, tuple(sorted(scored, key=lambda entry: -entry.score)) or evidence.spans, evidence.rule)


def _affordable_spans(spans: Sequence[ScoredSpan], tokens: int) -> list[ScoredSpan]:
    """The spans of the first passages that fit into the budget, best by lexical score first."""
    chosen: list[ScoredSpan] = []
    for entry in spans:
        if entry.result.position <= READ_PASSAGES and len(chosen) < MAX_READ_SPANS:
            tokens -= PAIR_TOKENS + len(entry.text) // _CHARACTERS_PER_TOKEN
            if tokens < 0:
                break
            chosen.append(entry)
    return chosen


def _rank_lexically(
    snapshot: IndexSnapshot,
    results: Sequence[RetrievalResult],
    wanted: dict[int, float],
) -> list[ScoredSpan]:
    """Every span of the passages, scored by its terms and the rank of its passage, best first."""
    ideal = (SATURATION + 1) * sum(wanted.values()) or 1.0
    top = max(result.rerank_score for result in results) or 1.0
    scored: list[ScoredSpan] = []
    for result in results:
        for unit in split_spans(result.text, fence=result.fence):
            text = result.text[unit.start : unit.end]
            weights = snapshot.bm25.term_weights(text)
            lexical = sum(wanted[term] * weight for term, weight in weights.items() if term in wanted) / ideal
            score = 0.5 * lexical + 0.5 * result.rerank_score / top
            scored.append(ScoredSpan(result, unit, score=score * (0.5 if text.endswith("?") else 1.0)))
    return sorted(scored, key=lambda entry: (-entry.score, entry.result.position, entry.span.start))


@lru_cache(maxsize=256)
def definition_pattern(question: str) -> re.Pattern[str] | None:
    """A pattern for the beginning of a sentence that defines the term in the question; None for other questions."""
    match = _DEFINITION_QUESTION.fullmatch(question)
    term = match["term"] if match else ""
    words = [word for word in re.findall(r"\w+", term) if word.lower() not in _PRONOUNS]
    if not 0 < len(words) <= MAX_TERM_WORDS or _PROPERTY.search(term):
        return None
    # "A winch", "winches", "The Dunmore winch (1931)", "the drum with its rope (winch)".
    singular = re.sub(r"(?<=\w{3})(?:(?<=[sxz])es|(?<=[cs]h)es|s)$", "", words[-1])
    name = r"\W+".join(map(re.escape, [*words[:-1], singular])) + "(?:e?s){0,2}"
    named = rf"(?:\w+[ -]){{0,2}}{name}(?:\s*\([^()]*\))?|[^.:;]{{2,80}}\({name}\)"
    return re.compile(rf"\W*(?:(?:an?|the)\s+)?(?:{named})[\"”’'*_`]*,?\s+(?:\w+ly\s+)?{_DEFINING_VERB}", re.IGNORECASE)
