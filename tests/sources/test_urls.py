from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from bythebook.sources.projects import Style
from bythebook.sources.urls import page_url, strip_number_prefix

SITE = "https://book.example.test"


@pytest.mark.parametrize(
    ("style", "path", "route"),
    [
        pytest.param(Style.DOCUSAURUS, "a/b.md", "/a/b", id="docusaurus page"),
        pytest.param(Style.DOCUSAURUS, "a/index.mdx", "/a", id="docusaurus index"),
        pytest.param(Style.DOCUSAURUS, "a/README.md", "/a", id="docusaurus readme"),
        pytest.param(Style.DOCUSAURUS, "arms/Arms.md", "/arms", id="docusaurus file named like its folder"),
        pytest.param(Style.DOCUSAURUS, "01-arms/arms.md", "/arms/arms", id="docusaurus folder with another name"),
        pytest.param(Style.DOCUSAURUS, "01-arms/02. grip.md", "/arms/grip", id="docusaurus numbers only sort"),
        pytest.param(Style.DOCUSAURUS, "2024-01-05-news.md", "/2024-01-05-news", id="docusaurus dates stay"),
        pytest.param(Style.DOCUSAURUS, "index.md", "/", id="docusaurus home"),
        pytest.param(Style.MKDOCS, "a/b.md", "/a/b/", id="mkdocs page"),
        pytest.param(Style.MKDOCS, "a/index.md", "/a/", id="mkdocs index"),
        pytest.param(Style.MKDOCS, "index.md", "/", id="mkdocs home"),
        pytest.param(Style.SPHINX, "a/b.rst", "/a/b.html", id="sphinx page"),
        pytest.param(Style.SPHINX, "index.rst", "/index.html", id="sphinx home"),
        pytest.param(Style.MDBOOK, "ch01.md", "/ch01.html", id="mdbook page"),
        pytest.param(Style.MDBOOK, "a/README.md", "/a/index.html", id="mdbook readme"),
        pytest.param(Style.PLAIN, "01-a/b.md", "/01-a/b", id="plain keeps numbers"),
        pytest.param(Style.PLAIN, "a/readme.md", "/a", id="plain index"),
        pytest.param(Style.MKDOCS, "a/b.html", "/a/b.html", id="html keeps its path"),
        pytest.param(Style.PLAIN, "a b/ü?#.md", "/a%20b/%C3%BC%3F%23", id="percent-encoded"),
        pytest.param(Style.PLAIN, "v1.2/notes.md", "/v1.2/notes", id="dots in folders"),
    ],
)
def test_a_file_has_the_url_of_its_generator(style: Style, path: str, route: str) -> None:
    assert page_url(PurePosixPath(path), site_url=SITE + "/", style=style) == SITE + route


@pytest.mark.parametrize(
    ("slug", "name", "route"),
    [
        pytest.param("/start", "", "/start", id="from the top of the site"),
        pytest.param("start", "", "/a/start", id="beside its neighbours"),
        pytest.param("../start", "", "/start", id="one folder up"),
        pytest.param("../../../start", "", "/start", id="never above the site"),
        pytest.param("/", "", "/", id="the home page"),
        pytest.param("", "other", "/a/other", id="its own id"),
    ],
)
def test_docusaurus_front_matter_may_set_the_url(slug: str, name: str, route: str) -> None:
    path = PurePosixPath("a/b.md")

    assert page_url(path, site_url=SITE, style=Style.DOCUSAURUS, slug=slug, name=name) == SITE + route


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("01-intro", "intro"),
        ("3. intro", "intro"),
        ("nav2-path", "nav2-path"),
        ("2.1-setup", "2.1-setup"),
        ("2024-05-news", "2024-05-news"),
        ("42", "42"),
    ],
)
def test_strips_only_sort_numbers(name: str, expected: str) -> None:
    assert strip_number_prefix(name) == expected
