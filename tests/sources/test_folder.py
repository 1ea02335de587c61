from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from bythebook.errors import InputError
from bythebook.sources import Block, BlockKind, ListedPage, Page, SkippedPage, Unreadable
from bythebook.sources.folder import MAX_TEXT_BYTES, Folder, decode_text, title_from_name
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


async def listed(folder: Folder) -> list[ListedPage]:
    return [item async for item in folder.listing() if isinstance(item, ListedPage)]


async def skipped(folder: Folder) -> list[SkippedPage]:
    return [item async for item in folder.listing() if isinstance(item, SkippedPage)]


async def only_page(folder: Folder) -> Page:
    (item,) = await listed(folder)
    return await folder.read(item)


async def test_reads_a_page_with_its_url_title_and_text(tmp_path: Path) -> None:
    fill(tmp_path, {"module-1-ros2/nodes.md": "# Nodes\n\nThey *talk*."})
    os.utime(tmp_path / "module-1-ros2/nodes.md", (1_700_000_000, 1_700_000_000))

    assert await only_page(Folder(tmp_path, site_url=SITE)) == Page(
        url=f"{SITE}/module-1-ros2/nodes",
        title="Nodes",
        text="Nodes\n\nThey talk.",
        blocks=(Block(BlockKind.HEADING, 0, 5, level=1, anchor="nodes"), Block(BlockKind.PARAGRAPH, 7, 17)),
        module_name="Module 1 Ros2",
        chapter_id="module-1-ros2/nodes",
        modified_at="2023-11-14T22:13:20+00:00",
    )


async def test_without_a_site_url_the_url_is_the_uri_of_the_file(tmp_path: Path) -> None:
    file = fill(tmp_path, {"a b.md": "text"}) / "a b.md"

    page = await only_page(Folder(tmp_path))

    assert (page.url, page.title, page.module_name) == (file.as_uri(), "A B", "")
    assert page.url.endswith("/a%20b.md")


async def test_a_single_file_is_a_source_of_one_page(tmp_path: Path) -> None:
    file = fill(tmp_path, {"a.md": "text", "b.md": "text"}) / "a.md"

    assert [item.path for item in await listed(Folder(file))] == ["a.md"]
    assert (await only_page(Folder(file))).text == "text"


async def test_lists_pages_in_reading_order(tmp_path: Path) -> None:
    fill(tmp_path, dict.fromkeys(["10.md", "2.md", "b/z.md", "b/index.md", "a.md", "README.md"], "text"))

    assert [item.path for item in await listed(Folder(tmp_path))] == [
        *("README.md", "2.md", "10.md", "a.md", "b/index.md", "b/z.md"),
    ]


async def test_ignores_files_that_are_not_part_of_the_book(tmp_path: Path) -> None:
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


async def test_reports_documents_in_unsupported_formats(tmp_path: Path) -> None:
    fill(tmp_path, {"a.doc": "", "b.odt": "", "c.bin": ""})

    assert await skipped(Folder(tmp_path)) == [
        SkippedPage("a.doc", "an old Word file is not supported yet"),
        SkippedPage("b.odt", "OpenDocument is not supported yet"),
    ]


async def test_reports_a_single_file_in_an_unsupported_format(tmp_path: Path) -> None:
    file = fill(tmp_path, {"a.bin": "x"}) / "a.bin"

    assert await skipped(Folder(file)) == [
        SkippedPage("a.bin", "files ending in '.bin' are not supported; convert it to Markdown or HTML")
    ]


async def test_lists_each_url_once(tmp_path: Path) -> None:
    fill(tmp_path, {"a.md": "x", "a/index.md": "y"})
    folder = Folder(tmp_path, site_url=SITE)

    assert [item.path for item in await listed(folder)] == ["a/index.md"]
    assert await skipped(folder) == [SkippedPage("a.md", f"'a/index.md' is published at the same address, {SITE}/a")]


async def test_docusaurus_front_matter_determines_the_url(tmp_path: Path) -> None:
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


async def test_reports_links_that_leave_the_folder_or_form_a_cycle(tmp_path: Path) -> None:
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
        SkippedPage("a/loop", "it is a link to a folder it is in"),
        SkippedPage("b/loop", "it is a link to a folder it is in"),
        SkippedPage("gone.md", "it is a link to something that does not exist"),
        SkippedPage("itself", "it is a link to something that does not exist"),
        SkippedPage("out.md", "it is a link that leaves the folder"),
    ]


