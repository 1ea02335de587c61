"""How well follow-up questions are understood: by what they find, and by the words a person would have added."""

from __future__ import annotations

from collections import defaultdict
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from bythebook.conversations.followups import Exchange
from bythebook.conversations.followups.rule import standalone
from bythebook.evals.corpus import document_of, rows
from bythebook.evals.retrieval import ndcg, score
from bythebook.passages import EVERYWHERE
from bythebook.passages.ranking import added, rank
from bythebook.passages.retriever import CANDIDATES
from bythebook.passages.words import Words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from bythebook.evals.corpus import Question
    from bythebook.ingest import Progress
    from bythebook.passages.shelf import Edition
    from bythebook.vectors import Embedder

    Turn = tuple[str, str, list[Exchange]]
    """A question, how a person made it stand alone, and what was said before."""

_SPEAKER = "|user|:"


async def measure(
    edition: Edition, embedder: Embedder, questions: Sequence[Question], *, progress: Progress
) -> dict[str, object]:
    """What the last turn finds alone, made whole by us in one text or several searches, and rewritten by a person."""
    asked = [question for question in questions if question.relevant]
    runs: dict[str, dict[str, list[str]]] = defaultdict(dict)
    for done, question in enumerate(asked, start=1):
        last, rewrite, history = _turn_of(question)
        ours = standalone(last, history)
        texts = {"last_turn": (last,), "ours": (ours.text,), "ours_added": ours.searches, "rewrite": (rewrite,)}
        for name, searches in texts.items():
            runs[name][question.id] = await _documents(edition, embedder, searches)
        progress("asking", done, len(asked))
    return {"questions": len(asked), **{name: score(asked, run) for name, run in runs.items()}, **_gains(asked, runs)}


def compare(turns: Iterable[Turn]) -> dict[str, object]:
    """Our text beside a person's rewrite, by the terms the index would look up; first turns are left out."""
    words = Words(100.0)
    overlaps: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    self_contained: list[bool] = []
    dependent: list[bool] = []
    for question, rewrite, history in turns:
        if not history:
            continue
        text, wanted = standalone(question, history).text, words.terms(rewrite)
        overlaps["last_turn"].append(_overlap(words.terms(question), wanted))
        overlaps["ours"].append(_overlap(words.terms(text), wanted))
        complete = wanted <= words.terms(question)
        (self_contained if complete else dependent).append((text == question) is complete)
    figures = {name: dict(zip(("precision", "recall", "f1"), _means(o), strict=True)) for name, o in overlaps.items()}
    return {
        "questions": len(self_contained) + len(dependent),
        **figures,
        "self_contained": {"questions": len(self_contained), "left_alone": _share(self_contained)},
        "dependent": {"questions": len(dependent), "added_to": _share(dependent)},
    }


def turns(folder: Path) -> Iterable[Turn]:
    """The conversations of a folder without a corpus: examples.jsonl as CANARD has them, or turns.jsonl as CAsT has."""
    if any(folder.glob("examples.jsonl*")):
        for row in rows(folder, "examples"):
            title, section, *said = row["history"]
            # The article and its section are given to whoever asks, as a first question would be.
            yield row["question"], row["rewrite"], [Exchange(f"{title}, {section}"), *_exchanges(said, step=2)]
        return
    for row in rows(folder, "turns"):
        number = int(row["_id"].rsplit("_", 1)[1])
        # Only some years have the answers between the questions.
        step = 2 if len(row["history"]) > number - 1 else 1
        yield row["question"], row["rewrite"], _exchanges(row["history"], step=step)


def _exchanges(said: Sequence[str], *, step: int) -> list[Exchange]:
    answers = [*said[1::step], ""] if step == 2 else [""] * len(said)
    return [Exchange(question, answer) for question, answer in zip(said[::step], answers, strict=False)]


def _turn_of(question: Question) -> Turn:
    given: dict[str, Any] = question.given
    said = [text.strip() for text in given["history_questions"].split(_SPEAKER) if text.strip()]
    last, rewrite = (text.replace(_SPEAKER, "").strip() for text in (question.text, given["rewrite"]))
    return last, rewrite, [Exchange(text) for text in said[:-1]]


async def _documents(edition: Edition, embedder: Embedder, searches: Sequence[str]) -> list[str]:
    """The documents the searches find together, best first: the scores a chunk has in each are added up."""
    rankings = [
        rank(await edition.store.candidates(await embedder.query(text), text, limit=CANDIDATES, filters=EVERYWHERE))
        for text in searches
    ]
    ids = [chunk_id for chunk_id, _ in added(rankings)]
    passages = await edition.store.fetch(ids)
    return list(dict.fromkeys(document_of(passages[chunk_id].chunk.url) for chunk_id in ids))


def _gains(asked: Sequence[Question], runs: dict[str, dict[str, list[str]]]) -> dict[str, object]:
    """How much nDCG@10 each gains over the last turn, with its 95 % interval, as a part of what the rewrite gains."""
    each = {name: [ndcg(question.relevant, run[question.id]) for question in asked] for name, run in runs.items()}
    gains = {
        name: [mine - last for mine, last in zip(values, each["last_turn"], strict=True)]
        for name, values in each.items()
        if name != "last_turn"
    }
    whole = fmean(gains["rewrite"])
    # Where a person's rewrite finds no more than the last turn there is no way to have gone a share of.
    shares = {name: round(fmean(gains[name]) / whole, 3) if whole > 0 else None for name in ("ours", "ours_added")}
    return {"gain": {name: _interval(values) for name, values in gains.items()}, "share_of_the_way": shares}


def _interval(values: Sequence[float]) -> dict[str, float]:
    mean = fmean(values)
    reach = 1.96 * stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return {"mean": round(mean, 4), "low": round(mean - reach, 4), "high": round(mean + reach, 4)}


def _share(right: Sequence[bool]) -> float | None:
    return round(fmean(right), 4) if right else None


def _overlap(found: frozenset[int], wanted: frozenset[int]) -> tuple[float, float, float]:
    """Precision, recall and their harmonic mean."""
    both = len(found & wanted)
    precision = both / len(found) if found else float(not wanted)
    recall = both / len(wanted) if wanted else 1.0
    return precision, recall, 2 * precision * recall / (precision + recall) if both else float(not found and not wanted)


def _means(values: Sequence[tuple[float, float, float]]) -> list[float]:
    return [round(fmean(column), 4) for column in zip(*values, strict=True)]
