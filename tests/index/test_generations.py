"""The index on disk: readers see the complete old or the complete new generation."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bythebook.errors import NotFound, RetrievalError, Unavailable
from bythebook.index.generations import Generations, copy_tree


@pytest.fixture
def generations(tmp_path: Path) -> Generations:
    return Generations(tmp_path)


def publish(generations: Generations, content: str) -> str:
    """A complete generation with one page."""
    with generations.writing():
        draft = generations.draft_of_current() if generations.current() else generations.empty_draft()
        (draft / "page").write_text(content)
        name = generations.publish()
        generations.sweep()
        return name


def folders(tmp_path: Path) -> set[str]:
    return {path.name for path in tmp_path.iterdir() if path.is_dir()}


def test_reading_fails_before_the_first_publication(generations: Generations) -> None:
    assert generations.current() == ""
    with pytest.raises(NotFound, match="bythebook ingest FOLDER"), generations.reading():
        pass


def test_readers_see_the_published_generation(generations: Generations) -> None:
    assert publish(generations, "one") == generations.current() == "g000001"
    with generations.reading() as folder:
        assert (folder.name, (folder / "page").read_text()) == ("g000001", "one")


def test_a_draft_is_invisible_before_publication(generations: Generations) -> None:
    publish(generations, "one")
    with generations.writing():
        (generations.draft_of_current() / "page").write_text("half of two")
        with generations.reading() as folder:
            assert (folder / "page").read_text() == "one"


def test_a_draft_starts_as_a_copy_of_the_current_generation(generations: Generations) -> None:
    publish(generations, "one")
    with generations.writing():
        assert (generations.draft_of_current() / "page").read_text() == "one"
        assert not (generations.empty_draft() / "page").exists()


def test_a_reader_keeps_its_generation_until_it_is_done(generations: Generations, tmp_path: Path) -> None:
    publish(generations, "one")
    with generations.reading() as old:
        publish(generations, "two")
        publish(generations, "three")
        assert (old / "page").read_text() == "one"
        with generations.reading() as new:
            assert (new / "page").read_text() == "three"
        assert folders(tmp_path) == {"g000001", "g000003"}
    with generations.writing():
        generations.sweep()
    assert folders(tmp_path) == {"g000003"}


def test_two_readers_share_a_generation(generations: Generations, tmp_path: Path) -> None:
    publish(generations, "one")
    with generations.reading(), Generations(tmp_path).reading() as second:
        assert (second / "page").read_text() == "one"


def test_rejects_a_second_writer_and_names_the_first(generations: Generations, tmp_path: Path) -> None:
    with (
        generations.writing(),
        pytest.raises(Unavailable, match=rf"process {os.getpid()}\).*nothing is lost"),
        Generations(tmp_path).writing(),
    ):
        pass
    with Generations(tmp_path).writing():
        pass


def test_a_failed_run_releases_the_writer_lock(generations: Generations) -> None:
    with pytest.raises(ZeroDivisionError), generations.writing():
        raise ZeroDivisionError
    assert publish(generations, "one") == "g000001"


@pytest.mark.parametrize(
    ("left", "swept"),
    [
        pytest.param(["draft/page"], {"g000001"}, id="killed while drafting"),
        pytest.param(["g000002/page", "g000002/LOCK"], {"g000001"}, id="killed after the draft was named"),
        pytest.param(["g000002/LOCK", "CURRENT.new"], {"g000001"}, id="killed before the pointer was flipped"),
        pytest.param(["g000000/page"], {"g000001"}, id="killed while sweeping"),
    ],
)
def test_leftovers_of_a_killed_run_are_never_read_and_are_swept(
    generations: Generations, tmp_path: Path, left: list[str], swept: set[str]
) -> None:
    publish(generations, "one")
    for name in left:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("left behind")

    with generations.reading() as folder:
        assert (folder / "page").read_text() == "one"
    with generations.writing():
        generations.sweep()
    assert folders(tmp_path) == swept
    publish(generations, "two")
    with generations.reading() as folder:
        assert (folder / "page").read_text() == "two"


def test_generation_names_are_not_reused(generations: Generations, tmp_path: Path) -> None:
    publish(generations, "one")
    with generations.reading():
        publish(generations, "two")
        (tmp_path / "g000009").mkdir()
        with generations.writing():
            generations.empty_draft()
            assert generations.publish() == "g000010"


def test_reports_a_generation_without_a_lock_file_as_damaged(generations: Generations, tmp_path: Path) -> None:
    publish(generations, "one")
    (tmp_path / "g000001" / "LOCK").unlink()
    with pytest.raises(RetrievalError, match="damaged"), generations.reading():
        pass


def test_copies_keep_content_and_holes(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "deep").mkdir(parents=True)
    (source / "empty").touch()
    (source / "full").write_bytes(os.urandom(3_000_000))
    with (source / "deep" / "holes").open("wb") as file:
        file.truncate(64 << 20)
        file.seek(5 << 20)
        file.write(b"something")
    with (source / "hole").open("wb") as file:
        file.truncate(8 << 20)

    copy_tree(source, tmp_path / "copy")

    files = [path.relative_to(source) for path in source.rglob("*") if path.is_file()]
    assert len(files) == 4
    for name in files:
        assert (tmp_path / "copy" / name).read_bytes() == (source / name).read_bytes()
        assert (tmp_path / "copy" / name).stat().st_blocks <= (source / name).stat().st_blocks
    assert (tmp_path / "copy" / "deep" / "holes").stat().st_blocks * 512 < 1 << 20
