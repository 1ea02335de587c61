"""Jupyter notebooks: text, code, and the first lines of output."""

from __future__ import annotations

import json

import pytest

from bythebook.sources import BlockKind, Unreadable
from bythebook.sources.document import DocumentPart, ParsedDocument
from bythebook.sources.projects import Style
from bythebook.sources.readers import notebook as reader
from tests.support.sample_documents import notebook


def said(text: str | list[str]) -> dict[str, object]:
    return {"cell_type": "markdown", "source": text, "metadata": {}}


def code(source: str, *outputs: dict[str, object], tags: tuple[str, ...] = ()) -> dict[str, object]:
    return {"cell_type": "code", "source": source, "outputs": list(outputs), "metadata": {"tags": list(tags)}}


def printed(text: str, name: str = "stdout") -> dict[str, object]:
    return {"output_type": "stream", "name": name, "text": text}


def shown(text: str) -> dict[str, object]:
    return {"output_type": "execute_result", "data": {"text/plain": [text], "image/png": "iVBOR"}}


def texts(*cells: dict[str, object]) -> list[str]:
    return [part.text for part in reader.read(notebook(*cells)).parts]


def test_reads_text_and_code_in_order() -> None:
    written = notebook(
        said(["# The Lamp\n", "\n", "It *burns*."]),
        code("light()", printed("lit\n")),
        said("## Its Wick"),
        language_info={"name": "python"},
    )

    assert reader.read(written) == ParsedDocument(
        "The Lamp",
        (
            DocumentPart(BlockKind.HEADING, "The Lamp", level=1, anchor="The-Lamp"),
            DocumentPart(BlockKind.PARAGRAPH, "It burns."),
            DocumentPart(BlockKind.CODE, "```python\nlight()\n```"),
            DocumentPart(BlockKind.CODE, "```text\nlit\n```"),
            DocumentPart(BlockKind.HEADING, "Its Wick", level=2, anchor="Its-Wick"),
        ),
    )


def test_generated_ids_are_unique_in_the_whole_notebook() -> None:
    parts = reader.read(notebook(said("## Oil"), said("## Oil")), style=Style.MKDOCS).parts

    assert [part.anchor for part in parts] == ["oil", "oil_1"]


def test_an_unclosed_block_ends_with_its_cell() -> None:
    assert texts(said("```\nopen"), said("Text.")) == ["```\nopen\n```", "Text."]


@pytest.mark.parametrize(
    ("metadata", "source", "first"),
    [
        pytest.param({"kernelspec": {"language": "R"}}, "x", "```r", id="of the kernel"),
        pytest.param({"language_info": {"name": "julia"}}, "x", "```julia", id="of the notebook"),
        pytest.param({}, "x", "```python", id="Python, when nothing is said"),
        pytest.param({}, "%%bash\nls", "```bash", id="of the cell"),
        pytest.param({}, "%%time\nx", "```python", id="a magic word that is no language"),
    ],
)
def test_code_has_a_language(metadata: dict[str, object], source: str, first: str) -> None:
    (part,) = reader.read(notebook(code(source), **metadata)).parts

    assert part.text.split("\n")[0] == first


@pytest.mark.parametrize(
    ("output", "kept"),
    [
        pytest.param(printed("\x1b[31mred\x1b[0m"), "red", id="without colours"),
        pytest.param(printed("careful", "stderr"), "", id="no warnings"),
        pytest.param(shown("42"), "42", id="a result"),
        pytest.param(shown("<Figure size 640x480 with 1 Axes>"), "", id="not the name of a picture"),
        pytest.param({"output_type": "error", "ename": "KeyError", "evalue": "'a'", "traceback": ["x"]}, "KeyError: 'a'", id="an error in one line"),  # noqa: E501
        pytest.param(printed("\n".join(map(str, range(99)))), "\n".join([*map(str, range(20)), "..."]), id="twenty lines"),  # noqa: E501
        pytest.param(printed("x" * 5_000), "x" * 1_000 + "\n...", id="a thousand letters"),
    ],
)  # fmt: skip
def test_truncates_output(output: dict[str, object], kept: str) -> None:
    assert texts(code("x", output))[1:] == ([f"```text\n{kept}\n```"] if kept else [])


def test_omits_cells_that_tags_remove() -> None:
    assert texts(
        code("a", printed("1"), tags=("remove-cell",)),
        code("b", printed("2"), tags=("remove_input",)),
        code("c", printed("3"), tags=("remove-output",)),
    ) == ["```text\n2\n```", "```python\nc\n```"]


def test_reads_raw_cells_only_in_readable_formats() -> None:
    def raw(source: str, kind: str | None) -> dict[str, object]:
        return {"cell_type": "raw", "source": source, "metadata": {"raw_mimetype": kind} if kind else {}}

    assert texts(raw("plain", None), raw("\\LaTeX", "text/latex"), raw("---\ntitle: x\n---", None)) == ["plain"]


def test_reads_notebooks_in_format_3() -> None:
    old = {
        "nbformat": 3,
        "worksheets": [
            {
                "cells": [
                    {"cell_type": "heading", "level": 2, "source": ["Oil"]},
                    {"cell_type": "code", "input": ["x"], "outputs": [{"output_type": "pyout", "text": ["1"]}]},
                ]
            }
        ],
    }

    assert [part.text for part in reader.read(json.dumps(old)).parts] == ["Oil", "```python\nx\n```", "```text\n1\n```"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("{", "it is not a notebook: its JSON is invalid", id="broken"),
        pytest.param("[]", "it is not a notebook: its JSON is not an object", id="another JSON"),
    ],
)
def test_reports_why_a_file_is_not_a_notebook(text: str, reason: str) -> None:
    with pytest.raises(Unreadable) as caught:
        reader.read(text)

    assert str(caught.value).startswith(reason)


def test_ignores_fields_of_the_wrong_type() -> None:
    odd = {
        "cells": [None, {"cell_type": "code", "source": 5, "outputs": [3]}, {"cell_type": "markdown", "source": [1]}]
    }

    assert reader.read(json.dumps(odd | {"metadata": [], "worksheets": "x"})).parts == ()
