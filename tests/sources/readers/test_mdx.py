from __future__ import annotations

import pytest

from bythebook.sources import BlockKind
from bythebook.sources.document import DocumentPart
from bythebook.sources.projects import Style
from bythebook.sources.readers import mdx


def seen(text: str) -> list[str]:
    return [part.text for part in mdx.read(text, style=Style.DOCUSAURUS).parts]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        pytest.param("import A from 'a';\nimport {\n  B,\n} from \"b\";\n\nText", ["Text"], id="imports"),
        pytest.param("export const A = ({c}) => (\n  <p>\n\n  {c}\n  </p>\n);\n\nText", ["Text"], id="exports"),
        pytest.param("import the arm first.", ["import the arm first."], id="an English import"),
        pytest.param("a {1 + 1} b{' '}c {`d`}", ["a b c d"], id="expressions"),
        pytest.param("a {/* not\n\nthis */} b", ["a b"], id="comments"),
        pytest.param("{f({a: '}'})}\n\nText", ["Text"], id="braces in strings"),
        pytest.param("a \\{b\\} \\<c>", ["a {b} <c>"], id="escaped"),
        pytest.param("`{a} <B/>`", ["{a} <B/>"], id="inline code is untouched"),
        pytest.param(
            "```jsx\nimport A from 'a'\n<B c={d}/>\n```", ["```jsx\nimport A from 'a'\n<B c={d}/>\n```"], id="code too"
        ),
        pytest.param("an open { brace", ["an open { brace"], id="what does not close is text"),
        pytest.param("<https://x.test>", ["https://x.test"], id="addresses"),
    ],
)
def test_removes_expressions_and_keeps_text(written: str, read: list[str]) -> None:
    assert seen(written) == read


@pytest.mark.parametrize(
    ("written", "read"),
    [
        pytest.param("<A b={() => {return '>'}}>in **it**</A>", ["in it"], id="a component's children"),
        pytest.param("<A\n  b={{\n    c: 1\n  }}\n/>\n\nText", ["Text"], id="over many lines"),
        pytest.param(
            '<Tabs>\n  <TabItem value="a" label="One">\n    **First**\n  </TabItem>\n'
            '  <TabItem label="Two">B</TabItem>\n</Tabs>',
            ["One", "First", "Two", "B"],
            id="tabs keep their labels",
        ),
        pytest.param("<details>\n  <summary>More</summary>\n  Text\n</details>", ["More", "Text"], id="details"),
        pytest.param("- a\n\n  <A>\n\n  b\n\n  </A>\n- c", ["- a\n  b\n- c"], id="in a list"),
        pytest.param("<ul>\n<li style={{a: 1}}>a</li>\n</ul>", ["- a"], id="html lists"),
        pytest.param(
            '<Code title="T" language="py" code={`x = "\\`"`} />', ["T", '```py\nx = "`"\n```'], id="code as attribute"
        ),
        pytest.param(
            '```mdx-code-block\nimport T from "t";\n\n<T>\n<TabItem label="One">\n```\n\n```js\nx\n```\n',
            ["One", "```js\nx\n```"],
            id="fenced MDX",
        ),
        pytest.param(":::tip Mind\n\n<A>Text</A>\n\n:::", ["Mind", "Text"], id="in an admonition"),
    ],
)
def test_reads_the_content_of_components(written: str, read: list[str]) -> None:
    assert seen(written) == read


@pytest.mark.parametrize("written", ["## A {#b}", "## A {/* #b */}"])
def test_heading_ids_are_not_expressions(written: str) -> None:
    assert mdx.read(written, style=Style.DOCUSAURUS).parts == (
        DocumentPart(BlockKind.HEADING, "A", level=2, anchor="b"),
    )
