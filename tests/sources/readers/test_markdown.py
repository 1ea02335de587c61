from __future__ import annotations

import pytest

from bythebook.sources import BlockKind, Unreadable
from bythebook.sources.document import DocumentPart
from bythebook.sources.projects import Style
from bythebook.sources.readers import markdown


def seen(text: str, style: Style = Style.PLAIN) -> list[str]:
    return [part.text for part in markdown.read(text, style=style).parts]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        pytest.param("**bold** and _thin_ and ~~gone~~", "bold and thin and gone", id="emphasis"),
        pytest.param("[words](https://x.test) [too][r]\n\n[r]: /y", "words too", id="links are their words"),
        pytest.param("see <https://x.test>", "see https://x.test", id="an address is its own words"),
        pytest.param("before ![alt](a.png) after", "before after", id="images are not text"),
        pytest.param("run `a **b**`", "run a **b**", id="inline code is kept to the character"),
        pytest.param("one\ntwo", "one two", id="a soft break is a space"),
        pytest.param("one  \ntwo\\\nthree<br/>four", "one\ntwo\nthree\nfour", id="a hard break is a line"),
        pytest.param("a <!-- hidden --> b", "a b", id="comments"),
        pytest.param("press <kbd>Ctrl</kbd>", "press Ctrl", id="inline html"),
        pytest.param("5 \\* 3 &lt; 4 &amp; \\{x\\}", "5 * 3 < 4 & {x}", id="escapes and entities"),
        pytest.param("[go](/x){.button target=_blank}", "go", id="attributes of a link"),
        pytest.param("text\n{: .lead }", "text", id="attributes of a paragraph"),
        pytest.param("a {% raw %}b{% endraw %} {{ c }}d", "a b d", id="templates"),
        pytest.param(":material-check: done :octicons-x-16: :simple-a_b_c:", "done", id="icons"),
        pytest.param("[go](/x){ target=_blank rel=_self } on { .annotate }", "go on", id="spaced attributes"),
        pytest.param(
            "a [lamp.Wick][] and [`oil`][lamp.oil] of [the *lamp*][x/y]",
            "a lamp.Wick and oil of the lamp",
            id="references that a plugin resolves",
        ),
        pytest.param("[w][r] x[i][jj] [a][b] `[c][dd]`\n\n[r]: /y", "w x[i][jj] [a][b] [c][dd]", id="no references"),
        pytest.param("`#!py trim()` and `:::js oil`", "trim() and oil", id="the language of inline code"),
        pytest.param("> quoted\n> text", "quoted text", id="a quotation"),
        pytest.param("- [x] done", "- done", id="a task"),
    ],
)
def test_removes_inline_markup(written: str, read: str) -> None:
    assert seen(written) == [read]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        pytest.param("- a\n- b\n  - c\n    more", ["- a\n- b\n  - c more"], id="nested"),
        pytest.param("3. a\n4. b\n   1. c", ["3. a\n4. b\n   1. c"], id="numbers are the author's"),
        pytest.param("- a\n\n  b\n- c", ["- a\n  b\n- c"], id="two paragraphs in an item"),
        pytest.param("- a\n  ```py\n  x\n  ```\n  b\n- c", ["- a", "```py\nx\n```", "b", "- c"], id="code in an item"),
        pytest.param("- a\n- b\n\ntext\n\n- c", ["- a\n- b", "text", "- c"], id="two lists"),
        pytest.param("- - a", ["- - a"], id="a list in a list at once"),
        pytest.param("-\n- b", ["- b"], id="an empty item"),
    ],
)
def test_keeps_the_structure_of_lists(written: str, read: list[str]) -> None:
    assert seen(written) == read


@pytest.mark.parametrize(
    ("written", "read"),
    [
        pytest.param(":::note\n\nText\n\n:::", ["Note", "Text"], id="docusaurus"),
        pytest.param(":::tip[My *tip*]\nText\n:::", ["My tip", "Text"], id="docusaurus with a title"),
        pytest.param(":::warning Mind\nText\n:::", ["Mind", "Text"], id="docusaurus with an older title"),
        pytest.param('!!! note "Mind"\n    Text\n\n    More\n\nAfter', ["Mind", "Text", "More", "After"], id="mkdocs"),
        pytest.param(
            "??? tip\n    - a\n\n    ```py\n    x\n    ```", ["Tip", "- a", "```py\nx\n```"], id="mkdocs folded"
        ),
        pytest.param('!!! note ""\n    Text', ["Text"], id="mkdocs without a title"),
        pytest.param("/// note | Mind\n    open: True\n\nText\n\n///", ["Mind", "Text"], id="blocks"),
        pytest.param("//// tab | One\n\n/// tip\n\nText\n\n///\n\n////", ["One", "Tip", "Text"], id="blocks in blocks"),
        pytest.param("> [!NOTE]\n> Text", ["Note", "Text"], id="github"),
        pytest.param('=== "One"\n    a\n\n=== "Two"\n    b', ["One", "a", "Two", "b"], id="tabs"),
        pytest.param("<details>\n<summary>More</summary>\n\nText\n\n</details>", ["More", "Text"], id="details"),
        pytest.param("::: module.Class\n    options:\n      x: 1\n\nText", ["Text"], id="generated reference"),
    ],
)
def test_admonitions_and_tabs_become_a_label_and_text(written: str, read: list[str]) -> None:
    assert seen(written) == read


