"""Sentence segmentation."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.chunking.sentences import split_sentences


def cut(text: str) -> list[str]:
    return [text[start:end] for start, end in split_sentences(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("It is dark. Light the lamp!", ["It is dark.", "Light the lamp!"], id="two sentences"),
        pytest.param("Is it dark? Yes.", ["Is it dark?", "Yes."], id="a question"),
        pytest.param("No mark at the end", ["No mark at the end"], id="no mark at the end"),
        pytest.param("  Room around it.  ", ["Room around it."], id="white space around"),
        pytest.param("", [], id="nothing"),
        pytest.param(" \n\t\n ", [], id="white space only"),
        pytest.param("Wait... Then go.", ["Wait...", "Then go."], id="dots"),
        pytest.param("Wait... then go.", ["Wait... then go."], id="dots inside a sentence"),
        pytest.param("Use oil, e.g. Colza, daily.", ["Use oil, e.g. Colza, daily."], id="e.g."),
        pytest.param("See Fig. 3 for more. Then stop.", ["See Fig. 3 for more.", "Then stop."], id="Fig."),
        pytest.param("Dr. Bell came. He left.", ["Dr. Bell came.", "He left."], id="a title"),
        pytest.param("Ask J. R. Bell. He knows.", ["Ask J. R. Bell.", "He knows."], id="initials"),
        pytest.param("It costs 3.50 in all. Pay.", ["It costs 3.50 in all.", "Pay."], id="a decimal"),
        pytest.param("Use v1.2.3 of it. Then test.", ["Use v1.2.3 of it.", "Then test."], id="a version"),
        pytest.param("It runs on ROS 2. Nodes talk.", ["It runs on ROS 2.", "Nodes talk."], id="ends in a number"),
        pytest.param("1. First of all.", ["1. First of all."], id="the number of a list item"),
        pytest.param("10. Tenth. It is last.", ["10. Tenth.", "It is last."], id="a number of two digits"),
        pytest.param("He said “Go.” Then he left.", ["He said “Go.”", "Then he left."], id="a quotation"),
        pytest.param("(It is dark.) We wait.", ["(It is dark.)", "We wait."], id="in brackets"),
        pytest.param('"Go." "Stay."', ['"Go."', '"Stay."'], id="two quotations"),
        pytest.param("Call book.ask now. Then wait.", ["Call book.ask now.", "Then wait."], id="a name with a dot"),
        pytest.param(
            "ランプを灯す。霧が出た！どうする？", ["ランプを灯す。", "霧が出た！", "どうする？"], id="Japanese"
        ),
        pytest.param("他说「走。」然后走了。", ["他说「走。」", "然后走了。"], id="a Chinese quotation"),
        pytest.param("Über allem. Öl brennt.", ["Über allem.", "Öl brennt."], id="umlauts"),
        pytest.param("Это свет. Он горит.", ["Это свет.", "Он горит."], id="Russian"),
        pytest.param("One line\nAnother line", ["One line", "Another line"], id="a line break"),
    ],
)
def test_splits_sentences(text: str, expected: list[str]) -> None:
    assert cut(text) == expected


@given(st.text(alphabet=st.sampled_from("aB1 .!?…。\n\"')“”「」-"), max_size=80) | st.text(max_size=80))
def test_sentences_omit_only_white_space(text: str) -> None:
    spans = list(split_sentences(text))

    assert "".join("".join(text[start:end].split()) for start, end in spans) == "".join(text.split())
    assert all(first[1] <= second[0] for first, second in itertools.pairwise(spans))
    assert all(text[start:end] == text[start:end].strip() != "" for start, end in spans)
