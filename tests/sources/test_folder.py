from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from bythebook.errors import InputError
from bythebook.sources import Block, Kind, Listed, Page, Skipped, Unreadable
from bythebook.sources.folder import LARGEST, Folder, humanised
from bythebook.sources.projects import Style

if TYPE_CHECKING:
    from pathlib import Path

SITE = "https://book.example.test"


def fill(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


async def listed(folder: Folder) -> list[Listed]:
    return [item async for item in folder.listing() if isinstance(item, Listed)]


async def skipped(folder: Folder) -> list[Skipped]:
    return [item async for item in folder.listing() if isinstance(item, Skipped)]


async def only_page(folder: Folder) -> Page:
    (item,) = await listed(folder)
    return await folder.read(item)


async def test_a_page_knows_where_it_is_and_what_it_says(tmp_path: Path) -> None:
    fill(tmp_path, {"module-1-ros2/nodes.md": "# Nodes\n\nThey *talk*."})
    os.utime(tmp_path / "module-1-ros2/nodes.md", (1_700_000_000, 1_700_000_000))

    assert await only_page(Folder(tmp_path, site_url=SITE)) == Page(
        url=f"{SITE}/module-1-ros2/nodes",
        title="Nodes",
        text="Nodes\n\nThey talk.",
        blocks=(Block(Kind.HEADING, 0, 5, level=1, anchor="nodes"), Block(Kind.PARAGRAPH, 7, 17)),
        module_name="Module 1 Ros2",
        chapter_id="module-1-ros2/nodes",
        modified_at="2023-11-14T22:13:20+00:00",
    )


async def test_without_a_site_a_page_is_known_by_its_file(tmp_path: Path) -> None:
    file = fill(tmp_path, {"a b.md": "text"}) / "a b.md"

    page = await only_page(Folder(tmp_path))

    assert (page.url, page.title, page.module_name) == (file.as_uri(), "A B", "")
    assert page.url.endswith("/a%20b.md")


async def test_one_file_is_a_folder_of_one_page(tmp_path: Path) -> None:
    file = fill(tmp_path, {"a.md": "text", "b.md": "text"}) / "a.md"

    assert [item.path for item in await listed(Folder(file))] == ["a.md"]
    assert (await only_page(Folder(file))).text == "text"


async def test_pages_come_in_reading_order(tmp_path: Path) -> None:
    fill(tmp_path, dict.fromkeys(["10.md", "2.md", "b/z.md", "b/index.md", "a.md", "README.md"], "text"))

    assert [item.path for item in await listed(Folder(tmp_path))] == [
        *("README.md", "2.md", "10.md", "a.md", "b/index.md", "b/z.md"),
    ]


async def test_what_is_not_the_book_is_passed_over(tmp_path: Path) -> None:
    fill(
        tmp_path,
        dict.fromkeys(
            [
                *(
                    ".git/a.md",
                    "node_modules/a.md",
                    "build/a.html",
                    "_partial.md",
                    "_parts/a.md",
                    "logo.png",
                    "robots.txt",
                ),
                *("docusaurus.config.js", "a.md", "docs/build/a.md"),
            ],
            "text",
        ),
    )

    folder = Folder(tmp_path)

    assert [item.path for item in await listed(folder)] == ["a.md", "docs/build/a.md"]
    assert await skipped(folder) == []


async def test_documents_a_reader_would_expect_are_reported(tmp_path: Path) -> None:
    fill(tmp_path, {"a.doc": "", "b.odt": "", "c.bin": ""})

    assert await skipped(Folder(tmp_path)) == [
        Skipped("a.doc", "an old Word file is not supported yet"),
        Skipped("b.odt", "OpenDocument is not supported yet"),
    ]


async def test_a_single_file_nobody_can_read_is_reported(tmp_path: Path) -> None:
    file = fill(tmp_path, {"a.bin": "x"}) / "a.bin"

    assert await skipped(Folder(file)) == [
        Skipped("a.bin", "files ending in '.bin' are not supported; convert it to Markdown or HTML")
    ]


async def test_each_address_is_listed_once(tmp_path: Path) -> None:
    fill(tmp_path, {"a.md": "x", "a/index.md": "y"})
    folder = Folder(tmp_path, site_url=SITE)

    assert [item.path for item in await listed(folder)] == ["a/index.md"]
    assert await skipped(folder) == [Skipped("a.md", f"'a/index.md' is published at the same address, {SITE}/a")]


async def test_docusaurus_front_matter_decides_the_address(tmp_path: Path) -> None:
    fill(
        tmp_path,
        {"1-a/x.md": "---\nslug: /start\n---\nx", "1-a/y.md": "---\nid: other\n---\ny", "1-a/z.md": "---\n: -\n---\nz"},
    )
    folder = Folder(tmp_path, site_url=SITE, style=Style.DOCUSAURUS)

    assert [item.url for item in await listed(folder)] == [f"{SITE}/start", f"{SITE}/a/other", f"{SITE}/a/z"]


async def test_the_stamp_changes_with_the_file(tmp_path: Path) -> None:
    folder = Folder(fill(tmp_path, {"a.md": "one"}))
    (before,) = await listed(folder)
    (again,) = await listed(folder)
    fill(tmp_path, {"a.md": "three"})
    (after,) = await listed(folder)

    assert before == again
    assert before.stamp != after.stamp


async def test_links_stay_inside_and_do_not_loop(tmp_path: Path) -> None:
    book = fill(tmp_path / "book", {"a/a.md": "a"})
    fill(tmp_path, {"secret.md": "s"})
    (book / "b").symlink_to(book / "a")
    (book / "a" / "loop").symlink_to(book)
    (book / "gone.md").symlink_to(book / "nothing.md")
    (book / "itself").symlink_to(book / "itself")
    (book / "out.md").symlink_to(tmp_path / "secret.md")
    folder = Folder(book)

    assert [item.path for item in await listed(folder)] == ["a/a.md", "b/a.md"]
    assert await skipped(folder) == [
        Skipped("a/loop", "it is a link to a folder it is in"),
        Skipped("b/loop", "it is a link to a folder it is in"),
        Skipped("gone.md", "it is a link to something that does not exist"),
        Skipped("itself", "it is a link to something that does not exist"),
        Skipped("out.md", "it is a link that leaves the folder"),
    ]


async def test_a_name_that_is_no_text_is_reported(tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/\xff.md"
    try:
        with open(name, "wb") as file:  # noqa: ASYNC230, PTH123 - only bytes can name it
            file.write(b"x")
    except OSError:
        pytest.skip("this file system has only names that are text")

    assert await skipped(Folder(tmp_path)) == [Skipped("\\udcff.md", "its name is not valid UTF-8; rename it")]


async def test_a_file_too_large_is_reported_unread(tmp_path: Path) -> None:
    file = fill(tmp_path, {"a.md": ""}) / "a.md"
    os.truncate(file, LARGEST + 1)

    assert await skipped(Folder(tmp_path)) == [Skipped("a.md", "it has 20 MB; a page has at most 20 MB. Split it")]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param("", "it is empty", id="empty"),
        pytest.param("---\ntitle: a\n---\n", "there is no text in it", id="only front matter"),
        pytest.param("<!-- a -->", "there is no text in it", id="only a comment"),
        pytest.param(
            "---\na: b: c\n---\ntext", "its front matter is not valid YAML (line 2)", id="broken front matter"
        ),
        pytest.param(b"\x89PNG\x00", "it is not UTF-8: byte 0", id="an image"),
        pytest.param(b"ab\x00", "it is not text", id="binary"),
        pytest.param("\xe9".encode("latin-1"), "it is not UTF-8: byte 0", id="another encoding"),
    ],
)
async def test_what_cannot_be_read_says_why(tmp_path: Path, content: str | bytes, reason: str) -> None:
    folder = Folder(fill(tmp_path, {"a.md": content}))
    (item,) = await listed(folder)

    with pytest.raises(Unreadable) as caught:
        await folder.read(item)

    assert str(caught.value).startswith(reason)


