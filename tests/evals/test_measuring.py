"""Measuring: the figures are what they say they are, and the command prints them."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bythebook import AgentRequest, Book, Settings
from bythebook.conversations.followups import Exchange
from bythebook.errors import InputError
from bythebook.evals.__main__ import main
from bythebook.evals.answers import contains, stands
from bythebook.evals.conversations import Task, figures, interval, read
from bythebook.evals.corpus import questions_in
from bythebook.evals.measures import Wanted
from bythebook.passages.evidence import Features

SURE, UNSURE = Features(1.0, 1.0, 1.0, 1.0), Features(0.1, 0.1, 0.1, 0.1)
NOTHING = Features(0.0, 0.0, 0.0, 0.0)


def _write(file: Path, *rows: object) -> None:
    file.write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")


def _collection(folder: Path) -> Path:
    folder.mkdir()
    lamp = "The lamp was lit in 1823. Every keeper trims the wick at dawn. Oil is brought by boat."
    horn = "The horn sounds twice a minute. It is driven by steam. Nobody sleeps when it sounds."
    _write(folder / "corpus.jsonl", {"_id": "a", "title": "Lamp", "text": lamp}, {"_id": "b", "text": horn})
    _write(
        folder / "queries.jsonl",
        {"_id": "1", "text": "When was the lamp lit?", "answers": ["1823"]},
        {"_id": "2", "text": "What drives the horn?", "answers": ["steam"]},
        {"_id": "3", "text": "What does nobody judge?", "answers": []},
    )
    (folder / "qrels.tsv").write_text("query\tdocument\tgrade\n1\ta\t1\n2\tb\t1\n", encoding="utf-8")
    return folder


def _evals(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *arguments: object) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["evals", *map(str, arguments)])
    main()


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
    wanted = Wanted((), lambda *_: None, limit=5, seed=3)
    drawn = wanted.some(range(100))
    assert drawn == wanted.some(range(100)) == sorted(drawn)
    assert drawn != replace(wanted, seed=4).some(range(100))
    assert wanted.some(range(4)) == [0, 1, 2, 3]


def test_only_questions_that_were_judged_are_asked(tmp_path: Path) -> None:
    assert [question.id for question in questions_in(_collection(tmp_path / "signals"))] == ["1", "2"]


def test_conversations_are_read_with_the_pool_of_their_passages(tmp_path: Path) -> None:
    said = [("user", "What is the lamp?"), ("agent", "A light."), ("user", "Who lit it?")]
    history = [{"speaker": speaker, "text": text} for speaker, text in said]
    passage = {"document_id": "a", "text": "Mary lit the lamp."}
    _write(
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
    _write(tmp_path / "tasks.jsonl", row)
    with pytest.raises(InputError, match="needs ANSWERABLE and UNANSWERABLE tasks; it has ANSWERABLE"):
        read(tmp_path)


def test_refusal_in_conversations_is_told_by_kind() -> None:
    kinds = ["ANSWERABLE", "ANSWERABLE", "UNANSWERABLE", "UNDERSPECIFIED", "UNDERSPECIFIED"]
    tasks = [Task("?", (), kind) for kind in kinds]
    told = figures(tasks, [SURE, UNSURE, UNSURE, NOTHING, SURE], cutoff=0.4, seed=1)
    assert (told["auroc"], told["kept"], told["refused"]) == (0.75, 0.5, 1.0)
    assert told["underspecified"] == {"questions": 2, "asked_back": 0.5, "refused": 0.5}
    assert told["partial"] == {"questions": 0, "asked_back": None, "refused": None}


def test_an_interval_holds_the_figure_and_is_the_same_every_time() -> None:
    values = np.arange(20.0)
    low, high = interval(lambda first, _: float(first.mean()), values, values, seed=1)
    assert low < values.mean() < high
    assert [low, high] == interval(lambda first, _: float(first.mean()), values, values, seed=1)


def test_answers_are_measured_as_one_json_object(
    model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BYTHEBOOK_MODEL_FOLDER", str(model_folder))
    _evals(monkeypatch, tmp_path, "answers", _collection(tmp_path / "signals"), "--json")
    told = json.loads(capsys.readouterr().out)
    assert (told["measure"], told["collection"], told["questions"]) == ("answers", "signals", 2)
    assert (told["hit_at_3"], told["quotes_exact"]) == (1.0, 1.0)


def test_quick_says_what_is_missing_and_measures_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "trec_cast").mkdir()
    turn = {"question": "Who lit it?", "rewrite": "Who lit the lamp?", "history": ["What is the lamp?"]}
    _write(tmp_path / "trec_cast" / "turns.jsonl", {"_id": "1_2", **turn})
    _evals(monkeypatch, tmp_path, "quick", tmp_path)
    heard = capsys.readouterr()
    assert heard.err.count("so this is not measured") == 5
    assert heard.out.startswith("followups trec_cast\n  questions                    1\n")


def test_a_folder_that_is_not_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        _evals(monkeypatch, tmp_path, "retrieval", tmp_path / "nowhere")
    assert left.value.code == 2
    assert "nowhere" in capsys.readouterr().err
