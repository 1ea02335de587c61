"""How readers and books spell the same things."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.index.catalog import Catalogue
from bythebook.index.terms import Tally, Words, abbreviations, with_spellings
from bythebook.retrieval.query_rewrite import corrected, spelled_out

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
def test_names_have_other_spellings(text: str, others: list[str]) -> None:
    assert with_spellings(text) == " ".join([text, *others])


@pytest.mark.parametrize(
    ("asked", "written"),
    [
        pytest.param("spin_once", "rclpy.spin_once", id="without its module"),
        pytest.param("http exception", "HTTPException", id="in words"),
        pytest.param("email", "e-mail", id="without its hyphen"),
    ],
)
def test_a_name_is_found_by_its_other_spellings(asked: str, written: str) -> None:
    words = Words(10.0)
    assert words.terms(asked) <= words.terms(written)


def test_a_name_is_more_than_its_parts() -> None:
    words = Words(10.0)
    assert words.terms("rclpy.spin_once") - words.terms("rclpy.spin")


@pytest.mark.parametrize("data", ["aB1" * 200_000, "a" * 600_000, "a_" * 300_000, "(Ab " * 150_000])
def test_data_among_the_words_takes_no_time(catalogue: Catalogue, data: str) -> None:
    # Looked through word by word, each from every one of its letters, this would take hours.
    assert with_spellings(data).startswith(data)
    assert abbreviations(data) == set()
    assert corrected(data[:1000], catalogue, known=lambda _: False) == data[:1000]


@given(st.text(alphabet="ab_.-AB1 ", max_size=200))
def test_a_text_begins_with_itself(text: str) -> None:
    assert with_spellings(text).startswith(text)


@pytest.fixture
def catalogue(tmp_path: Path) -> Iterator[Catalogue]:
    tally = Tally()
    for text in ("The vaporiser warms the mantle.", "Warm the vaporiser.", "A mantel is a shelf, Vergangenheit."):
        tally.add(text)
    with closing(Catalogue.edit(tmp_path / "book.db")) as opened:
        opened.count(tally)
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
def test_a_slip_is_put_right_where_the_book_has_the_word(catalogue: Catalogue, asked: str, understood: str) -> None:
    def known(word: str) -> bool:
        return word in KNOWN or bool(catalogue.most_frequent([word]))

    assert corrected(asked, catalogue, known=known) == understood


def test_of_two_words_the_one_the_book_has_more_often_is_meant(catalogue: Catalogue) -> None:
    assert catalogue.most_frequent(["mantel", "vaporiser", "nothing"]) == "vaporiser"
    assert catalogue.most_frequent(["nothing"]) == ""


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
def test_a_book_says_what_it_abbreviates(text: str, found: set[tuple[str, str]]) -> None:
    assert abbreviations(text) == found


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
def test_an_abbreviation_is_searched_for_in_both_forms(asked: str, also: str) -> None:
    assert spelled_out(asked, {"IK": "inverse kinematics"}) == also


def test_what_goes_is_forgotten(tmp_path: Path) -> None:
    text = "by inverse kinematics (IK)"
    coming, going = Tally(), Tally()
    coming.add(text)
    going.remove(text)
    with closing(Catalogue.edit(tmp_path / "book.db")) as catalogue:
        catalogue.count(coming)
        assert (catalogue.most_frequent(["kinematics"]), catalogue.abbreviations) == (
            "kinematics",
            {"IK": "inverse kinematics"},
        )
    with closing(Catalogue.edit(tmp_path / "book.db")) as catalogue:
        catalogue.count(going)
        assert (catalogue.most_frequent(["kinematics"]), catalogue.abbreviations) == ("", {})