async def test_a_page_gone_since_the_listing_is_unreadable(tmp_path: Path) -> None:
    folder = Folder(fill(tmp_path, {"a.md": "text"}))
    (item,) = await listed(folder)
    (tmp_path / "a.md").unlink()

    with pytest.raises(Unreadable, match="it is gone"):
        await folder.read(item)


async def test_a_path_out_of_the_folder_is_never_read(tmp_path: Path) -> None:
    folder = Folder(fill(tmp_path / "book", {"a.md": "text"}))
    fill(tmp_path, {"secret.md": "s"})

    with pytest.raises(Unreadable, match="it is outside of the folder"):
        await folder.read(Listed("", "../secret.md", ""))


@pytest.mark.skipif(os.geteuid() == 0, reason="everything is open to root")
async def test_a_closed_file_or_folder_is_reported(tmp_path: Path) -> None:
    folder = Folder(fill(tmp_path, {"a.md": "text", "b/c.md": "text"}))
    (item, _) = await listed(folder)
    (tmp_path / "a.md").chmod(0)
    (tmp_path / "b").chmod(0)

    with pytest.raises(Unreadable, match="it cannot be opened: Permission denied"):
        await folder.read(item)
    assert await skipped(folder) == [Skipped("b", "the folder cannot be opened: Permission denied")]
    (tmp_path / "b").chmod(0o700)


async def test_an_empty_folder_has_no_pages(tmp_path: Path) -> None:
    assert [item async for item in Folder(tmp_path).listing()] == []


def test_a_device_is_no_book() -> None:
    with pytest.raises(InputError):
        Folder(os.devnull)


def test_a_folder_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no folder or file '.*nowhere'; check the path"):
        Folder(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("files", "title"),
    [
        pytest.param({"arm-parts.md": "text"}, "Arm Parts", id="from the file"),
        pytest.param({"arm-parts/index.md": "text"}, "Arm Parts", id="from the folder of an index"),
        pytest.param({"a.html": "<h1>Arm</h1>"}, "Arm", id="from HTML"),
        pytest.param({"a.rst": "Arm\n===\n"}, "Arm", id="from reStructuredText"),
        pytest.param({"a.txt": "Arm\n\ntext"}, "Arm", id="from text"),
        pytest.param({"a.mdx": "export const a = 1\n\n# Arm"}, "Arm", id="from MDX"),
    ],
)
async def test_every_page_has_a_title(tmp_path: Path, files: dict[str, str | bytes], title: str) -> None:
    assert (await only_page(Folder(fill(tmp_path, files)))).title == title


def test_names_are_made_readable() -> None:
    assert humanised("module-1_ros2") == "Module 1 Ros2"


async def test_what_is_excluded_is_no_part_of_the_book(tmp_path: Path) -> None:
    for path in ("index.md", "talks/one.md", "talks/deep/two.md", "talks.md", "other/talks/three.md"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("# Page\n\nText.", encoding="utf-8")
    folder = Folder(tmp_path, exclude=("talks",))
    listed = [item.path async for item in folder.listing()]
    assert listed == ["index.md", "other/talks/three.md", "talks.md"]
