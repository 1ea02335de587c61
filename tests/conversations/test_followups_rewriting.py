"""The prompt for rewriting a question, and the parsing of the model's output."""

from __future__ import annotations

import pytest

from bythebook.conversations.followups import Exchange, StandaloneQuestion
from bythebook.conversations.followups.llm_rewrite import REWRITE_PROMPT, parse_rewrite, rewrite_messages
from bythebook.conversations.followups.rules import make_standalone

HISTORY = [Exchange("What is Isaac Sim?", "Isaac Sim is a simulator.", ("Isaac Sim overview", "Synthetic data"))]
QUESTION = "How do I use it for synthetic data?"
WHOLE = "How do I use Isaac Sim for synthetic data?"


def words(text: str) -> int:
    return len(text.split())


def test_the_prompt_contains_the_conversation_and_the_question() -> None:
    system, user = rewrite_messages(QUESTION, HISTORY, count=words)
    assert (system.role, system.content) == ("system", REWRITE_PROMPT)
    assert user.content.splitlines() == [
        "Reader: What is Isaac Sim?",
        "Book: Isaac Sim is a simulator.",
        "Sources: [1] Isaac Sim overview, [2] Synthetic data",
        "Last question: How do I use it for synthetic data?",
    ]


@pytest.mark.parametrize("room", [0, 30, 60, 120])
def test_the_oldest_exchanges_go_first_when_the_budget_is_small(room: int) -> None:
    history = [Exchange(f"Question number {n} about robots?", f"Answer number {n}.") for n in range(9)]
    budget = words(REWRITE_PROMPT) + words(f"Last question: {QUESTION}") + room
    system, user = rewrite_messages(QUESTION, history, count=words, budget=budget)
    *told, last = user.content.splitlines()
    assert words(system.content) + words(user.content) <= budget
    assert last == f"Last question: {QUESTION}"
    assert told == [
        line for e in history[9 - len(told) // 2 :] for line in (f"Reader: {e.question}", f"Book: {e.answer}")
    ]


def test_long_answers_are_truncated_in_the_prompt() -> None:
    _, user = rewrite_messages("why?", [Exchange("What is ROS 2?", "word " * 1000)], count=words)
    assert len(user.content) < 500


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(WHOLE, id="as told"),
        pytest.param(f'"{WHOLE}"', id="in quotes"),
        pytest.param(f"“{WHOLE}”\n", id="in curly quotes"),
        pytest.param(f"Standalone question: {WHOLE}", id="with a label"),
        pytest.param(f"**Rewritten question:** {WHOLE}", id="with a bold label"),
        pytest.param(f"Here is the stand-alone question:\n\n{WHOLE}", id="after an announcement"),
        pytest.param(f"<think>It is Isaac Sim.\nSo.</think>\n{WHOLE}", id="after a thought"),
        pytest.param(f"{WHOLE}\n\nI replaced it by Isaac Sim.", id="before an explanation"),
        pytest.param(f"`{WHOLE}`", id="as code"),
    ],
)
def test_the_rewrite_is_parsed_from_the_model_output(said: str) -> None:
    assert parse_rewrite(said, QUESTION, HISTORY) == StandaloneQuestion(WHOLE, depends=True, searches=(QUESTION, WHOLE))


@pytest.mark.parametrize(
    "said",
    [
        pytest.param("", id="nothing"),
        pytest.param("<think>Hm", id="an unfinished thought"),
        pytest.param("I'm sorry, I can't help with Isaac Sim and synthetic data.", id="an apology"),
        pytest.param("As an AI language model I use synthetic data.", id="a refusal"),
        pytest.param(QUESTION, id="the question as it was"),
        pytest.param("How do I use it for synthetic data in Isaac Sim?", id="still leaning"),
        pytest.param("What is Isaac Sim?", id="another question"),
        pytest.param("Use Replicator writers, annotators and randomizers for synthetic output.", id="an answer"),
        pytest.param(f"{WHOLE} " + "Isaac Sim synthetic data " * 40, id="over-long"),
        pytest.param("Isaac Sim is used for synthetic data.", id="a statement"),
        pytest.param("You can use Isaac Sim to make synthetic data for robots", id="a statement without an end"),
        pytest.param("Isaac Sim makes synthetic data. How do I use Isaac Sim?", id="an answer and a question"),
        pytest.param("What is Isaac Sim? How do I use Isaac Sim for synthetic data?", id="two questions"),
        pytest.param("How do I cook pasta?", id="something nobody asked"),
        pytest.param("How?", id="a question without a term"),
        pytest.param("42", id="a number"),
        pytest.param('{"question": "synthetic data"} ' * 10, id="a program's words"),
    ],
)
def test_an_unusable_model_output_falls_back_to_the_rule(said: str) -> None:
    assert parse_rewrite(said, QUESTION, HISTORY) == make_standalone(QUESTION, HISTORY)


def test_a_question_without_content_words_is_searched_only_as_rewritten() -> None:
    assert parse_rewrite("Why is Isaac Sim a simulator?", "why?", HISTORY).searches == (
        "Why is Isaac Sim a simulator?",
    )


@pytest.mark.parametrize(
    "said", ["Isaac Sim synthetic data", "Explain how Isaac Sim makes synthetic data.", "Isaac Sim synthetic data?"]
)
def test_keyword_queries_and_requests_are_accepted(said: str) -> None:
    assert parse_rewrite(said, QUESTION, HISTORY).text == said


def test_two_sentences_are_accepted_for_two() -> None:
    asked = "I have a robot. How do I load it into that?"
    whole = "I have a robot. How do I load the robot into Isaac Sim?"
    assert parse_rewrite(whole, asked, HISTORY).text == whole


def test_an_unchanged_question_means_a_new_subject() -> None:
    shift = "And what about Gazebo?"
    assert make_standalone(shift, HISTORY).depends
    assert parse_rewrite(shift, shift, HISTORY) == StandaloneQuestion(shift, searches=(shift,))


def test_source_references_need_no_model() -> None:
    said = "What does the synthetic data page say?"
    assert parse_rewrite(said, "What does source 2 say?", HISTORY).source == 2
