"""A run that was interrupted goes on where it stopped."""

from __future__ import annotations

from pathlib import Path

import pytest

from bythebook.evals.runner import Finished


class Asked:
    """Answers with the length of a question, and breaks down where it is told to."""

    def __init__(self, *, breaks_at: str = "") -> None:
        self.heard: list[str] = []
        self._breaks_at = breaks_at

    async def __call__(self, question: str) -> dict[str, int]:
        if question == self._breaks_at:
            raise KeyboardInterrupt
        self.heard.append(question)
        return {"length": len(question)}


QUESTIONS = ["Who?", "What is it?", "Why is that?"]


async def _each(finished: Finished, asked: Asked) -> list[dict[str, int]]:
    return await finished.each(QUESTIONS, asked, name=str.lower, progress=lambda *_: None)


def _files(folder: Path) -> list[Path]:
    return list(folder.iterdir())


async def test_what_was_asked_before_an_interruption_is_not_asked_again(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        await _each(Finished(tmp_path, about=["g1"]), Asked(breaks_at="Why is that?"))
    asked, again = Asked(), Finished(tmp_path, about=["g1"])
    assert await _each(again, asked) == [{"length": 4}, {"length": 11}, {"length": 12}]
    assert asked.heard == ["Why is that?"]
    again.complete()
    assert _files(tmp_path) == []


async def test_another_book_is_asked_everything(tmp_path: Path) -> None:
    await _each(Finished(tmp_path, about=["g1"]), Asked())
    asked = Asked()
    await _each(Finished(tmp_path, about=["g2"]), asked)
    assert asked.heard == QUESTIONS


async def test_a_line_that_was_cut_off_is_asked_again(tmp_path: Path) -> None:
    await _each(Finished(tmp_path, about=[]), Asked())
    (file,) = _files(tmp_path)
    file.write_text(file.read_text(encoding="utf-8")[:-5], encoding="utf-8")
    for heard in (["Why is that?"], []):
        asked = Asked()
        assert await _each(Finished(tmp_path, about=[]), asked) == [{"length": 4}, {"length": 11}, {"length": 12}]
        assert asked.heard == heard
