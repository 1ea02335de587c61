"""Parsing of literals in JavaScript."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bythebook.sources.projects.javascript import parse_export


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("module.exports = {a: 'x', \"b\": [1, -2.5, 0x10], c: true, d: null}", id="commonjs"),
        pytest.param("export default {a: 'x', b: [1, -2.5, 16,], c: true, d: undefined,};", id="module"),
        pytest.param("const c = {a: 'x', b: [1, -2.5, 16], c: true, d: null}\nmodule.exports = c", id="name"),
        pytest.param(
            "/** @type {import('x').Config} */\nexport default defineConfig({a: 'x', /* , */ b: [1, -2.5, 16], // }\n"
            "c: true, d: null} satisfies Config)",
            id="types, comments and a function around it",
        ),
        pytest.param(
            "module.exports = async function make() {\n const y = f({});\n"
            " return {a: 'x', b: [1, -2.5, 16], c: true, d: null};\n}",
            id="returned by a function",
        ),
        pytest.param("export default () => ({a: 'x', b: [1, -2.5, 16], c: true, d: null})", id="arrow"),
    ],
)
def test_parses_the_exported_value(source: str) -> None:
    assert parse_export(source) == {"a": "x", "b": [1, -2.5, 16], "c": True, "d": None}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        pytest.param("'it\\'s \\u00e9\\x41'", "it's éA", id="escapes"),
        pytest.param("`https://${host}/a`", "https://h.example/a", id="a template with a known name"),
        pytest.param("`https://${other}/a`", None, id="a template with an unknown name"),
        pytest.param("process.env.URL || 'usual'", "usual", id="a second choice"),
        pytest.param("process.env.URL ?? 'usual'", "usual", id="another second choice"),
        pytest.param("'a' + 'b'", "ab", id="texts together"),
        pytest.param("isProduction ? 'a' : 'b'", None, id="a decision"),
        pytest.param("require.resolve('./sidebars.js')", "./sidebars.js", id="a path"),
        pytest.param("path.join(__dirname, 'docs', 'en')", "docs/en", id="a path in pieces"),
        pytest.param("site.base", "/b/", id="inside of a constant"),
        pytest.param("itself", None, id="a constant made of itself"),
        pytest.param("['a', ...more, f(), 'b'].filter(Boolean)", ["a", "m", None, "b"], id="a list with holes"),
        pytest.param(
            "{...site, [key]: 1, f(x) { return {y: ','} }, host, 'b-c': 2}",
            {"base": "/b/", "host": "h.example", "b-c": 2},
            id="an object with more than values",
        ),
        pytest.param("({path}) => `x/${path}`", None, id="a function"),
        pytest.param("/[,}'\"]/g", None, id="a regular expression"),
        pytest.param("new Map([['a', {b: 1}]])", None, id="something made when it runs"),
    ],
)
def test_parses_an_expression(expression: str, value: Any) -> None:
    source = "const host = 'h.example';\nlet site = {base: '/b/'}\nvar more = ['m'];\nconst itself = itself + 'x';\n"
    found = parse_export(f"{source}module.exports = {{before: 1, found: {expression}, after: 2}};")
    assert found == {"before": 1, "found": value, "after": 2}


@given(st.text(alphabet="{}[]()'\"`/*,:;=.$\\ \n a1<>?|&+-", max_size=60))
def test_any_text_is_parsed_without_an_exception(text: str) -> None:
    parse_export(f"module.exports = {text}")


def test_deep_nesting_is_unknown() -> None:
    assert parse_export("module.exports = " + "[" * 100_000) is None
