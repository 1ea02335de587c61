"""Query rewriting: spelling, compound names and abbreviations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.index.catalog import Catalog
from bythebook.index.terms import Bm25Terms, VocabularyDelta, add_spellings, find_abbreviations
from bythebook.retrieval.query_rewrite import correct_spelling, expand_abbreviations

KNOWN = frozenset({"what", "burns", "paris", "question", "lend"})


@pytest.mark.parametrize(
    ("text", "others"),
    [
        pytest.param("light the lamp.", [], id="plain words have one spelling"),
        pytest.param("`rclpy.spin_once(node)`", ["spinonce", "rclpyspinonce"], id="a dotted name, whole and in parts"),
        pytest.param("raise HTTPException", ["HTTP", "Exception"], id="humps"),
        pytest.param("--top-k and e-mail", ["topk", "email"], id="flags and hyphens"),
        pytest.param("version 1.2.3", [], id="a number is no name"),
        pytest.param("a_b", [], id="too short to tell"),
        pytest.param("x" * 40 + "_" + "y" * 40, [], id="too long to be written by anyone"),
        pytest.param("spin_once spin_once", ["spinonce"], id="each once"),
    ],
)
def test_adds_spellings_of_compound_names(text: str, others: list[str]) -> None:
    assert add_spellings(text) == " ".join([text, *others])


@pytest.mark.parametrize(
    ("asked", "written"),
    [
        pytest.param("spin_once", "rclpy.spin_once", id="without its module"),
        pytest.param("http exception", "HTTPException", id="in words"),
        pytest.param("email", "e-mail", id="without its hyphen"),
    ],
)
def test_finds_a_name_by_another_spelling(asked: str, written: str) -> None:
    words = Bm25Terms(10.0)
    assert words.terms(asked) <= words.terms(written)


def test_a_whole_name_scores_higher_than_its_parts() -> None:
    words = Bm25Terms(10.0)
    assert words.terms("rclpy.spin_once") - words.terms("rclpy.spin")


@pytest.mark.parametrize("data", ["aB1" * 200_000, "a" * 600_000, "a_" * 300_000, "(Ab " * 150_000])
def test_long_data_without_spaces_is_skipped_quickly(catalog: Catalog, data: str) -> None:
    # Without the limit, backtracking over this text would take hours.
    assert add_spellings(data).startswith(data)
    assert find_abbreviations(data) == set()
    assert correct_spelling(data[:1000], catalog, known=lambda _: False) == data[:1000]


@given(st.text(alphabet="ab_.-AB1 ", max_size=200))
def test_the_original_text_comes_first(text: str) -> None:
    assert add_spellings(text).startswith(text)


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    delta = VocabularyDelta()
    for text in ("The vaporiser warms the mantle.", "Warm the vaporiser.", "A mantel is a shelf, Vergangenheit."):
        delta.add(text)
    with closing(Catalog.edit(tmp_path / "book.db")) as opened:
        opened.apply_delta(delta)
        yield opened


@pytest.mark.parametrize(
    ("asked", "understood"),
    [
        pytest.param("What is a vaporizer?", "What is a vaporiser?", id="another letter"),
        pytest.param("What is a vaproiser?", "What is a vaporiser?", id="two swapped"),
        pytest.param("What is a vaporser?", "What is a vaporiser?", id="one left out"),
        pytest.param("What is a vaporisser?", "What is a vaporiser?", id="one too many"),
        pytest.param("What is a manntl?", "What is a manntl?", id="two slips are too many to guess"),
        pytest.param("What burns in Paris?", "What burns in Paris?", id="a word of the language is never touched"),
        pytest.param("What lends?", "What lends?", id="nor is a form of it"),
        pytest.param("What is Vaporiser?", "What is Vaporiser?", id="nor is what the book writes so"),
        pytest.param("ab abc wrm", "ab abc wrm", id="short words have too many neighbours"),
        pytest.param("What is MP3 mantl3?", "What is MP3 mantl3?", id="nor is what has digits in it"),
        pytest.param("What is a mantla?", "What is a mantla?", id="another last letter may be another form"),
        pytest.param("¿Qué es añejo?", "¿Qué es añejo?", id="other alphabets are left alone"),
    ],
)
def test_corrects_a_typing_error_to_a_word_of_the_book(catalog: Catalog, asked: str, understood: str) -> None:
    def known(word: str) -> bool:
        return word in KNOWN or bool(catalog.most_frequent([word]))

    assert correct_spelling(asked, catalog, known=known) == understood


def test_prefers_the_more_frequent_correction(catalog: Catalog) -> None:
    assert catalog.most_frequent(["mantel", "vaporiser", "nothing"]) == "vaporiser"
    assert catalog.most_frequent(["nothing"]) == ""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("by inverse kinematics (IK), as", {("IK", "inverse kinematics")}, id="behind"),
        pytest.param("IK (inverse kinematics) is", {("IK", "inverse kinematics")}, id="ahead"),
        pytest.param(
            "Retrieval-Augmented Generation (RAG)", {("RAG", "Retrieval-Augmented Generation")}, id="with a hyphen"
        ),
        pytest.param("six degrees of freedom (DoF)", {("DoF", "degrees of freedom")}, id="small words count"),
        pytest.param(
            "The Institute of Electrical and Electronics Engineers (IEEE)",
            {("IEEE", "Institute of Electrical and Electronics Engineers")},
            id="or do not",
        ),
        pytest.param("we asked (OK) and (See) below", set(), id="other brackets"),
        pytest.param("The Lamp (ABC)", set(), id="other letters"),
    ],
)
def test_finds_abbreviations_in_the_text(text: str, found: set[tuple[str, str]]) -> None:
    assert find_abbreviations(text) == found


@pytest.mark.parametrize(
    ("asked", "also"),
    [
        pytest.param("What is IK?", "What is IK? inverse kinematics", id="the long form"),
        pytest.param("What is inverse kinematics?", "What is inverse kinematics? IK", id="the short form"),
        pytest.param("Is IK inverse kinematics?", "", id="both are there"),
        pytest.param("Ask about ik", "", id="a short form has its capitals"),
        pytest.param("What does the IK of the left arm do?", "", id="a longer question says enough"),
        pytest.param("LIKE that", "", id="and is a word of its own"),
    ],
)
def test_searches_both_forms_of_an_abbreviation(asked: str, also: str) -> None:
    assert expand_abbreviations(asked, {"IK": "inverse kinematics"}) == also


def test_removed_chunks_leave_the_vocabulary(tmp_path: Path) -> None:
    text = "by inverse kinematics (IK)"
    coming, going = VocabularyDelta(), VocabularyDelta()
    coming.add(text)
    going.remove(text)
    with closing(Catalog.edit(tmp_path / "book.db")) as catalog:
        catalog.apply_delta(coming)
        assert (catalog.most_frequent(["kinematics"]), catalog.abbreviations) == (
            "kinematics",
            {"IK": "inverse kinematics"},
        )
    with closing(Catalog.edit(tmp_path / "book.db")) as catalog:
        catalog.apply_delta(going)
        assert (catalog.most_frequent(["kinematics"]), catalog.abbreviations) == ("", {})
