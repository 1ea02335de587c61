from __future__ import annotations

import pytest

from bythebook.sources.projects import Style
from bythebook.sources.slugs import AnchorGenerator, docutils_slug, github_slug, mdbook_slug, mkdocs_slug


@pytest.mark.parametrize(
    ("heading", "github", "mkdocs", "sphinx", "mdbook"),
    [
        pytest.param("Hello, World!", *(["hello-world"] * 4), id="punctuation goes"),
        pytest.param(
            "Snake_case & C++", "snake_case--c", "snake_case-c", "snake-case-c", "snake_case--c", id="symbols"
        ),
        pytest.param("Überblick", "überblick", "uberblick", "uberblick", "überblick", id="accents"),
        pytest.param(
            "5. What is ROS 2?", "5-what-is-ros-2", "5-what-is-ros-2", "what-is-ros-2", "5-what-is-ros-2", id="digits"
        ),
        pytest.param("中文 标题", "中文-标题", "", "", "中文-标题", id="other scripts"),
        pytest.param("🚀 Go", "-go", "go", "go", "-go", id="emoji"),
        pytest.param("a – b", "a--b", "a-b", "a-b", "a--b", id="long dashes"),
        pytest.param("½ Ⓐ x²", "-ⓐ-x", "12-a-x2", "a-x2", "½--x²", id="numbers and letters in disguise"),
    ],
)
def test_creates_the_slugs_of_each_generator(heading: str, github: str, mkdocs: str, sphinx: str, mdbook: str) -> None:
    slugs = (github_slug(heading), mkdocs_slug(heading), docutils_slug(heading), mdbook_slug(heading))

    assert slugs == (github, mkdocs, sphinx, mdbook)


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        pytest.param(Style.DOCUSAURUS, ["a", "a-1", "a-1-1", "a-2"], id="docusaurus"),
        pytest.param(Style.MKDOCS, ["a", "a_1", "a-1", "a_2"], id="mkdocs"),
        pytest.param(Style.SPHINX, ["a", "id1", "a-1", "id2"], id="sphinx"),
        pytest.param(Style.MDBOOK, ["a", "a-1", "a-1-1", "a-2"], id="mdbook"),
        pytest.param(Style.PLAIN, ["a", "a-1", "a-1-1", "a-2"], id="plain"),
    ],
)
def test_equal_headings_get_different_ids(style: Style, expected: list[str]) -> None:
    anchors = AnchorGenerator(style)

    assert [anchors.anchor(text, level=2) for text in ("A", "A", "A 1", "A")] == expected


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        pytest.param(Style.DOCUSAURUS, ["a", "a"], id="docusaurus forgets it"),
        pytest.param(Style.MKDOCS, ["a", "a_1"], id="mkdocs keeps clear of it"),
    ],
)
def test_keeps_an_explicit_id(style: Style, expected: list[str]) -> None:
    anchors = AnchorGenerator(style, ["a"])

    assert [anchors.anchor("B", level=2, explicit="a"), anchors.anchor("A", level=2)] == expected


def test_docusaurus_reserves_the_id_of_the_title_but_does_not_render_it() -> None:
    anchors = AnchorGenerator(Style.DOCUSAURUS)

    assert [anchors.anchor("Intro", level=1), anchors.anchor("Intro", level=2)] == ["", "intro-1"]


def test_a_heading_with_an_empty_slug_gets_an_id() -> None:
    assert AnchorGenerator(Style.MKDOCS).anchor("中文", level=2) == "_1"
    assert AnchorGenerator(Style.SPHINX).anchor("中文", level=2) == "id1"
