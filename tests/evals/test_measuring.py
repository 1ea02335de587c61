"""Measuring: the figures are what they say they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bythebook import AgentRequest, Book, Settings
from bythebook.conversations.followups import Exchange
from bythebook.errors import InputError
from bythebook.evals import Wanted
from bythebook.evals.answers import contains, stands
from bythebook.evals.conversations import Task, figures, read
from bythebook.evals.datasets import collection
from bythebook.evals.followups import gains
from bythebook.evals.metrics import interval, interval_of
from bythebook.evals.refusal import kinds, score
from bythebook.evals.retrieval import averages, scores, sections
from tests.support.eval_datasets import signals, write


def _wanted(path: Path = Path(), **chosen: object) -> Wanted:
    return replace(Wanted(path, Settings(), lambda *_: None), **chosen)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("texts", "answers", "found"),
    [
        (["It was lit in 1823."], ["1823"], True),
        (["It was LIT\nin 1823."], ["lit in"], True),
        (["Nothing.", "Steam drives it."], ["coal", "steam"], True),
        (["It was lit in 1823."], ["1901"], False),
        ([], ["1823"], False),
    ],
    ids=["inside", "case and spacing do not matter", "any answer in any text", "not there", "nothing said"],
)
def test_a_text_contains_an_answer(texts: list[str], answers: list[str], *, found: bool) -> None:
    assert contains(texts, answers) is found


async def test_a_quote_stands_only_where_it_says(shelved: Path, model_folder: Path) -> None:
    async with Book.open(Settings(data_dir=shelved, model_folder=model_folder)) as book:
        (citation, *_) = (await book.ask(AgentRequest("How long does a mantle last?"))).citations
        async with book.edition() as edition:
            assert await stands(edition, citation)
            assert not await stands(edition, replace(citation, start=citation.start + 1, end=citation.end + 1))
            assert not await stands(edition, replace(citation, quote=citation.quote.swapcase()))
            assert not await stands(edition, replace(citation, chunk_id="00000000-0000-0000-0000-000000000000"))


def test_the_same_questions_are_drawn_every_time() -> None:
    wanted = _wanted(limit=5, seed=3)
    drawn = wanted.some(range(100))
    assert drawn == wanted.some(range(100)) == sorted(drawn)
    assert drawn != replace(wanted, seed=4).some(range(100))
    assert wanted.some(range(4)) == [0, 1, 2, 3]


def test_a_collection_has_questions_it_answers_and_questions_it_does_not(tmp_path: Path) -> None:
    found = collection(signals(tmp_path / "signals"))
    assert [question.id for question in found.answered] == ["1", "2"]
    assert [question.id for question in found.impossible] == ["3"]


def test_examples_with_their_passages_are_a_collection_too(tmp_path: Path) -> None:
    passages = [{"title": "Lamp", "text": "It was lit in 1823."}]
    write(
        tmp_path / "examples.jsonl",
        {"_id": 7, "question": "When was it lit?", "answerable": True, "passages": passages},
        {"_id": 8, "question": "By whom?", "answerable": False, "passages": passages},
    )
    found = collection(tmp_path)
    assert (found.answered[0].relevant, found.impossible[0].text) == ({"7#0": 1}, "By whom?")
    assert found.corpus.titles() == {"7#0": "Lamp", "8#0": "Lamp"}


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        pytest.param("corpus.jsonl", '{"_id": "a"}', "corpus.jsonl, line 1: needs an object with text", id="a field"),
        pytest.param("corpus.jsonl", "[]", "line 1: needs an object with _id, text", id="no object"),
        pytest.param("queries.jsonl", "{nonsense", "queries.jsonl, line 1: not JSON", id="no JSON"),
        pytest.param("qrels.tsv", "query\tdocument\tgrade\n1 a 1", "qrels.tsv, line 2: not a query", id="no tabs"),
    ],
)
def test_what_is_wrong_with_a_collection_is_said_with_its_line(name: str, text: str, said: str, tmp_path: Path) -> None:
    folder = signals(tmp_path / "signals")
    (folder / name).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=said):
        collection(folder)


def test_a_collection_without_documents_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"neither corpus.jsonl nor corpus.jsonl.gz"):
        collection(tmp_path)


def test_half_of_the_documents_are_left_out_by_title(tmp_path: Path) -> None:
    folder = signals(tmp_path / "signals")
    found = collection(folder)
    name, covered, foreign = kinds(found, _wanted(folder, out_of_book=True))
    assert (name, [q.id for q in covered], [q.id for q in foreign]) == ("signals-half", ["2"], ["1"])
    assert list(found.corpus.titles().values()) == ["Horn"]


def test_questions_that_must_be_refused_are_asked_for(tmp_path: Path) -> None:
    folder = signals(tmp_path / "signals")
    write(folder / "queries.jsonl", {"_id": "1", "text": "When was the lamp lit?"})
    with pytest.raises(InputError, match=r"is_impossible\. With --out-of-book"):
        kinds(collection(folder), _wanted(folder))


def test_figures_of_retrieval_are_means_over_questions(tmp_path: Path) -> None:
    questions = collection(signals(tmp_path / "signals")).answered
    told = averages(scores(questions, [["a", "b"], ["x"] * 6 + ["b"]]))
    assert told == {"ndcg_at_10": 0.6667, "recall_at_5": 0.5, "recall_at_10": 1.0, "mrr": 0.5714}


def test_a_section_is_a_hit_only_in_its_own_document(tmp_path: Path) -> None:
    questions = collection(signals(tmp_path / "signals")).answered
    named = [replace(question, given={"anchor": anchor}) for question, anchor in zip(questions, "xy", strict=True)]
    rows: list[dict[str, Any]] = [{"sections": [["b", "x"], *[["c", "y"]] * 5, ["a", "x"]]}, {"sections": []}]

    assert sections(named, rows, {("a", "x"), ("b", "x")}) == {
        "sections": {"questions": 1, "hit_at_5": 0.0, "hit_at_10": 1.0}
    }
    assert sections(questions, rows, {("a", "x")}) == {}


def test_figures_of_refusal_are_of_both_kinds() -> None:
    told = score(np.array([0.9, 0.8, 0.3, 0.7]), np.array([0.1, 0.2, 0.6, 0.75]), cutoff=0.5)
    assert told == {
        "auroc": 0.8125, "kept": 0.75, "refused": 0.5, "precision": 0.6667, "recall": 0.5, "f1": 0.5714, "cutoff": 0.5,
    }  # fmt: skip


def test_a_share_of_no_way_is_not_stated() -> None:
    def columns(rewrite: float) -> dict[str, dict[str, list[float]]]:
        means = {"last_turn": 0.2, "ours": 0.3, "rewrite": rewrite}
        return {name: {"ndcg_at_10": [mean, mean]} for name, mean in means.items()}

    assert gains(columns(0.4), seed=1)["share_of_the_way"] == 0.5
    assert gains(columns(0.1), seed=1)["share_of_the_way"] is None


def test_conversations_are_read_with_the_pool_of_their_passages(tmp_path: Path) -> None:
    said = [("user", "What is the lamp?"), ("agent", "A light."), ("user", "Who lit it?")]
    history = [{"speaker": speaker, "text": text} for speaker, text in said]
    passage = {"document_id": "a", "text": "Mary lit the lamp."}
    write(
        tmp_path / "tasks.jsonl",
        {"history": history, "contexts": [passage], "answerability": "ANSWERABLE"},
        {"history": history[:1], "contexts": [passage], "answerability": "UNANSWERABLE"},
    )
    corpus, tasks = read(tmp_path)
    assert list(corpus.titles()) == ["a"]
    assert tasks == [
        Task("Who lit it?", (Exchange("What is the lamp?", "A light."),), "ANSWERABLE"),
        Task("What is the lamp?", (), "UNANSWERABLE"),
    ]


def test_conversations_of_one_kind_cannot_be_told_apart(tmp_path: Path) -> None:
    row = {"history": [{"speaker": "user", "text": "Who?"}], "contexts": [], "answerability": "ANSWERABLE"}
    write(tmp_path / "tasks.jsonl", row)
    with pytest.raises(InputError, match="needs ANSWERABLE and UNANSWERABLE tasks; it has ANSWERABLE"):
        read(tmp_path)


def test_refusal_in_conversations_is_told_by_kind() -> None:
    kinds = ["ANSWERABLE", "ANSWERABLE", "UNANSWERABLE", "UNDERSPECIFIED", "UNDERSPECIFIED"]
    tasks = [Task("?", (), kind) for kind in kinds]
    sure = [(0.9, False), (0.2, False), (0.2, False), (0.0, True), (0.9, False)]
    seen = [{"confidence": confidence, "asked_back": back} for confidence, back in sure]
    told = figures(tasks, seen, cutoff=0.4)
    assert (told["auroc"], told["kept"], told["refused"]) == (0.75, 0.5, 1.0)
    assert told["underspecified"] == {"questions": 2, "asked_back": 0.5, "refused": 0.5}
    assert told["partial"] == {"questions": 0, "asked_back": None, "refused": None}


def _of_means(seed: int) -> list[float]:
    return interval(list(range(20)), seed=seed)


def _of_a_figure(seed: int) -> list[float]:
    values = np.arange(20.0)
    return interval_of(lambda first, _: float(first.mean()), values, values, seed=seed)


@pytest.mark.parametrize("of", [_of_means, _of_a_figure])
def test_an_interval_holds_the_figure_and_is_the_same_every_time(of: Callable[[int], list[float]]) -> None:
    low, high = of(1)
    assert low < 9.5 < high
    assert [low, high] == of(1) != of(2)
