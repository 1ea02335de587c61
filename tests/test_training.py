"""The evidence model: it is tried on nothing it has learned from, and a score that says nothing is worth nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from training.judge import Tried, judged
from training.pairs import ANSWERS, cutter, for_training


def test_no_sentence_of_an_article_that_is_kept_aside_is_learned_from(tmp_path: Path) -> None:
    aside, ash, elm = "Alder", "Ash", "Elm"
    asked = [
        question(aside, unit(ash, "The ash bends."), unit(aside, "The alder stands.")),
        question(ash, unit(aside, "The alder stands."), unit(ash, "The ash bends."), unit(elm, "The elm falls.")),
    ]
    asked.append(question(elm))
    write(tmp_path, asked)

    learned = [pair.ids for pair in for_training(tmp_path, cutter())]

    shown = [(ash, "The ash bends."), (elm, "The elm falls.")]
    assert learned == [tuple(cutter().ids("Which tree?", second, head=ANSWERS)[0]) for second in shown]


def test_the_tokens_that_are_marked_are_those_of_the_answer(tmp_path: Path) -> None:
    said = "The 1973 oil crisis began in October 1973, when an embargo was proclaimed."
    write(tmp_path, [question("A"), question("B", unit("B", said, answer="october 1973"))])

    (pair,) = for_training(tmp_path, cutter())

    assert pair.marked is not None
    begin, end = pair.marked
    assert pair.label == 1.0
    assert pair.ids[begin:end] == tuple(cutter().ids("october 1973", ("", ""), head=ANSWERS)[0][1:-2])


@pytest.mark.parametrize(
    ("knows", "gains"), [pytest.param(3.0, True, id="it knows"), pytest.param(0.0, False, id="it draws by chance")]
)
def test_a_score_gains_only_by_what_it_knows(knows: float, *, gains: bool) -> None:
    chance = np.random.default_rng(1)
    through = chance.random(400) < 0.5
    feature = through + chance.normal(size=400)
    score = knows * through + chance.normal(size=400)
    both = [
        Tried(name, feature[:, None], score, through, chance.random(400) < 0.5, in_force=feature)
        for name in ("one", "other")
    ]

    low, high = judged(both)["one"]["with"]["difference"]

    assert (low > 0) is gains
    assert high > 0


def question(about: str, *units: dict[str, Any]) -> dict[str, Any]:
    asked = {"set": "squad2", "kind": "near misses", "covered": True, "about": about, "question": "Which tree?"}
    return {**asked, "units": list(units)}


def unit(title: str, text: str, *, answer: str = "") -> dict[str, Any]:
    return {"title": title, "text": text, "answer": answer}


def write(folder: Path, asked: list[dict[str, Any]]) -> None:
    (folder / "asked.jsonl").write_text("\n".join(map(json.dumps, asked)), encoding="utf-8")
    (folder / "claimed.jsonl").write_text("", encoding="utf-8")
