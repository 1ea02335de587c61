"""Properties of all readers, with generated and hostile documents."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bythebook.sources import BlockKind, Unreadable, readers
from bythebook.sources.document import compose
from bythebook.sources.projects import Style
from tests.support.sample_documents import notebook

PIECES = st.sampled_from(
    [
        *(
            "# A\n",
            "## B {#b}\n",
            "text",
            " ",
            "\n",
            "\n\n",
            "- ",
            "  - ",
            "1. ",
            "> ",
            "```",
            "```py\n",
            "~~~\n",
            "`",
            "**",
            "_",
        ),
        *(
            "[a](b)",
            "[",
            "](",
            "![",
            "|",
            "a|b\n-|-\n1|2\n",
            "<div>",
            "</div>",
            "<!--",
            "-->",
            "<br>",
            "<A b='c'>",
            "</A>",
            "{",
        ),
        *(
            "}",
            "{% x %}",
            "{{ y }}",
            ":::note T\n",
            ":::\n",
            "!!! note\n",
            "    ",
            "/// tip\n",
            "///\n",
            '=== "T"\n',
            "[^1]",
            "[^1]: n",
        ),
        *(
            "---\n",
            "===\n",
            "\t",
            "\\",
            "&amp;",
            "\u00a0",
            "\u200b",
            "\u2028",
            "é",
            "中",
            "🚀",
            "import a from 'b'\n",
            "export const a = {",
        ),
        *(
            ".. note::\n\n   x\n",
            ":ref:`a`",
            "::\n\n   x",
            "<table><tr><td>x",
            "<ul><li>",
            "<pre>",
            "<h2 id=x>",
            "\x0b",
            "$",
            "~",
            "| ",
        ),
        *(
            "== C\n",
            "|===\n",
            "----\n",
            "====\n",
            "[source,py]\n",
            "+\n",
            "* a\n",
            "x:: y\n",
            ":a: b\n",
            "{a}",
            "<<a>>",
            "++",
        ),
    ]
)
DOCUMENTS = st.lists(PIECES, max_size=40).map("".join) | st.text(max_size=200)
SUFFIXES = st.sampled_from([".md", ".mdx", ".html", ".rst", ".txt", ".adoc", ".ipynb"])


@settings(max_examples=400, deadline=None)
@given(text=DOCUMENTS, suffix=SUFFIXES, style=st.sampled_from(Style))
@example(text="- - a\n\n      b\n", suffix=".md", style=Style.PLAIN)
def test_blocks_are_consecutive_and_cover_the_text(text: str, suffix: str, style: Style) -> None:
    if suffix == ".ipynb":
        text = notebook({"cell_type": "markdown", "source": text}, {"cell_type": "code", "source": text})
    try:
        draft = readers.read(text, suffix=suffix, style=style)
    except Unreadable:
        return
    page, blocks = compose(draft.parts)

    assert page == "\n\n".join(page[block.start : block.end] for block in blocks)
    for block in blocks:
        said = page[block.start : block.end]
        assert said == said.strip("\n ")
        assert (block.kind is BlockKind.HEADING) == (1 <= block.level <= 6)
        assert block.kind is BlockKind.CODE or "\n\n" not in said
        assert block.kind is BlockKind.HEADING or not block.anchor
        assert "\r" not in said


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[" * 1_000_000, id="a million brackets"),
        pytest.param("{" * 1_000_000, id="a million braces"),
        pytest.param("word " * 200_000, id="a line without end"),
        pytest.param("> " * 100_000, id="a quotation in a quotation"),
        pytest.param("".join("  " * depth + "- a\n" for depth in range(400)), id="a list in a list"),
        pytest.param("".join("    " * depth + "!!! note\n" for depth in range(200)), id="a note in a note"),
        pytest.param("<div>" * 100_000, id="an element in an element"),
        pytest.param("<A " * 100_000, id="tags that never close"),
        pytest.param("<!--" * 100_000, id="comments that never close"),
    ],
)
@pytest.mark.parametrize("suffix", [".md", ".mdx", ".html", ".rst", ".txt", ".adoc", ".ipynb"])
def test_reads_or_rejects_a_hostile_page(text: str, suffix: str) -> None:
    with suppress(Unreadable):
        readers.read(text, suffix=suffix, style=Style.PLAIN)


def test_importing_the_folder_source_imports_no_parser() -> None:
    script = (
        "import sys, bythebook.sources.folder;"
        "heavy = 'markdown_it selectolax docutils yaml pypdfium2'.split()\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
