"""The time from the start of a process to its first answer, and the cost of the smallest commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.metrics import Metric
from bench.processes import bythebook, in_turns, median, python

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

BASE = "import onnxruntime, tokenizers, qdrant_edge"


def answers(books: Mapping[str, tuple[Path, str]], *, rounds: int) -> Iterator[Metric]:
    """The first answer of each book. `books` has the folder and the question of each."""
    commands = {"base": python("-c", BASE)}
    commands |= {name: bythebook("ask", question, "--data-dir", index) for name, (index, question) in books.items()}
    taken = in_turns(commands, rounds=rounds)
    base = median(taken["base"], lambda took: took.wall)
    for name in books:
        first, whole = (
            median(taken[name], lambda took: took.first_output),
            median(taken[name], lambda took: took.wall),
        )
        raw = {"answer s": first, "exit s": whole, "imports s": base}
        yield Metric(f"first answer from {name} / imports alone", first / base, at_most=2.0, raw=raw)


def smallest(*, rounds: int) -> Iterator[Metric]:
    """The cost of importing the package and of `--help`."""
    commands = {"import bythebook": python("-c", "import bythebook"), "bythebook --help": bythebook("--help")}
    for name, taken in in_turns(commands, rounds=rounds).items():
        raw = {"wall s": median(taken, lambda took: took.wall)}
        yield Metric(f"{name}, CPU time", median(taken, lambda took: took.cpu), unit="s", at_most=0.3, raw=raw)