async def test_reports_a_file_name_that_is_not_valid_utf8(tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/\xff.md"
    try:
        with open(name, "wb") as file:  # noqa: ASYNC230, PTH123 - only bytes can name it
            file.write(b"x")
    except OSError:
        pytest.skip("this file system has only names that are text")

    assert await skipped(Folder(tmp_path)) == [
        SkippedPage("\\udcff.md", "its name is not valid UTF-8, or has control characters; rename it")
    ]


async def test_reports_a_file_over_the_size_limit_without_reading_it(tmp_path: Path) -> None:
    file = fill(tmp_path, {"a.md": ""}) / "a.md"
    os.truncate(file, MAX_TEXT_BYTES + 1)

    assert await skipped(Folder(tmp_path)) == [SkippedPage("a.md", "it has 20 MB; a page has at most 20 MB. Split it")]


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
async def test_reports_why_a_file_cannot_be_read(tmp_path: Path, content: str | bytes, reason: str) -> None:
    folder = Folder(fill(tmp_path, {"a.md": content}))
    (item,) = await listed(folder)

    with pytest.raises(Unreadable) as caught:
        await folder.read(item)

    assert str(caught.value).startswith(reason)


async def test_a_page_deleted_since_the_listing_is_unreadable(tmp_path: Path) -> None:
    folder = Folder(fill(tmp_path, {"a.md": "text"}))
    (item,) = await listed(folder)
    (tmp_path / "a.md").unlink()

    with pytest.raises(Unreadable, match="it is gone"):
        await folder.read(item)


async def test_never_reads_a_path_outside_of_the_folder(tmp_path: Path) -> None:
    folder = Folder(fill(tmp_path / "book", {"a.md": "text"}))
    fill(tmp_path, {"secret.md": "s"})

    with pytest.raises(Unreadable, match="it is outside of the folder"):
        await folder.read(ListedPage("", "../secret.md", ""))


@pytest.mark.skipif(os.geteuid() == 0, reason="everything is open to root")
async def test_reports_a_file_or_folder_without_read_permission(tmp_path: Path) -> None:
    folder = Folder(fill(tmp_path, {"a.md": "text", "b/c.md": "text"}))
    (item, _) = await listed(folder)
    (tmp_path / "a.md").chmod(0)
    (tmp_path / "b").chmod(0)

    with pytest.raises(Unreadable, match="it cannot be opened: Permission denied"):
        await folder.read(item)
    assert await skipped(folder) == [SkippedPage("b", "the folder cannot be opened: Permission denied")]
    (tmp_path / "b").chmod(0o700)


async def test_an_empty_folder_has_no_pages(tmp_path: Path) -> None:
    assert [item async for item in Folder(tmp_path).listing()] == []


def test_rejects_a_device() -> None:
    with pytest.raises(InputError):
        Folder(os.devnull)


def test_rejects_a_folder_that_does_not_exist(tmp_path: Path) -> None:
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


def test_makes_titles_from_file_names() -> None:
    assert title_from_name("module-1_ros2") == "Module 1 Ros2"


async def test_does_not_list_excluded_paths(tmp_path: Path) -> None:
    for path in ("index.md", "talks/one.md", "talks/deep/two.md", "talks.md", "other/talks/three.md"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("# Page\n\nText.", encoding="utf-8")
    folder = Folder(tmp_path, exclude=("talks",))
    listed = [item.path async for item in folder.listing()]
    assert listed == ["index.md", "other/talks/three.md", "talks.md"]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param("é\n".encode(), id="utf-8"),
        pytest.param("é\r\n".encode("utf-8-sig"), id="utf-8 with a mark"),
        pytest.param("é\r".encode("utf-16"), id="utf-16 with a mark"),
    ],
)
def test_decodes_text_and_normalizes_line_endings(data: bytes) -> None:
    assert decode_text(data) == "é\n"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(
            "abcdé".encode("latin-1"), "it is not UTF-8: byte 4 cannot be decoded. Save it as UTF-8", id="latin-1"
        ),
        pytest.param(
            b"\xff\xfea", "it is not UTF-16: byte 2 cannot be decoded. Save it as UTF-8", id="half a character"
        ),
        pytest.param(
            b"ab\x00", "it is not text: character 2 is a NUL. Remove it or save it as UTF-8 text", id="binary"
        ),
        pytest.param(b" \n", "it is empty", id="nothing"),
    ],
)
def test_rejects_a_file_that_is_not_text_with_a_reason(data: bytes, reason: str) -> None:
    with pytest.raises(Unreadable) as caught:
        decode_text(data)

    assert str(caught.value) == reason
