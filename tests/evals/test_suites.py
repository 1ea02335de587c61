"""The metrics of the suites."""

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
from bythebook.evals import EvalRequest
from bythebook.evals.answers import contains_answer, is_exact_quote
from bythebook.evals.datasets import load_dataset
from bythebook.evals.followups import compute_gains
from bythebook.evals.metrics import mean_interval, two_sample_interval
from bythebook.evals.refusal import ConversationTask, compute_metrics, load_tasks, score_separation, split_questions
from bythebook.evals.retrieval import averages, score_rankings, section_hits
from tests.support.eval_datasets import signals, write


def _request(path: Path = Path(), **chosen: object) -> EvalRequest:
    return replace(EvalRequest(path, Settings(), lambda *_: None), **chosen)  # type: ignore[arg-type]


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
    assert contains_answer(texts, answers) is found


async def test_a_quote_is_exact_only_at_its_offsets(shelved: Path, model_folder: Path) -> None:
    async with Book.open(Settings(data_dir=shelved, model_folder=model_folder)) as book:
        (citation, *_) = (await book.ask(AgentRequest("How long does a mantle last?"))).citations
        async with book.snapshot() as snapshot:
            assert await is_exact_quote(snapshot, citation)
            assert not await is_exact_quote(snapshot, replace(citation, start=citation.start + 1, end=citation.end + 1))
            assert not await is_exact_quote(snapshot, replace(citation, quote=citation.quote.swapcase()))
            assert not await is_exact_quote(
                snapshot, replace(citation, chunk_id="00000000-0000-0000-0000-000000000000")
            )


def test_the_question_sample_is_reproducible() -> None:
    request = _request(limit=5, seed=3)
    drawn = request.sample(range(100))
    assert drawn == request.sample(range(100)) == sorted(drawn)
    assert drawn != replace(request, seed=4).sample(range(100))
    assert request.sample(range(4)) == [0, 1, 2, 3]


def test_a_dataset_has_answered_and_impossible_questions(tmp_path: Path) -> None:
    found = load_dataset(signals(tmp_path / "signals"))
    assert [question.id for question in found.answered] == ["1", "2"]
    assert [question.id for question in found.impossible] == ["3"]


def test_examples_with_passages_are_a_dataset(tmp_path: Path) -> None:
    passages = [{"title": "Lamp", "text": "It was lit in 1823."}]
    write(
        tmp_path / "examples.jsonl",
        {"_id": 7, "question": "When was it lit?", "answerable": True, "passages": passages},
        {"_id": 8, "question": "By whom?", "answerable": False, "passages": passages},
    )
    found = load_dataset(tmp_path)
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
def test_an_error_in_a_dataset_has_its_line(name: str, text: str, said: str, tmp_path: Path) -> None:
    folder = signals(tmp_path / "signals")
    (folder / name).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=said):
        load_dataset(folder)


def test_a_dataset_without_documents_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"neither corpus.jsonl nor corpus.jsonl.gz"):
        load_dataset(tmp_path)


def test_half_of_the_documents_are_left_out_by_title(tmp_path: Path) -> None:
    folder = signals(tmp_path / "signals")
    found = load_dataset(folder)
    name, covered, foreign = split_questions(found, _request(folder, out_of_book=True))
    assert (name, [q.id for q in covered], [q.id for q in foreign]) == ("signals-half", ["2"], ["1"])
    assert list(found.corpus.titles().values()) == ["Horn"]


def test_the_refusal_suite_needs_questions_to_refuse(tmp_path: Path) -> None:
    folder = signals(tmp_path / "signals")
    write(folder / "queries.jsonl", {"_id": "1", "text": "When was the lamp lit?"})
    with pytest.raises(InputError, match=r"is_impossible\. With --out-of-book"):
        split_questions(load_dataset(folder), _request(folder))


def test_retrieval_metrics_are_means_over_questions(tmp_path: Path) -> None:
    questions = load_dataset(signals(tmp_path / "signals")).answered
    told = averages(score_rankings(questions, [["a", "b"], ["x"] * 6 + ["b"]]))
    assert told == {"ndcg_at_10": 0.6667, "recall_at_5": 0.5, "recall_at_10": 1.0, "mrr": 0.5714}


