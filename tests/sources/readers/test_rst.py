from __future__ import annotations

import pytest

from bythebook.sources import BlockKind, Unreadable
from bythebook.sources.document import DocumentPart
from bythebook.sources.readers import rst


def seen(text: str) -> list[str]:
    return [part.text for part in rst.read(text).parts]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        pytest.param("*a* **b** ``c`` `d <https://x.test>`_", "a b c d", id="markup"),
        pytest.param(":ref:`words <x>` :func:`~os.path.join` :py:class:`!A`", "words join() A", id="roles of Sphinx"),
        pytest.param(":data:`.lamp` :attr:`.Lamp.wick` :meth:`!trim`", "lamp Lamp.wick trim()", id="relative names"),
        pytest.param(":func:`trim the wick <lamp.trim>`", "trim the wick", id="a role with a title"),
        pytest.param(":abbr:`LED (light)` :file:`/a/{b}` :guilabel:`&Go`", "LED /a/b Go", id="roles for the eye"),
        pytest.param("a :octicon:`light-bulb;1em` b", "a b", id="icons"),
        pytest.param(":no-such:`words`", "words", id="roles of nobody"),
        pytest.param("|v| on\n\n.. |v| replace:: 3", "3 on", id="replacements"),
        pytest.param("a [1]_ b", "a b", id="a footnote's mark"),
        pytest.param("a\nb", "a b", id="one line"),
        pytest.param("| a\n| b", "a\nb", id="lines on purpose"),
    ],
)
def test_removes_inline_markup(written: str, read: str) -> None:
    assert seen(written) == [read]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        pytest.param(".. note:: Mind *it*", ["Note", "Mind it"], id="admonition"),
        pytest.param(".. tab:: One\n\n   a\n\n   - b", ["One", "a", "- b"], id="unknown directive"),
        pytest.param(
            ".. py:function:: f(a)\n   :module: x\n\n   Does.", ["f(a)", "Does."], id="its options are not text"
        ),
        pytest.param(".. versionadded:: 3.5\n   The *a*.", ["Added in version 3.5: The a."], id="version"),
        pytest.param(".. toctree::\n   :maxdepth: 1\n\n   a\n   b", [], id="navigation"),
        pytest.param(
            ".. code-block:: py\n   :linenos:\n   :caption: a.py\n\n   x\n     y",
            ["a.py", "```py\nx\n  y\n```"],
            id="code",
        ),
        pytest.param("a::\n\n   x", ["a:", "```\nx\n```"], id="literal"),
        pytest.param(">>> 1\n1", ["```\n>>> 1\n1\n```"], id="doctest"),
        pytest.param("#. a\n#. b\n\n   * c", ["1. a\n2. b\n   - c"], id="lists"),
        pytest.param("= =\na b\n= =\n1 2\n= =", ["| a | b |\n| --- | --- |\n| 1 | 2 |"], id="table"),
        pytest.param("a\n   b", ["a", "b"], id="definition"),
        pytest.param(".. comment\n\na", ["a"], id="comment"),
        pytest.param(
            ".. comment\n\n:orphan:\n:redirect-from: /old\n:Author: Jo\n\nA\n=\n\n:b: c",
            ["Author: Jo", "A", "b: c"],
            id="fields of the page",
        ),
        pytest.param(".. code-tab:: py Listing\n\n   x", ["Listing", "```py\nx\n```"], id="code in a tab"),
        pytest.param(".. code-block:: py\n   :caption: ``a.py``\n\n   x", ["a.py", "```py\nx\n```"], id="caption"),
        pytest.param(".. rst-class:: wide\n\n   a", ["a"], id="a class is no text"),
        pytest.param(".. figure:: a.png\n\n   Seen", ["Seen"], id="figure"),
    ],
)
def test_keeps_the_structure_of_blocks(written: str, read: list[str]) -> None:
    assert seen(written) == read


@pytest.mark.parametrize(
    "written",
    [
        ".. include:: /etc/hostname",
        ".. literalinclude:: /etc/hostname",
        ".. raw:: html\n   :file: /etc/hostname",
        ".. csv-table::\n   :file: /etc/hostname",
        ".. raw:: html\n\n   <b>x</b>",
    ],
)
def test_reads_no_other_file_and_omits_raw_content(written: str) -> None:
    assert seen(written) == []


def test_sections_have_the_ids_of_sphinx() -> None:
    draft = rst.read("Top\n===\n\n.. _x:\n\nSub a\n-----\n\nSub a\n-----\n\n中文\n----\n")

    assert draft.title == "Top"
    assert draft.parts == (
        DocumentPart(BlockKind.HEADING, "Top", level=1, anchor="top"),
        DocumentPart(BlockKind.HEADING, "Sub a", level=2, anchor="sub-a"),
        DocumentPart(BlockKind.HEADING, "Sub a", level=2, anchor="id1"),
        DocumentPart(BlockKind.HEADING, "中文", level=2, anchor="id2"),
    )


def test_a_role_of_one_page_is_not_registered_for_the_next() -> None:
    rst.read(".. role:: ref(raw)\n   :format: html\n\n:ref:`a`")

    assert seen(":ref:`a`") == ["a"]


def test_rejects_an_extremely_long_word() -> None:
    with pytest.raises(Unreadable, match="an extremely long word"):
        rst.read("{}" * 5_000)
