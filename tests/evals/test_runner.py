"""An interrupted run continues where it stopped."""

from __future__ import annotations

from pathlib import Path

import pytest

from bythebook.evals.runner import EvalCheckpoint


class FakeQuestions:
    """Returns the length of a question. Interrupts the run at a given question."""

    def __init__(self, *, breaks_at: str = "") -> None:
        self.heard: list[str] = []
        self._breaks_at = breaks_at

    async def __call__(self, question: str) -> dict[str, int]:
        if question == self._breaks_at:
            raise KeyboardInterrupt
        self.heard.append(question)
        return {"length": len(question)}


QUESTIONS = ["Who?", "What is it?", "Why is that?"]


async def _run(checkpoint: EvalCheckpoint, asked: FakeQuestions) -> list[dict[str, int]]:
    return await checkpoint.run(QUESTIONS, asked, name=str.lower, progress=lambda *_: None)


def _files(folder: Path) -> list[Path]:
    return list(folder.iterdir())


async def test_an_interrupted_run_continues(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        await _run(EvalCheckpoint(tmp_path, about=["g1"]), FakeQuestions(breaks_at="Why is that?"))
    asked, again = FakeQuestions(), EvalCheckpoint(tmp_path, about=["g1"])
    assert await _run(again, asked) == [{"length": 4}, {"length": 11}, {"length": 12}]
    assert asked.heard == ["Why is that?"]
    again.complete()
    assert _files(tmp_path) == []


async def test_another_book_starts_from_the_beginning(tmp_path: Path) -> None:
    await _run(EvalCheckpoint(tmp_path, about=["g1"]), FakeQuestions())
    asked = FakeQuestions()
    await _run(EvalCheckpoint(tmp_path, about=["g2"]), asked)
    assert asked.heard == QUESTIONS


async def test_a_truncated_line_is_repeated(tmp_path: Path) -> None:
    await _run(EvalCheckpoint(tmp_path, about=[]), FakeQuestions())
    (file,) = _files(tmp_path)
    file.write_text(file.read_text(encoding="utf-8")[:-5], encoding="utf-8")
    for heard in (["Why is that?"], []):
        asked = FakeQuestions()
        assert await _run(EvalCheckpoint(tmp_path, about=[]), asked) == [{"length": 4}, {"length": 11}, {"length": 12}]
        assert asked.heard == heard