def test_a_section_is_a_hit_only_in_its_own_document(tmp_path: Path) -> None:
    questions = load_dataset(signals(tmp_path / "signals")).answered
    named = [replace(question, given={"anchor": anchor}) for question, anchor in zip(questions, "xy", strict=True)]
    rows: list[dict[str, Any]] = [{"sections": [["b", "x"], *[["c", "y"]] * 5, ["a", "x"]]}, {"sections": []}]

    assert section_hits(named, rows, {("a", "x"), ("b", "x")}) == {
        "sections": {"questions": 1, "hit_at_5": 0.0, "hit_at_10": 1.0}
    }
    assert section_hits(questions, rows, {("a", "x")}) == {}


def test_refusal_metrics_cover_both_kinds() -> None:
    told = score_separation(np.array([0.9, 0.8, 0.3, 0.7]), np.array([0.1, 0.2, 0.6, 0.75]), cutoff=0.5)
    assert told == {
        "auroc": 0.8125, "kept": 0.75, "refused": 0.5, "precision": 0.6667, "recall": 0.5, "f1": 0.5714, "cutoff": 0.5,
    }  # fmt: skip


def test_a_share_without_a_gain_is_undefined() -> None:
    def columns(rewrite: float) -> dict[str, dict[str, list[float]]]:
        means = {"last_turn": 0.2, "ours": 0.3, "rewrite": rewrite}
        return {name: {"ndcg_at_10": [mean, mean]} for name, mean in means.items()}

    assert compute_gains(columns(0.4), seed=1)["share_of_the_way"] == 0.5
    assert compute_gains(columns(0.1), seed=1)["share_of_the_way"] is None


def test_tasks_are_loaded_with_their_passage_pool(tmp_path: Path) -> None:
    said = [("user", "What is the lamp?"), ("agent", "A light."), ("user", "Who lit it?")]
    history = [{"speaker": speaker, "text": text} for speaker, text in said]
    passage = {"document_id": "a", "text": "Mary lit the lamp."}
    write(
        tmp_path / "tasks.jsonl",
        {"history": history, "contexts": [passage], "answerability": "ANSWERABLE"},
        {"history": history[:1], "contexts": [passage], "answerability": "UNANSWERABLE"},
    )
    corpus, tasks = load_tasks(tmp_path)
    assert list(corpus.titles()) == ["a"]
    assert tasks == [
        ConversationTask("Who lit it?", (Exchange("What is the lamp?", "A light."),), "ANSWERABLE"),
        ConversationTask("What is the lamp?", (), "UNANSWERABLE"),
    ]


def test_tasks_of_one_kind_are_an_error(tmp_path: Path) -> None:
    row = {"history": [{"speaker": "user", "text": "Who?"}], "contexts": [], "answerability": "ANSWERABLE"}
    write(tmp_path / "tasks.jsonl", row)
    with pytest.raises(InputError, match="needs ANSWERABLE and UNANSWERABLE tasks; it has ANSWERABLE"):
        load_tasks(tmp_path)


def test_conversation_metrics_are_reported_by_kind() -> None:
    kinds = ["ANSWERABLE", "ANSWERABLE", "UNANSWERABLE", "UNDERSPECIFIED", "UNDERSPECIFIED"]
    tasks = [ConversationTask("?", (), kind) for kind in kinds]
    sure = [(0.9, False), (0.2, False), (0.2, False), (0.0, True), (0.9, False)]
    seen = [{"confidence": confidence, "asked_back": back} for confidence, back in sure]
    told = compute_metrics(tasks, seen, cutoff=0.4)
    assert (told["auroc"], told["kept"], told["refused"]) == (0.75, 0.5, 1.0)
    assert told["underspecified"] == {"questions": 2, "asked_back": 0.5, "refused": 0.5}
    assert told["partial"] == {"questions": 0, "asked_back": None, "refused": None}


def _of_means(seed: int) -> list[float]:
    return mean_interval(list(range(20)), seed=seed)


def _of_a_figure(seed: int) -> list[float]:
    values = np.arange(20.0)
    return two_sample_interval(lambda first, _: float(first.mean()), values, values, seed=seed)


@pytest.mark.parametrize("of", [_of_means, _of_a_figure])
def test_an_interval_contains_the_metric_and_is_reproducible(of: Callable[[int], list[float]]) -> None:
    low, high = of(1)
    assert low < 9.5 < high
    assert [low, high] == of(1) != of(2)