@pytest.mark.parametrize(
    ("written", "read"),
    [
        pytest.param("```js title='a.js' {1,3}\nx\n```", ["a.js", "```js\nx\n```"], id="a title is seen"),
        pytest.param("~~~\n```\n~~~", ["````\n```\n````"], id="another fence"),
        pytest.param("    indented\n      more", ["```\nindented\n  more\n```"], id="indented"),
        pytest.param('```hl_lines="4"\nx\n```', ["```\nx\n```"], id="only options"),
        pytest.param("```rust\n{{#rustdoc_include ../a.rs:here}}\n```", [], id="only an included file"),
        pytest.param("```py\na\n{* ../b.py hl[1] *}\n```", ["```py\na\n```"], id="an include among code"),
        pytest.param("```hbs\n{{#if x}}\n```", ["```hbs\n{{#if x}}\n```"], id="what only looks like one"),
        pytest.param("{* ../../docs_src/a.py ln[1:3] *}\n\nText", ["Text"], id="an include between paragraphs"),
        pytest.param("```py\n# --8<-- [start:a]\nx\n# --8<-- [end:a]\n```", ["```py\nx\n```"], id="marks of sections"),
        pytest.param("a\n\n--8<--\nb.md\nc.md\n--8<--\n\nd", ["a", "d"], id="a block of includes"),
        pytest.param('```mdx-code-block\nimport A from "a";\n\n<A label="One">\n```\n\nb', ["One", "b"], id="mdx"),
        pytest.param("<figure markdown>\n  ![a](b.png)\n  **Lit**\n</figure>", ["Lit"], id="markdown in html"),
        pytest.param("```", [], id="nothing"),
    ],
)
def test_keeps_code_and_removes_include_markers(written: str, read: list[str]) -> None:
    assert seen(written) == read


def test_removes_the_hidden_lines_of_rust_in_mdbook() -> None:
    assert seen("```rust\n# fn main() {\n#[test]\nlet x;\n# }\n```", Style.MDBOOK) == ["```rust\n#[test]\nlet x;\n```"]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        pytest.param("```{note} Mind\n:class: x\nA *b*\n\n- c\n```", ["Mind", "A b", "- c"], id="admonition"),
        pytest.param("```{code-block} py\n---\nlinenos: true\n---\nx\n```", ["```py\nx\n```"], id="code"),
        pytest.param("```{python}\nx\n```", ["```python\nx\n```"], id="a notebook's cell"),
        pytest.param("```{code-block} py\n:caption: a.py\nx\n```", ["a.py", "```py\nx\n```"], id="caption of code"),
        pytest.param("````{grid} 1 2\n```{card} A\nb\n```\n````", ["A", "b"], id="columns are no text"),
        pytest.param("```{eval-rst}\n.. tip:: a\n\n::\n\n   x\n```", ["Tip", "a", "```\nx\n```"], id="another markup"),
        pytest.param("```{toctree}\na\n```", [], id="navigation"),
        pytest.param(":::{tip}\nA\n:::", ["Tip", "A"], id="between colons"),
        pytest.param("See {ref}`the words <x>` and `<y>`", ["See the words and <y>"], id="roles"),
    ],
)
def test_reads_myst_like_sphinx(written: str, read: list[str]) -> None:
    assert seen(written, Style.SPHINX) == read


def test_formats_tables_as_pipe_tables() -> None:
    assert seen("a | b\n:--|--:\n`x \\| y` | **2**") == ["| a | b |\n| --- | --- |\n| x \\| y | 2 |"]


@pytest.mark.parametrize(
    ("written", "anchor"),
    [
        pytest.param("## A b", "a-b", id="made"),
        pytest.param("## A b {#c}", "c", id="docusaurus"),
        pytest.param("## A b { #c }", "c", id="attributes"),
        pytest.param("## A b {: #c .d }", "c", id="kramdown"),
    ],
)
def test_a_heading_has_its_explicit_or_generated_id(written: str, anchor: str) -> None:
    assert markdown.read(written).parts == (DocumentPart(BlockKind.HEADING, "A b", level=2, anchor=anchor),)


def test_keeps_footnotes_and_removes_their_marks() -> None:
    assert seen("Word[^1] on.\n\n[^1]: Note\n    goes on.\n[^2]: Other") == ["Word on.", "Note goes on.", "Other"]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        pytest.param("<p align='center'>A <em>b</em></p>", ["A b"], id="paragraph"),
        pytest.param("<div class='x'>\n\n**a**\n\n</div>", ["a"], id="around Markdown"),
        pytest.param("<!--\n\nhidden\n\n-->", [], id="comment"),
        pytest.param("<script>\nlet x\n\nlet y\n</script>", [], id="script"),
        pytest.param('<Listing number="1" caption="A `b`">\n\n</Listing>', ["A b"], id="a component's caption"),
    ],
)
def test_reads_the_visible_text_of_embedded_html(written: str, read: list[str]) -> None:
    assert seen(written) == read


@pytest.mark.parametrize(
    ("written", "title"),
    [
        pytest.param("---\ntitle: Front\n---\n# Top", "Front", id="front matter first"),
        pytest.param("+++\ntitle = 'Front'\n+++\n# Top", "Front", id="in TOML"),
        pytest.param("text\n\n## Sub\n\n# Top *one*", "Top one", id="then the top heading"),
        pytest.param("## Sub\n\ntext", "Sub", id="then the heading it begins with"),
        pytest.param("text\n\n## Sub", "", id="else none"),
        pytest.param("---\ntitle: 2024\n---\ntext", "2024", id="a number is a title"),
        pytest.param("---\n\ntext\n\n---\n# Top", "Top", id="two rules are no front matter"),
    ],
)
def test_finds_the_title_of_a_page(written: str, title: str) -> None:
    assert markdown.read(written).title == title


def test_reports_invalid_front_matter_with_its_line() -> None:
    with pytest.raises(Unreadable, match=r"front matter is not valid YAML \(line 3\)"):
        markdown.read("---\na: 1\ntitle: b: c\n---\ntext")
