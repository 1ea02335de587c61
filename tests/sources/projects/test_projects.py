"""Three small projects, as their generators publish them.

The addresses, the order, the modules and the anchors are those of the sites that Docusaurus 3.10, MkDocs 1.6 with
Material 9.8 and Sphinx 9.0 make of them.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bythebook.errors import ConfigurationError, InputError
from bythebook.sources import ExcludedPage, ListedPage, Page, SkippedPage, Unreadable
from bythebook.sources.factory import open_path
from bythebook.sources.folder import Folder
from bythebook.sources.projects import NonContent, ProjectOptions, Style
from bythebook.sources.projects.project import Project
from tests.support.word_embedder import WordBook

BOOKS = Path(__file__).parents[2] / "books"
TIDEPOOL, ORCHARD, KILN = "https://tidepool.example/guide", "https://orchard.example/book", "https://kiln.example/en"


@pytest.fixture
def tidepool(tmp_path: Path) -> Path:
    return shutil.copytree(BOOKS / "tidepool", tmp_path / "tidepool")


@pytest.fixture
def orchard(tmp_path: Path) -> Path:
    return shutil.copytree(BOOKS / "orchard", tmp_path / "orchard")


@pytest.fixture
def kiln(tmp_path: Path) -> Path:
    return shutil.copytree(BOOKS / "kiln", tmp_path / "kiln")


async def listed(project: Project) -> list[ListedPage]:
    return [entry async for entry in project.listing() if isinstance(entry, ListedPage)]


async def rows(project: Project, site: str) -> list[tuple[str, str, str, str]]:
    pages = [await project.read(entry) for entry in await listed(project)]
    return [(page.url.removeprefix(site), page.title, page.module_name, page.chapter_id) for page in pages]


async def left_out(project: Project) -> dict[str, str]:
    return {
        entry.path: entry.reason.partition(";")[0]
        async for entry in project.listing()
        if isinstance(entry, ExcludedPage)
    }


async def page(project: Project, path: str) -> Page:
    (entry,) = [entry for entry in await listed(project) if entry.path == path]
    return await project.read(entry)


async def anchors(project: Project, path: str) -> list[str]:
    return [block.anchor for block in (await page(project, path)).blocks if block.anchor]


async def test_a_docusaurus_project_has_the_pages_of_its_site(tidepool: Path) -> None:
    assert await rows(Project(tidepool), TIDEPOOL) == [
        ("/book/", "Welcome to the pool", "", "intro"),
        ("/book/tanks/sea-water", "Sea water", "Setting up", "tanks/sea-water"),
        ("/book/tanks/basin", "The basin", "Setting up", "tanks/basin"),
        ("/book/tanks/", "Tanks at a glance", "Setting up", "tanks/README"),
        ("/book/animals/crabs/", "Crabs", "Animals", "animals/crabs/crabs"),
        ("/book/animals/feeding", "Feeding a crab", "Animals", "animals/crabs/food"),
        ("/book/animals/anemone", "Anemones", "Animals", "animals/anemone"),
        ("/book/loose", "A loose leaf", "", "loose"),
        ("/people/meeting", "Meeting other keepers", "", "meeting"),
    ]
    assert await anchors(Project(tidepool), "docs/01-intro.md") == ["needs", "what-you-need"]
    assert await anchors(Project(tidepool), "docs/02-tanks/01-basin.mdx") == ["place"]


async def test_reports_documents_that_are_not_part_of_the_book(tidepool: Path) -> None:
    assert await left_out(Project(tidepool)) == {
        "docs/02-tanks/03-secret.md": "a draft, which is not published",
        "docs/02-tanks/04-hidden.md": "unlisted: its author does not want it to be found",
        "docs/tutorial-basics/create-a-page.md": "a sample page that comes with Docusaurus",
        "docs/changelog.md": "a list of changes",
        "blog/2024-05-01-spring-tide.md": "a blog post",
        "blog/pump.md": "a blog post",
        "src/pages/index.tsx": "a page made of components, outside of the docs",
        "src/pages/about.md": "a page outside of the docs",
        "CHANGELOG.md": "a list of changes",
        "README.md": "the README of the repository",
    }


async def test_includes_other_documents_on_request(tidepool: Path) -> None:
    project = Project(
        tidepool, options=ProjectOptions(include=frozenset([NonContent.BLOG, NonContent.PAGES, NonContent.REPOSITORY]))
    )

    assert [entry.url for entry in (await listed(project))[9:]] == [
        f"{TIDEPOOL}/news/2024/05/01/spring-tide",
        f"{TIDEPOOL}/news/a-new-pump",
        f"{TIDEPOOL}/about",
        (tidepool / "README.md").as_uri(),
    ]
    assert set(await left_out(project)) == {
        *("docs/02-tanks/03-secret.md", "docs/02-tanks/04-hidden.md", "docs/tutorial-basics/create-a-page.md"),
        *("docs/changelog.md", "src/pages/index.tsx", "CHANGELOG.md"),
    }


async def test_expands_components_partials_and_tabs(tidepool: Path) -> None:
    text = (await page(Project(tidepool), "docs/02-tanks/01-basin.mdx")).text

    assert text.split("\n\n") == [
        *("The basin", "Glass of eight millimetres does not bend.", "Leave it empty"),
        *("Rinse the basin with fresh water only.", "Small basin", "A small basin holds twenty litres."),
        *("large", "A large basin holds ninety litres.", "Where it stands", "place.js"),
        "```js\nconst sun = {hours: 2};\n```",
    ]


async def test_reads_another_version(tidepool: Path) -> None:
    found = await rows(Project(tidepool, options=ProjectOptions(version="1.0")), TIDEPOOL)

    assert found == [
        ("/book/1.0/intro", "The first edition", "Old times", "intro"),
        ("/people/meeting", "Meeting other keepers", "", "meeting"),
    ]


async def test_the_default_version_is_the_newest_unless_configured(tidepool: Path) -> None:
    config = tidepool / "docusaurus.config.ts"
    config.write_text(config.read_text().replace("lastVersion: 'current',", "").replace(", path: ''", ""))

    assert next(entry.url for entry in await listed(Project(tidepool))) == f"{TIDEPOOL}/book/intro"
    now = await listed(Project(tidepool, options=ProjectOptions(version="next")))
    assert now[0].url == f"{TIDEPOOL}/book/next/"


async def test_reads_another_locale(tidepool: Path) -> None:
    found = await rows(Project(tidepool, options=ProjectOptions(locale="de")), TIDEPOOL)

    assert found[:2] == [
        ("/de/book/", "Welcome to the pool", "", "intro"),
        ("/de/book/tanks/sea-water", "Meerwasser", "Einrichten", "tanks/sea-water"),
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param(
            ProjectOptions(version="3"), r"no version '3'. It has '1.0', 'current'|'current', '1.0'", id="version"
        ),
        pytest.param(ProjectOptions(locale="fr"), "no locale 'fr'. It has 'en', 'de'", id="language"),
    ],
)
async def test_rejects_an_unknown_version_or_locale(tidepool: Path, options: ProjectOptions, message: str) -> None:
    with pytest.raises(InputError, match=message):
        await listed(Project(tidepool, options=options))


@pytest.mark.parametrize(
    ("slash", "routes"),
    [("true", ["/book/", "/book/tanks/sea-water/"]), ("false", ["/book", "/book/tanks/sea-water"])],
)
async def test_trailing_slashes_follow_the_configuration(tidepool: Path, slash: str, routes: list[str]) -> None:
    config = tidepool / "docusaurus.config.ts"
    config.write_text(config.read_text().replace("baseUrl:", f"trailingSlash: {slash}, baseUrl:"))

    assert [entry.url for entry in await listed(Project(tidepool))][:2] == [TIDEPOOL + route for route in routes]


@pytest.mark.parametrize(
    ("given", "first"),
    [
        pytest.param("https://preview.example", "https://preview.example/guide/book/", id="another host"),
        pytest.param("https://preview.example/x/", "https://preview.example/x/book/", id="another path"),
    ],
)
async def test_the_site_url_can_be_given(tidepool: Path, given: str, first: str) -> None:
    assert next(entry.url for entry in await listed(Project(tidepool, site_url=given))) == first


async def test_a_mkdocs_project_has_the_pages_of_its_site(orchard: Path) -> None:
    assert await rows(Project(orchard), ORCHARD) == [
        ("/", "Home", "", "index"),
        ("/trees/", "All trees", "Trees", "trees/index"),
        ("/trees/grafting/", "Grafting", "Trees", "trees/grafting"),
        ("/trees/pruning/", "pruning", "Trees", "trees/pruning"),
        ("/harvest/", "The harvest", "The harvest", "harvest/README"),
        ("/harvest/cider/", "Cider", "The harvest", "harvest/cider"),
        ("/shears/", "Shears", "", "shears"),
    ]
    assert await anchors(Project(orchard), "docs/index.md") == [
        *("an-orchard-of-ones-own", "größe--lage", "größe--lage_1"),
    ]
    assert await anchors(Project(orchard), "docs/trees/grafting.md") == ["how-to-graft", "bind"]
    assert await left_out(Project(orchard)) == {
        "docs/release-notes.md": "a list of changes",
        "docs/blog/index.md": "the first page of the blog",
        "docs/blog/posts/frost.md": "a blog post",
        "README.md": "the README of the repository",
    }


async def test_a_post_of_the_material_blog_has_its_date_in_the_url(orchard: Path) -> None:
    project = Project(orchard, options=ProjectOptions(include=frozenset([NonContent.BLOG])))

    assert f"{ORCHARD}/blog/2024/04/20/late-frost/" in [entry.url for entry in await listed(project)]


async def test_expands_admonitions_tabs_snippets_and_annotations(orchard: Path) -> None:
    text = (await page(Project(orchard), "docs/trees/grafting.md")).text

    assert text.split("\n\n") == [
        *("How to graft", "Sharp knives", "Cut away from your hand.", "Question", "A graft takes three weeks."),
        *("Whip graft", "Both pieces are equally thick.", "Cleft graft", "The stock is thicker than the scion."),
        *("Binding", "Use raffia, and wax.", "1. Raffia rots by itself."),
        *("```python\ntree.graft(scion)\n```", "1. It returns nothing."),
    ]
    assert "All trees are planted in November." in (await page(Project(orchard), "docs/trees/index.md")).text
    assert "```text\nFebruary\nMarch\n```" in (await page(Project(orchard), "docs/trees/pruning.md")).text
    assert (await page(Project(orchard), "docs/harvest/cider.md")).text.endswith("Slow pressing keeps it clear.")


async def test_the_default_navigation_lists_pages_before_subfolders(orchard: Path) -> None:
    (orchard / "mkdocs.yml").write_text("site_name: x\nsite_url: https://o.example\nuse_directory_urls: false\n")
    shutil.rmtree(orchard / "docs" / "blog")

    assert [(route, module) for route, _, module, _ in await rows(Project(orchard), "https://o.example")] == [
        ("/index.html", ""),
        ("/shears.html", ""),
        ("/drafts/plum.html", "Drafts"),
        ("/harvest/index.html", "Harvest"),
        ("/harvest/cider.html", "Harvest"),
        ("/trees/index.html", "Trees"),
        ("/trees/grafting.html", "Trees"),
        ("/trees/pruning.html", "Trees"),
    ]


async def test_a_sphinx_project_has_the_pages_of_its_site(kiln: Path) -> None:
    assert await rows(Project(kiln), KILN) == [
        ("/index.html", "The Kiln", "", "index"),
        ("/firing/index.html", "Firing", "Firing", "firing/index"),
        ("/firing/bisque.html", "Bisque", "Firing", "firing/bisque"),
        ("/glazes/index.html", "Glazes", "Firing", "glazes/index"),
        ("/glazes/ash.html", "Ash glaze", "Firing", "glazes/ash"),
        ("/words.html", "Words", "Reference", "words"),
        ("/orphan.html", "Orphan", "", "orphan"),
    ]
    assert await anchors(Project(kiln), "source/firing/bisque.rst") == ["bisque", "temperature", "id1"]
    assert await anchors(Project(kiln), "source/glazes/ash.md") == ["ash-glaze", "grosze-der-korner", "id1"]
    assert await left_out(Project(kiln)) == {
        "source/changelog.rst": "a list of changes",
        "README.rst": "the README of the repository",
    }


@pytest.mark.parametrize("folder", ["docs", "doc", "docs/source"])
async def test_finds_the_sphinx_project_of_a_repository(kiln: Path, tmp_path: Path, folder: str) -> None:
    repository = tmp_path / "repository"
    (repository / "examples").mkdir(parents=True)
    (repository / "examples" / "README.rst").write_text("An example.")
    (repository / "CHANGES.rst").write_text("Version 2\n")
    shutil.copytree(kiln / "source", repository / folder)

    assert [route for route, *_ in await rows(Project(repository), KILN)][:2] == ["/index.html", "/firing/index.html"]
    assert (await left_out(Project(repository)))["CHANGES.rst"] == "a list of changes"


async def test_references_of_sphinx_show_titles(kiln: Path) -> None:
    (kiln / "source" / "words.rst").write_text(
        ".. _the-words:\n\nWords\n=====\n\nSee :ref:`the-words`, :doc:`/glazes/ash`, :doc:`its ash <glazes/ash>` and\n"
        ":ref:`nothing`. Write ``:ref:`the-words```.\n"
    )
    (kiln / "source" / "glazes" / "ash.md").write_text(
        "# Ash\n\nIn [](../words.rst), {doc}`/words` or [](#the-words).\n"
    )

    assert (await page(Project(kiln), "source/words.rst")).text == (
        "Words\n\nSee Words, Ash, its ash and nothing. Write :ref:`the-words`."
    )
    assert (await page(Project(kiln), "source/glazes/ash.md")).text == "Ash\n\nIn Words, Words or Words."


async def test_expands_includes_of_sphinx(kiln: Path) -> None:
    assert (await page(Project(kiln), "source/index.rst")).text.endswith("about white clay, in edition 2.1.")
    assert "Open the windows" in (await page(Project(kiln), "source/firing/index.rst")).text
    assert "```python\ndegrees = [20, 300, 900]\n```" in (await page(Project(kiln), "source/firing/bisque.rst")).text
    assert (await page(Project(kiln), "source/glazes/index.md")).text == "Glazes\n\nA glaze is glass on clay."


@pytest.mark.parametrize(
    ("options", "text"),
    [
        pytest.param(":start-after: 'begin -->'\n:end-before: '<!-- end'", "The kiln is a book.", id="between marks"),
        pytest.param(":start-line: 2\n:end-line: 3", "The kiln is a book.", id="between lines"),
        pytest.param(":start-after: not there", "", id="a mark that is missing"),
    ],
)
async def test_includes_a_part_of_a_readme(kiln: Path, options: str, text: str) -> None:
    (kiln / "README.md").write_text("# Kiln\n<!-- begin -->\nThe kiln is a book.\n<!-- end -->\nBadges.\n")
    (kiln / "source/glazes/ash.md").write_text(f"# Ash\n\n```{{include}} ../../README.md\n{options}\n```\n")

    assert (await page(Project(kiln), "source/glazes/ash.md")).text == f"Ash\n\n{text}".strip()


@pytest.mark.parametrize(
    ("options", "code"),
    [
        pytest.param(":lines: 1,3-", "a = 1\nc = 3\n", id="lines"),
        pytest.param(":start-at: b =\n   :end-at: b =", "b = 2\n", id="from a text to a text"),
        pytest.param(":start-after: a =\n   :end-before: c =", "b = 2\n", id="between texts"),
    ],
)
async def test_includes_a_part_of_a_program(kiln: Path, options: str, code: str) -> None:
    (kiln / "source/firing/curve.py").write_text("a = 1\nb = 2\nc = 3\n")
    (kiln / "source/firing/bisque.rst").write_text(f"Bisque\n======\n\n.. literalinclude:: curve.py\n   {options}\n")

    assert f"```python\n{code}```" in (await page(Project(kiln), "source/firing/bisque.rst")).text


@pytest.mark.parametrize("how", ["by option", "configured for Read the Docs"])
async def test_dirhtml_publishes_every_page_as_a_folder(kiln: Path, how: str) -> None:
    options = ProjectOptions(builder="dirhtml") if how == "by option" else ProjectOptions()
    if how != "by option":
        (kiln / ".readthedocs.yaml").write_text("version: 2\nsphinx:\n  builder: dirhtml\n")

    assert [route for route, *_ in await rows(Project(kiln, options=options), KILN)] == [
        *("/", "/firing/", "/firing/bisque/", "/glazes/", "/glazes/ash/", "/words/", "/orphan/"),
    ]


@pytest.mark.parametrize("name", ["tidepool", "orchard", "kiln"])
async def test_a_project_is_a_page_source(tmp_path: Path, name: str) -> None:
    root = shutil.copytree(BOOKS / name, tmp_path / name)
    project = Project(root)
    first = await listed(project)

    assert first == await listed(project) == await listed(Project(root))
    assert len({entry.url for entry in first}) == len(first)
    assert project.name == str(root)
    for entry in first:
        assert (await Project(root).read(entry)).url == entry.url
    (root / first[1].path).unlink()
    with pytest.raises(Unreadable, match="it is gone"):
        await project.read(first[1])
    (root / first[2].path).write_bytes(b"\xff\x00")
    again = await listed(project)
    with pytest.raises(Unreadable, match="not UTF-8"):
        await project.read(next(entry for entry in again if entry.path == first[2].path))
    assert first[1].url not in [entry.url for entry in again]


async def test_a_changed_include_changes_the_stamps_of_its_pages(tidepool: Path) -> None:
    project = Project(tidepool)
    before = {entry.path: entry.stamp for entry in await listed(project)}
    part = tidepool / "docs" / "_shared" / "_glass.mdx"
    part.write_text(part.read_text() + "\nNor does it break.\n")
    after = {entry.path: entry.stamp for entry in await listed(project)}

    assert [path for path in before if before[path] != after[path]] == ["docs/02-tanks/01-basin.mdx"]
    assert "Nor does it break." in (await page(project, "docs/02-tanks/01-basin.mdx")).text


async def test_a_changed_sidebar_embeds_nothing(tidepool: Path, tmp_path: Path) -> None:
    book = WordBook(tmp_path / "index")
    assert (await book.ingest(Project(tidepool))).added == 9
    again = await book.ingest(Project(tidepool))
    assert (again.unchanged, again.generation) == (9, "")

    sidebars = tidepool / "sidebars.ts"
    sidebars.write_text(sidebars.read_text().replace("'Setting up'", "'Beginnings'"))
    renamed = await book.ingest(Project(tidepool))
    assert (renamed.changed, renamed.unchanged, renamed.embedded, renamed.generation) == (3, 6, 0, "g000002")

    category = tidepool / "docs" / "animals" / "crabs" / "_category_.yml"
    category.write_text("position: 9\n")
    moved = await book.ingest(Project(tidepool))
    assert (moved.changed, moved.unchanged, moved.embedded, moved.generation) == (0, 9, 0, "g000003")
    with book.index_provider() as index_provider:
        async with index_provider.snapshot() as snapshot:
            found = [(entry.title, entry.module) for entry in snapshot.catalog.table_of_contents()]
    assert [module for _, module in found[1:4]] == ["Beginnings"] * 3
    assert [title for title, _ in found[4:7]] == ["Anemones", "Crabs", "Feeding a crab"]
    assert (await book.ingest(Project(tidepool))).generation == ""


async def test_detects_a_changed_navigation(orchard: Path, tmp_path: Path) -> None:
    book = WordBook(tmp_path / "index")
    await book.ingest(Project(orchard))
    config = orchard / "mkdocs.yml"
    config.write_text(config.read_text().replace("- Trees:", "- Wood:"))

    report = await book.ingest(Project(orchard))
    assert (report.changed, report.unchanged, report.embedded, len(report.left_out)) == (3, 4, 0, 4)


async def test_reads_nothing_outside_the_project(tidepool: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.mdx").write_text("The key is under the mat.")
    intro = tidepool / "docs" / "01-intro.md"
    intro.write_text(
        "import A from '../../secret.mdx';\nimport B from '@site/../secret.mdx';\n\n# A\n\nx <A /> <B />\n"
    )
    config = tidepool / "docusaurus.config.ts"
    config.write_text(config.read_text().replace("path: 'community'", "path: '..'"))
    project = Project(tidepool)

    found = [entry async for entry in project.listing()]
    assert "secret" not in " ".join(entry.path for entry in found if isinstance(entry, ListedPage))
    assert [entry.path for entry in found if isinstance(entry, SkippedPage)] == [".."]
    assert (await page(project, "docs/01-intro.md")).text == "A\n\nx"


async def test_reads_documents_elsewhere_in_the_repository(tidepool: Path, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    shutil.move(tidepool / "community", tmp_path / "community")
    config = tidepool / "docusaurus.config.ts"
    config.write_text(config.read_text().replace("path: 'community'", "path: '../community'"))
    project = Project(tidepool)

    assert (await listed(project))[-1].path == "community/meeting.md"
    assert (await page(project, "community/meeting.md")).url == f"{TIDEPOOL}/people/meeting"


async def test_limits_recursive_includes(tidepool: Path) -> None:
    part = tidepool / "docs" / "_shared" / "_glass.mdx"
    part.write_text("import Again from './_glass.mdx';\n\nOn and on. <Again /> <Again /> <Again />\n")

    assert "On and on." in (await page(Project(tidepool), "docs/02-tanks/01-basin.mdx")).text


@pytest.mark.parametrize(
    ("file", "text"),
    [
        pytest.param("mkdocs.yml", "nav: [", id="YAML that is none"),
        pytest.param("mkdocs.yml", "- a\n", id="no fields"),
        pytest.param("mkdocs.yml", "docs_dir: ../..\n", id="a folder outside"),
        pytest.param("mkdocs.yml", "INHERIT: gone.yml\n", id="a parent that is gone"),
    ],
)
async def test_raises_for_an_invalid_configuration(orchard: Path, file: str, text: str) -> None:
    (orchard / file).write_text(text)
    with pytest.raises(ConfigurationError, match=r"yml"):
        await listed(Project(orchard))


async def test_raises_for_an_invalid_conf_py(kiln: Path) -> None:
    (kiln / "source" / "conf.py").write_text("extensions = [\n")
    with pytest.raises(ConfigurationError, match=r"conf\.py cannot be read"):
        await listed(Project(kiln))


async def test_executes_no_configuration(orchard: Path, kiln: Path, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    yml = orchard / "mkdocs.yml"
    yml.write_text(yml.read_text() + f"hook: !!python/object/apply:os.mkdir ['{mark}']\n")
    conf = kiln / "source" / "conf.py"
    conf.write_text(conf.read_text() + f"\nos.mkdir({str(mark)!r})\n")

    assert await listed(Project(orchard))
    assert await listed(Project(kiln))
    assert not mark.exists()


async def test_a_configuration_without_literals_has_default_documents(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# A\n\nText.")
    (tmp_path / "docusaurus.config.js").write_text("export default compute();\n")

    assert [entry.url for entry in await listed(Project(tmp_path, site_url="https://x.example"))] == [
        "https://x.example/docs/a"
    ]
    assert [entry.url for entry in await listed(Project(tmp_path))] == [(tmp_path / "docs" / "a.md").as_uri()]


async def test_skips_a_second_document_at_the_same_url(tidepool: Path) -> None:
    (tidepool / "docs" / "other.md").write_text("---\nslug: /loose\n---\n# Other\n\nText.")
    skipped = [entry async for entry in Project(tidepool).listing() if isinstance(entry, SkippedPage)]

    assert skipped == [
        SkippedPage("docs/other.md", f"'docs/loose.md' is published at the same address, {TIDEPOOL}/book/loose")
    ]


@pytest.mark.parametrize(
    ("name", "style", "kind"),
    [
        ("tidepool", None, Project),
        ("tidepool", Style.DOCUSAURUS, Project),
        ("tidepool", Style.PLAIN, Folder),
        ("tidepool/docs", None, Folder),
        ("orchard", None, Project),
        ("kiln", None, Project),
        ("kiln/source", None, Project),
        ("lighthouse", None, Folder),
        ("lighthouse/index.md", None, Folder),
    ],
)
def test_detects_a_project_by_its_configuration(name: str, style: Style | None, kind: type) -> None:
    assert type(open_path(BOOKS / name, site_url="", style=style, project_options=ProjectOptions())) is kind


def test_a_python_module_named_conf_is_not_a_sphinx_project(tmp_path: Path) -> None:
    (tmp_path / "conf.py").write_text("PORT = 80\n")
    assert isinstance(open_path(tmp_path, site_url="", style=None, project_options=ProjectOptions()), Folder)


async def test_reports_symlinks_out_of_the_documents(tidepool: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("s")
    (tidepool / "docs" / "link.md").symlink_to(tmp_path / "secret.md")
    skipped = [entry async for entry in Project(tidepool).listing() if isinstance(entry, SkippedPage)]

    assert skipped == [SkippedPage("docs/link.md", "it is a link that leaves the folder")]


async def test_limits_a_recursive_navigation(orchard: Path) -> None:
    levels = [f"l{n}: &l{n} [{{a: *l{n - 1}}}, {{b: *l{n - 1}}}, {{c: *l{n - 1}}}]" for n in range(1, 28)]
    lines = ["site_url: https://o.example", "l0: &l0 [index.md]", *levels, "nav: *l27"]
    (orchard / "mkdocs.yml").write_text("\n".join(lines))

    assert "https://o.example/" in [entry.url for entry in await listed(Project(orchard))]


async def test_limits_a_recursive_sidebar(tidepool: Path) -> None:
    levels = [
        f"const l{n} = [...l{n - 1}, ...l{n - 1}, {{type: 'category', label: 'a', items: l{n - 1}}}];"
        for n in range(1, 28)
    ]
    text = "\n".join(["const l0 = ['intro', 'loose'];", *levels, "module.exports = {keeper: l27};"])
    (tidepool / "sidebars.ts").write_text(text)

    assert len(await listed(Project(tidepool))) == 9


@pytest.mark.parametrize(
    "line", ["```a", "# a", "import A from './a.mdx';", "--8<--", "{ .annotate }", "=", ".. toctree::"]
)
@pytest.mark.parametrize("name", ["tidepool", "orchard", "kiln"])
async def test_parses_hostile_documents_in_time(tmp_path: Path, name: str, line: str) -> None:
    root = shutil.copytree(BOOKS / name, tmp_path / name)
    file = {"tidepool": "docs/loose.md", "orchard": "docs/shears.md", "kiln": "source/words.rst"}[name]
    (root / file).write_text(f"{line}\n" * 20_000)

    assert file in [entry.path for entry in await listed(Project(root))]
