"""Follow-up questions and standalone questions."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bythebook.conversations.followups import Exchange, StandaloneQuestion
from bythebook.conversations.followups.rules import make_standalone

ISAAC = [
    Exchange("What is Isaac Sim?", "A simulator.", ("Isaac Sim overview", "Synthetic data generation", "Omniverse"))
]
UNSOURCED = [Exchange("What is Isaac Sim?")]
SYNTHETIC = [*UNSOURCED, Exchange("How do I use it for synthetic data?")]
CHOICE = [Exchange("Should I use Gazebo or Isaac Sim?", "", ("Gazebo basics", "Isaac Sim overview"))]


@pytest.mark.parametrize(
    ("question", "history", "text"),
    [
        pytest.param(
            "How do I use it for synthetic data?",
            ISAAC,
            "How do I use it for synthetic data? Isaac Sim",
            id="003 scenario 3: the second turn is about Isaac Sim",
        ),
        pytest.param("why?", UNSOURCED, "why? Isaac Sim", id="nothing but why"),
        pytest.param("why?", SYNTHETIC, "why? Isaac Sim synthetic data", id="why, after a follow-up"),
        pytest.param("and for Python?", UNSOURCED, "What is Isaac Sim for Python?", id="hung on by and"),
        pytest.param("what about gazebo?", UNSOURCED, "what about gazebo? Isaac Sim", id="what about"),
        pytest.param("tell me more", UNSOURCED, "tell me more Isaac Sim", id="tell me more"),
        pytest.param("that", UNSOURCED, "that Isaac Sim", id="nothing but that"),
        pytest.param("show me an example", UNSOURCED, "example of Isaac Sim", id="an example of what was left out"),
        pytest.param(
            "What are the benefits?", UNSOURCED, "What are the benefits? Isaac Sim", id="the benefits of what"
        ),
        pytest.param("What’s its license?", UNSOURCED, "What’s its license? Isaac Sim", id="a possessive"),
        pytest.param("Do they need a GPU?", UNSOURCED, "Do they need a GPU? Isaac Sim", id="a plural pronoun"),
        pytest.param(
            "How can I do that in C++?", UNSOURCED, "How can I do that in C++? Isaac Sim", id="that as an object"
        ),
        pytest.param("ok, go on", UNSOURCED, "ok, go on Isaac Sim", id="go on"),
        pytest.param("Which one is faster?", CHOICE, "Which one is faster? Gazebo Isaac Sim", id="which one of two"),
        pytest.param("Tell me about the latter", CHOICE, "Tell me about the latter Isaac Sim", id="the latter"),
        pytest.param("And the former?", CHOICE, "And the former? Gazebo", id="the former"),
        pytest.param(
            "Is the first one free?", CHOICE, "Is the first one free? Gazebo", id="the first one of two asked about"
        ),
        pytest.param(
            "What is it?",
            [Exchange("hello", "", ("The ROS 2 graph",))],
            "What is it? ROS 2 graph",
            id="no question named a subject but a source did",
        ),
    ],
)
def test_a_follow_up_gets_the_subject_of_the_conversation(question: str, history: list[Exchange], text: str) -> None:
    found = make_standalone(question, history)
    assert (found.text, found.depends, found.unclear, found.source) == (text, True, False, None)


@pytest.mark.parametrize(
    "question",
    [
        pytest.param("What is the weather today?", id="003 scenario 2: out of scope"),
        pytest.param("What is the capital of France?", id="another subject"),
        pytest.param("How do I install ROS 2 on Ubuntu?", id="a full question"),
        pytest.param("What is a digital twin and why is it useful?", id="it stands for something inside"),
        pytest.param("Is it possible to run Gazebo headless?", id="it stands for nothing"),
        pytest.param("Which sensors are there that Gazebo simulates?", id="that begins a clause"),
        pytest.param("Does Isaac Sim run on Windows?", id="the subject is named again"),
        pytest.param("What is one of the ROS 2 middlewares?", id="one of"),
        pytest.param("¿Qué es un nodo de ROS 2?", id="Spanish"),
        pytest.param("Wie starte ich einen Knoten?", id="German"),
        pytest.param("ノードとは何ですか", id="Japanese"),
    ],
)
def test_a_standalone_question_is_unchanged(question: str) -> None:
    found = make_standalone(question, UNSOURCED)
    assert (found.text, found.depends, found.unclear) == (question, False, False)


@pytest.mark.parametrize(
    ("question", "text", "source"),
    [
        pytest.param(
            "Tell me more about the second source", "Tell me more about Synthetic data generation", 2, id="the second"
        ),
        pytest.param("What does source 1 say?", "What does Isaac Sim overview say?", 1, id="by number"),
        pytest.param("Can you summarize [3]?", "Can you summarize Omniverse?", 3, id="by its mark"),
        pytest.param("Explain the 2nd citation", "Explain Synthetic data generation", 2, id="2nd"),
        pytest.param("Show reference #2", "Show Synthetic data generation", 2, id="with a number sign"),
        pytest.param("and the last source?", "and Omniverse?", 3, id="the last"),
        pytest.param("the first one", "Isaac Sim overview", 1, id="the first one"),
    ],
)
def test_a_shown_source_can_be_referenced(question: str, text: str, source: int) -> None:
    expected = StandaloneQuestion(text, depends=True, source=source, whole=True, searches=(text,))
    assert make_standalone(question, ISAAC) == expected


def test_a_specific_question_about_a_source_is_not_a_request_for_the_whole_source() -> None:
    understood = make_standalone("Does the second source mention Peru?", ISAAC)
    assert (understood.source, understood.whole) == (2, False)


@pytest.mark.parametrize(
    "question",
    [
        pytest.param("What is the second source of error in odometry?", id="a source of something"),
        pytest.param("What is the first reference frame of a robot?", id="a reference to nothing shown"),
        pytest.param("Which open source 2D planners exist?", id="open source"),
        pytest.param("How do I link 2 nodes?", id="to link"),
        pytest.param("What does values [0] give?", id="an index in code"),
        pytest.param("What does chapter 2 cover?", id="a chapter of the book"),
    ],
)
def test_phrases_that_only_resemble_source_references_are_ignored(question: str) -> None:
    assert make_standalone(question, ISAAC).source is None


@settings(max_examples=50, deadline=None)
@given(st.text(), st.lists(st.builds(Exchange, st.text(), st.text(), st.lists(st.text()).map(tuple)), max_size=3))
def test_any_question_can_follow_any_other(question: str, history: list[Exchange]) -> None:
    found = make_standalone(question, history)
    assert found.searches
    assert question in found.searches or found.depends


def test_sources_are_those_of_the_latest_answer_with_sources() -> None:
    history = [*ISAAC, Exchange("What is ROS 2?", "", ("ROS 2 nodes",)), Exchange("thanks", "")]
    assert make_standalone("show me source 1", history).text == "show me ROS 2 nodes"


@pytest.mark.parametrize(
    ("question", "history"),
    [
        pytest.param("What is it?", [], id="SPEC 1: nothing was said before"),
        pytest.param("why?", [], id="why, first"),
        pytest.param("How does it work?", [], id="only words that are of something"),
        pytest.param("tell me more", [Exchange("hm"), Exchange("why?")], id="nothing was ever named"),
        pytest.param("show me source 7", ISAAC, id="a source that was never shown"),
        pytest.param("thanks!", ISAAC, id="asks nothing"),
        pytest.param("?!", ISAAC, id="no words"),
        pytest.param("  ", [], id="empty"),
    ],
)
def test_an_unresolvable_question_is_unclear(question: str, history: list[Exchange]) -> None:
    found = make_standalone(question, history)
    assert (found.text, found.unclear) == (question, True)


def test_a_question_with_content_words_is_not_unclear() -> None:
    found = make_standalone("Does it support lidar sensors?", [])
    assert found == StandaloneQuestion(found.text, searches=("Does it support lidar sensors?",))


@pytest.mark.parametrize(
    ("question", "searches"),
    [
        pytest.param("why?", ("why? Isaac Sim",), id="a question without words of its own finds nothing alone"),
        pytest.param("Does it need a GPU?", ("Does it need a GPU?", "Does it need a GPU? Isaac Sim"), id="leans"),
        pytest.param("Is a GPU needed?", ("Is a GPU needed?",), id="stands alone"),
        pytest.param("GPU memory?", ("GPU memory?", "GPU memory? Isaac Sim"), id="a name with a question mark"),
        pytest.param("GPU memory", ("GPU memory",), id="a keyword search"),
        pytest.param(
            "And is a GPU needed?", ("And is a GPU needed?", "And is a GPU needed? Isaac Sim"), id="may be about it"
        ),
        pytest.param("What is the weather today?", ("What is the weather today?",), id="is not about it"),
        pytest.param("Does Isaac Sim need a GPU?", ("Does Isaac Sim need a GPU?",), id="says so itself"),
    ],
)
def test_a_question_is_searched_with_and_without_the_subject(question: str, searches: tuple[str, ...]) -> None:
    assert make_standalone(question, UNSOURCED).searches == searches


def test_a_new_subject_replaces_the_old_one() -> None:
    history = [*SYNTHETIC, Exchange("What is a URDF file?")]
    assert make_standalone("How do I validate it?", history).text == "How do I validate it? URDF file"


def test_the_carried_subject_is_bounded() -> None:
    long = "How do alpha bravo charlie delta echo foxtrot golf hotel india juliet interact?"
    history = [Exchange(long), *[Exchange(f"Does it have kilo{n} lima{n} mike{n}?") for n in range(50)]]
    assert len(make_standalone("why?", history).text.split()) <= 1 + 4 + 2
