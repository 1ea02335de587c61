"""Golden questions: an author's own questions with the expected answers, checked after every edit."""

from dataclasses import dataclass

from bythebook.answers import Outcome

OUTCOMES = {"answer": Outcome.ANSWERED, "refuse": Outcome.REFUSED, "clarify": Outcome.CLARIFY}
"""The values of `expect` in the file, and the outcomes they mean."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """The expected answer to a question."""

    outcome: Outcome = Outcome.ANSWERED
    page: str = ""
    """The page that must be cited: its path, or the end of its path or URL."""
    section: str = ""
    """The heading above the cited words."""
    words: tuple[str, ...] = ()
    """Words that the answer must contain. Case and whitespace are ignored."""

    def __str__(self) -> str:
        if self.outcome is not Outcome.ANSWERED:
            return "a refusal" if self.outcome is Outcome.REFUSED else "a question back"
        parts = [f"from {self.page}" if self.page else "", f"from the section “{self.section}”" if self.section else ""]
        parts.append(f"with {', '.join(f'“{text}”' for text in self.words)}" if self.words else "")
        return ", ".join(["an answer", *filter(None, parts)]).replace("answer, ", "answer ", 1)


@dataclass(frozen=True, slots=True)
class GoldenQuestion:
    """A question and its expectation. In a conversation, a question without one only provides context."""

    question: str
    expected: Expectation | None
    line: int = 0
    """The line in the file."""


GoldenConversation = tuple[GoldenQuestion, ...]
"""Consecutive questions. A single question is a conversation of one."""


@dataclass(frozen=True, slots=True)
class ActualAnswer:
    """The actual answer to a question."""

    outcome: Outcome
    page: str
    """The first cited page, or the nearest one if none is cited."""
    heading: str
    quote: str
    answer: str
    coverage: float | None


@dataclass(frozen=True, slots=True)
class GoldenResult:
    """The expected and the actual answer to a golden question."""

    question: str
    line: int
    expected: Expectation
    actual: ActualAnswer
    missing: tuple[str, ...]
    """The expected parts that are missing. Empty if the question passes."""
    note: str
    """A hint at the reason."""

    @property
    def passed(self) -> bool:
        return not self.missing
