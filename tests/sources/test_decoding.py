from __future__ import annotations

import pytest

from bythebook.sources import Unreadable
from bythebook.sources.folder import decode


@pytest.mark.parametrize(
    "data",
    [
        pytest.param("é\n".encode(), id="utf-8"),
        pytest.param("é\r\n".encode("utf-8-sig"), id="utf-8 with a mark"),
        pytest.param("é\r".encode("utf-16"), id="utf-16 with a mark"),
    ],
)
def test_text_is_decoded_and_its_lines_end_alike(data: bytes) -> None:
    assert decode(data) == "é\n"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(
            "abcdé".encode("latin-1"), "it is not UTF-8: byte 4 cannot be decoded. Save it as UTF-8", id="latin-1"
        ),
        pytest.param(
            b"\xff\xfea", "it is not UTF-16: byte 2 cannot be decoded. Save it as UTF-8", id="half a character"
        ),
        pytest.param(
            b"ab\x00", "it is not text: character 2 is a NUL. Remove it or save it as UTF-8 text", id="binary"
        ),
        pytest.param(b" \n", "it is empty", id="nothing"),
    ],
)
def test_what_is_not_text_is_refused_with_a_reason(data: bytes, reason: str) -> None:
    with pytest.raises(Unreadable) as caught:
        decode(data)

    assert str(caught.value) == reason
