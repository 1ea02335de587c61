"""Generations: the index on disk, as a row of finished folders of which one is current.

    index/
    ├── CURRENT            the name of the folder readers open
    ├── g000007/           a published generation: never changed again
    ├── draft/             the one being written, if any
    └── WRITER             locked by whoever is writing

A reader holds a shared lock on the generation it has open, so that it is not swept away under it. Everything else
is done by renaming, which is all or nothing: a process killed at any moment leaves the old generation or the new one.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from bythebook.errors import NotFound, Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_CURRENT = "CURRENT"
DRAFT = "draft"
_LOCK = "LOCK"
_WRITER = "WRITER"
_SYNCED_AT_ONCE = 16
_PASSING = ".atomicwrite"
"""What the engine makes beside a small file to replace it, also when a reader closes. It is gone a moment later."""


class Generations:
    """The generations of one book. Any number of processes may read while one writes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def current(self) -> str:
        """The name of the current generation, empty when nothing has been published yet."""
        try:
            return (self._folder / _CURRENT).read_text(encoding="ascii").strip()
        except FileNotFoundError:
            return ""

    @contextmanager
    def reading(self) -> Iterator[Path]:
        """The folder of the current generation, kept on disk for as long as the context lasts."""
        folder, lock = self._locked()
        try:
            yield folder
        finally:
            lock.close()

    def _locked(self) -> tuple[Path, IO[bytes]]:
        while name := self.current():
            folder = self._folder / name
            try:
                lock = (folder / _LOCK).open("rb")
            except FileNotFoundError:
                if name == self.current():
                    raise NotFound(
                        f"the index {folder} is damaged: it has no {_LOCK} file. Run 'bythebook ingest' again after "
                        f"removing {self._folder / _CURRENT}."
                    ) from None
                continue  # Superseded and swept between the two looks.
            fcntl.flock(lock, fcntl.LOCK_SH)
            if (folder / _LOCK).exists():
                return folder, lock
            lock.close()
        raise NotFound("there is no book yet. Run 'bythebook ingest FOLDER' first.")

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be the only writer. Raises Unavailable at once when another process is writing."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / _WRITER).open("a+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.seek(0)
                raise Unavailable(
                    f"another ingest (process {lock.read().strip() or 'unknown'}) is writing this book. "
                    "Wait for it to finish, or end it; nothing is lost."
                ) from None
            lock.seek(0)
            lock.truncate()
            lock.write(str(os.getpid()))
            lock.flush()
            yield

    def draft_of_current(self) -> Path:
        """A folder to write the next generation in, filled with the current one. Only while writing."""
        draft = self._folder / DRAFT
        _remove(draft)
        copy_tree(self._folder / self.current(), draft)
        return draft

    def empty_draft(self) -> Path:
        """A folder to write the next generation in, from nothing. Only while writing."""
        draft = self._folder / DRAFT
        _remove(draft)
        draft.mkdir(parents=True)
        (draft / _LOCK).touch()
        return draft

    def publish(self) -> str:
        """Make the draft the current generation, in one step. Only while writing, once everything is closed."""
        name = self._next()
        draft = self._folder / DRAFT
        _sync_tree(draft)
        draft.rename(self._folder / name)
        pointer = self._folder / f"{_CURRENT}.new"
        pointer.write_text(name, encoding="ascii")
        _sync(pointer)
        pointer.rename(self._folder / _CURRENT)
        _sync(self._folder)
        return name

    def _next(self) -> str:
        """A name never used before: a draft may have been renamed by a run that was killed before the flip."""
        numbers = [int(path.name[1:]) for path in self._folder.glob("g[0-9]*")]
        return f"g{max(numbers, default=0) + 1:06d}"

    def sweep(self) -> None:
        """Remove what is neither current nor being read. Only while writing."""
        _remove(self._folder / DRAFT)
        for folder in self._folder.glob("g[0-9]*"):
            if folder.name != self.current():
                _remove_unread(folder)


def _remove_unread(folder: Path) -> None:
    try:
        with (folder / _LOCK).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Without its lock file nobody can start to read it any more.
            (folder / _LOCK).unlink()
    except BlockingIOError:
        return
    except FileNotFoundError:
        pass  # An earlier sweep was killed half way.
    _remove(folder)


def _remove(folder: Path) -> None:
    # Readers never need it, and a first answer waits for every import.
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


def copy_tree(source: Path, target: Path) -> None:
    """Copy a folder, holes as holes: the engine's files are mostly empty space."""
    target.mkdir(parents=True)
    for entry in source.iterdir():
        if entry.name.startswith(_PASSING):
            continue
        if entry.is_dir():
            copy_tree(entry, target / entry.name)
        else:
            _copy_file(entry, target / entry.name)


def _copy_file(source: Path, target: Path) -> None:
    with source.open("rb") as old, target.open("wb") as new:
        size = os.fstat(old.fileno()).st_size
        os.ftruncate(new.fileno(), size)
        offset = 0
        while offset < size:
            try:
                start = os.lseek(old.fileno(), offset, os.SEEK_DATA)
            except OSError:  # Nothing but a hole up to the end.
                return
            offset = os.lseek(old.fileno(), start, os.SEEK_HOLE)
            _copy_range(old.fileno(), new.fileno(), start, offset)


def _copy_range(old: int, new: int, start: int, end: int) -> None:
    while start < end:
        data = os.pread(old, min(end - start, 1 << 20), start)
        start += os.pwrite(new, data, start)


def _sync_tree(folder: Path) -> None:
    # Readers never need it, and a first answer waits for every import.
    from concurrent.futures import ThreadPoolExecutor

    # The disk writes many files at once as fast as one.
    with ThreadPoolExecutor(_SYNCED_AT_ONCE) as pool:
        list(pool.map(_sync, folder.rglob("*")))
    _sync(folder)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
