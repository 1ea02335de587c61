"""The system prompt is hidden from readers, and nothing else is."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from bythebook.answers.prompt_leak import PromptLeakFilter, remove_prompt_leaks
from bythebook.llm.prompts import SYSTEM

WORDS = SYSTEM.split()


def shown(text: str, *passages: str, cuts: tuple[int, ...] = ()) -> str:
    secret = PromptLeakFilter(SYSTEM, passages)
    edges = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return "".join([*(secret.feed(text[start:end]) for start, end in pairwise(edges)), secret.end()])


def test_recited_instructions_and_the_text_after_them_are_hidden() -> None:
    assert shown(f"The horn sounds. {SYSTEM} The end.") == "The horn sounds. You are a helpful"
    assert "passages" not in shown(SYSTEM.upper().replace(" ", "\n- "))


def test_text_of_the_passages_is_not_a_leak() -> None:
    assert shown(SYSTEM, f"Once I read: {SYSTEM}") == SYSTEM


def test_words_are_released_until_they_match_the_instructions() -> None:
    secret = PromptLeakFilter(SYSTEM)
    assert [secret.feed(word) for word in ("The ", "answer ", "is", " your", " role")] == [
        "The ", "answer ", "is", " your", " role",
    ]  # fmt: skip


def test_a_short_match_is_not_a_leak() -> None:
    said = "You are a helpful assistant for one reader, and keep close to the passages' own tunnels."
    assert shown(said) == said


@given(st.lists(st.sampled_from([*WORDS, "horn", "lamp", "\n", "[1]"]), max_size=30), st.lists(st.integers(0, 300)))
def test_the_filter_does_not_depend_on_how_the_text_is_split(words: list[str], cuts: list[int]) -> None:
    text = " ".join(words)
    assert shown(text, cuts=tuple(cuts)) == shown(text)
    assert text.startswith(shown(text))


def test_reciting_sentences_are_removed_from_a_complete_answer() -> None:
    said = f"The horn sounds. [1]\n\n{SYSTEM}\n\nIt is loud. [2]"
    assert remove_prompt_leaks(said, SYSTEM, []).replace("\n", "") == "The horn sounds. [1]It is loud. [2]"
    assert remove_prompt_leaks(said, SYSTEM, [SYSTEM]) == said


# Characters that a reader does not see are removed: they can hide a leak.
@given(st.text(st.characters(exclude_categories=["C"])), st.text())
def test_an_answer_without_a_leak_is_unchanged(said: str, instructions: str) -> None:
    assert remove_prompt_leaks(said, instructions, [said]) == said


def test_invisible_characters_and_other_forms_of_letters_hide_nothing() -> None:
    for disguise in ("\u200b", "\u00ad", "\ufe0f", "\u2066", "\U000e0041", "\x07"):
        said = disguise.join(SYSTEM)
        assert shown(said) == shown(SYSTEM)
        assert remove_prompt_leaks(said, SYSTEM, ()) == remove_prompt_leaks(SYSTEM, SYSTEM, ())
    wide = SYSTEM.translate({ord(letter): ord(letter) + 0xFEE0 for letter in "abcdefghijklmnopqrstuvwxyz"})
    assert len(shown(wide).split()) == len(shown(SYSTEM).split())
