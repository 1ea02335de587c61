"""Golden questions: an author's own, with what the book must answer, asked again after every edit."""

from __future__ import annotations

from dataclasses import dataclass

from bythebook.answers import Outcome

EXPECTED = {"answer": Outcome.ANSWERED, "refuse": Outcome.REFUSED, "clarify": Outcome.CLARIFY}
"""What an author writes, and the outcome that is meant."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """What must come of a question."""

    outcome: Outcome = Outcome.ANSWERED
    page: str = ""
    """The page that must be cited: its path, or the end of its path or address."""
    section: str = ""
    """The heading the cited words must stand under."""
    words: tuple[str, ...] = ()
    """What must stand in the answer; case and spacing do not matter."""

    def __str__(self) -> str:
        if self.outcome is not Outcome.ANSWERED:
            return "a refusal" if self.outcome is Outcome.REFUSED else "a question back"
        parts = [f"from {self.page}" if self.page else "", f"from the section “{self.section}”" if self.section else ""]
        parts.append(f"with {', '.join(f'“{text}”' for text in self.words)}" if self.words else "")
        return ", ".join(["an answer", *filter(None, parts)]).replace("answer, ", "answer ", 1)


@dataclass(frozen=True, slots=True)
class Golden:
    """A question and what must come of it. Inside a conversation it may be asked only for what follows."""

    question: str
    expected: Expectation | None
    line: int = 0
    """Where it stands in its file."""


Talk = tuple[Golden, ...]
"""Questions that follow each other. One by itself is a talk too."""


@dataclass(frozen=True, slots=True)
class Came:
    """What came of a question."""

    outcome: Outcome
    page: str
    """The page that was cited first, or was nearest when nothing was."""
    heading: str
    quote: str
    answer: str
    confidence: float | None


@dataclass(frozen=True, slots=True)
class Checked:
    """A golden question, held against what came of it."""

    question: str
    line: int
    expected: Expectation
    came: Came
    missing: tuple[str, ...]
    """What was expected and did not come. Nothing, when the question passes."""
    note: str
    """What may help to find the reason."""

    @property
    def passed(self) -> bool:
        return not self.missing
