"""What the model was told is not shown, and nothing else is kept from readers by it."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from bythebook.answers.prompt_leak import Secret, kept_secret
from bythebook.llm.prompts import SYSTEM

WORDS = SYSTEM.split()


def shown(text: str, *passages: str, cuts: tuple[int, ...] = ()) -> str:
    secret = Secret(SYSTEM, passages)
    edges = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return "".join([*(secret.feed(text[start:end]) for start, end in pairwise(edges)), secret.end()])


def test_instructions_that_are_recited_are_not_shown_nor_what_follows() -> None:
    assert shown(f"The horn sounds. {SYSTEM} The end.") == "The horn sounds. You are a helpful"
    assert "passages" not in shown(SYSTEM.upper().replace(" ", "\n- "))


def test_what_stands_in_the_book_is_no_secret() -> None:
    assert shown(SYSTEM, f"Once I read: {SYSTEM}") == SYSTEM


def test_words_come_at_once_until_they_look_recited() -> None:
    secret = Secret(SYSTEM)
    assert [secret.feed(word) for word in ("The ", "answer ", "is", " your", " role")] == [
        "The ", "answer ", "is", " your", " role",
    ]  # fmt: skip


def test_a_few_words_in_a_row_are_anyones() -> None:
    said = "You are a helpful assistant for one reader, and keep close to the passages' own tunnels."
    assert shown(said) == said


@given(st.lists(st.sampled_from([*WORDS, "horn", "lamp", "\n", "[1]"]), max_size=30), st.lists(st.integers(0, 300)))
def test_the_same_is_shown_however_it_was_cut_up(words: list[str], cuts: list[int]) -> None:
    text = " ".join(words)
    assert shown(text, cuts=tuple(cuts)) == shown(text)
    assert text.startswith(shown(text))


def test_the_whole_answer_loses_the_sentences_that_recite() -> None:
    said = f"The horn sounds. [1]\n\n{SYSTEM}\n\nIt is loud. [2]"
    assert kept_secret(said, SYSTEM, []).replace("\n", "") == "The horn sounds. [1]It is loud. [2]"
    assert kept_secret(said, SYSTEM, [SYSTEM]) == said


@given(st.text(), st.text())
def test_what_recites_nothing_is_left_as_it_is(said: str, instructions: str) -> None:
    assert kept_secret(said, instructions, [said]) == said
