"""Generations: the index on disk as immutable folders, one of which is current.

    index/
    ├── CURRENT            the name of the folder readers open
    ├── g000007/           a published generation: never changed again; its MANIFEST has the checksums of its files
    ├── draft/             the one being written, if any
    └── WRITER             locked by the process that is writing

A reader holds a shared lock on its generation, so that a sweep does not remove it. Publishing is an atomic rename: a
process killed at any moment leaves the old generation or the new one.
"""

import fcntl
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from bythebook.errors import NotFound, RetrievalError, Unavailable
from bythebook.sources import Coverage, ExcludedPage, SkippedPage

_CURRENT = "CURRENT"
DRAFT = "draft"
_LOCK = "LOCK"
_WRITER = "WRITER"
_MANIFEST = "MANIFEST"
_NAME = re.compile(r"g\d{1,18}")
_BLOCK = 65_536
_SHARD_BYTES = 128_000_000
"""The size of an empty shard. Its files are mostly holes, but some file systems fill them."""
_SYNC_THREADS = 16
_TEMPORARY = ".atomicwrite"
"""The prefix of the temporary files with which the engine replaces small files, also when a reader closes them."""


class Generations:
    """The generations of one book. Any number of processes may read while one writes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def current(self) -> str:
        """The name of the current generation, empty when nothing has been published yet."""
        try:
            name = (self._folder / _CURRENT).read_text(encoding="ascii", errors="replace").strip()
        except FileNotFoundError:
            return ""
        if not _NAME.fullmatch(name):
            raise damage_error(self._folder / _CURRENT)
        return name

    @contextmanager
    def reading(self) -> Iterator[Path]:
        """The folder of the current generation. It is not removed before the block ends."""
        folder, lock = self._lock_current()
        try:
            yield folder
        finally:
            lock.close()

    def _lock_current(self) -> tuple[Path, IO[bytes]]:
        while name := self.current():
            folder = self._folder / name
            try:
                lock = (folder / _LOCK).open("rb")
            except FileNotFoundError:
                if name == self.current():
                    raise damage_error(folder / _LOCK) from None
                continue  # Superseded and removed after `current` was read.
            fcntl.flock(lock, fcntl.LOCK_SH)
            if (folder / _LOCK).exists():
                return folder, lock
            lock.close()
        raise NotFound("there is no book yet. Run 'bythebook ingest FOLDER' first.")

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the writer lock. Raises Unavailable at once if another process holds it."""
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

    def reserve(self, size: int) -> None:
        """Raise Unavailable if the disk has no room for this many more bytes."""
        free, needed = free_bytes(self._folder), size + _SHARD_BYTES
        if free < needed:
            raise Unavailable(
                f"the disk of {self._folder} has {free // 1_000_000} MB free for writing, and the ingest needs "
                f"{needed // 1_000_000} MB. Make room and run it again; the book is unchanged."
            )

    def draft_of_current(self) -> Path:
        """A draft that is a copy of the current generation. Only while writing."""
        draft = self._folder / DRAFT
        _remove(draft)
        self.reserve(sum(file.stat().st_blocks * 512 for file in (self._folder / self.current()).rglob("*")))
        copy_tree(self._folder / self.current(), draft)
        return draft

    def empty_draft(self) -> Path:
        """An empty draft. Only while writing."""
        draft = self._folder / DRAFT
        _remove(draft)
        draft.mkdir(parents=True)
        (draft / _LOCK).touch()
        return draft

    def publish(self) -> str:
        """Make the draft the current generation, atomically. Only while writing, with all its files closed."""
        name = self._next_name()
        draft = self._folder / DRAFT
        (draft / _MANIFEST).write_text(json.dumps(_checksums(draft)), encoding="ascii")
        _sync_tree(draft)
        draft.rename(self._folder / name)
        pointer = self._folder / f"{_CURRENT}.new"
        pointer.write_text(name, encoding="ascii")
        _sync(pointer)
        pointer.rename(self._folder / _CURRENT)
        _sync(self._folder)
        return name

    def _next_name(self) -> str:
        """An unused name. A run that was killed in `publish` may have renamed its draft without making it current."""
        numbers = [int(path.name[1:]) for path in self._folder.glob("g[0-9]*")]
        return f"g{max(numbers, default=0) + 1:06d}"

    def sweep(self) -> None:
        """Remove the draft and the generations that are neither current nor being read. Only while writing."""
        _remove(self._folder / DRAFT)
        try:
            current = self.current()
        except RetrievalError:
            current = ""  # No generation can be opened.
        for folder in self._folder.glob("g[0-9]*"):
            if folder.name != current:
                _remove_unread(folder)


def check_generation(folder: Path) -> None:
    """Raise RetrievalError if a file of a generation is not as it was published: the engine would crash, or answer
    from what is left. A generation without a manifest comes from an older version and is not checked.
    """
    try:
        published = json.loads((folder / _MANIFEST).read_text(encoding="ascii"))
        found = _checksums(folder)
    except FileNotFoundError:
        return
    except (OSError, ValueError) as exc:
        raise damage_error(folder / _MANIFEST) from exc
    if changed := [name for name, entry in published.items() if found.get(name) != entry]:
        raise damage_error(folder / changed[0])


def damage_error(path: Path) -> RetrievalError:
    return RetrievalError(
        f"the index is damaged: {path} is missing or was changed. Run 'bythebook ingest --rebuild' with all your "
        "sources."
    )


def _checksums(folder: Path) -> dict[str, list[int]]:
    """The size and a checksum of each file, by its path. Holes of a sparse file count as zeros and are not read."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(_TEMPORARY))
    return {
        str(path.relative_to(folder)): [path.stat().st_size, _checksum(path)]
        for path in files
        if path.name not in (_LOCK, _MANIFEST)
    }


def _checksum(path: Path) -> int:
    import zlib

    checksum = done = 0
    with path.open("rb") as file:
        for start, end in _data_ranges(file.fileno()):
            for offset in range(max(done, start - start % _BLOCK), end, _BLOCK):
                done = offset + _BLOCK
                block = os.pread(file.fileno(), _BLOCK, offset)
                if block.count(0) != len(block):
                    checksum = zlib.crc32(b"%d:%d" % (offset, zlib.crc32(block)), checksum)
    return checksum


def _data_ranges(file: int) -> Iterator[tuple[int, int]]:
    """The parts of a sparse file that are not holes."""
    size, end = os.fstat(file).st_size, 0
    while end < size:
        try:
            start = os.lseek(file, end, os.SEEK_DATA)
        except OSError:  # The rest of the file is a hole.
            return
        end = os.lseek(file, start, os.SEEK_HOLE)
        yield start, end


def _remove_unread(folder: Path) -> None:
    try:
        with (folder / _LOCK).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Without the lock file no new reader can open this generation.
            (folder / _LOCK).unlink()
    except BlockingIOError:
        return
    except FileNotFoundError:
        pass  # An earlier sweep was killed before it removed the folder.
    _remove(folder)


def _remove(folder: Path) -> None:
    # Imported here because readers do not need it, and the first answer waits for every import.
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def writable_copy(folder: Path) -> Iterator[Path]:
    """The folder, or a copy in a temporary folder if its disk is full or read-only: the engine writes when it opens."""
    import tempfile

    sizes = [(stat.st_size, stat.st_blocks * 512) for stat in map(Path.stat, folder.rglob("*"))]
    if free_bytes(folder) > sum(max(size - used, 0) for size, used in sizes):
        yield folder
        return
    places = [place for place in ("/dev/shm", tempfile.gettempdir()) if Path(place).is_dir()]  # noqa: S108 - in memory
    free, place = max((free_bytes(Path(place)), place) for place in places)
    if free <= sum(size for size, _ in sizes):
        raise Unavailable(f"the disk of {folder} is full or read-only, and {place} has no room for a copy. Make room.")
    with tempfile.TemporaryDirectory(dir=place) as temporary:
        copy_tree(folder, Path(temporary) / folder.name)
        yield Path(temporary) / folder.name


def free_bytes(folder: Path) -> int:
    """How much can be written in this folder; 0 if nothing can. Beyond it, the engine's files end the process."""
    disk = os.statvfs(folder)
    writable = os.access(folder, os.W_OK) and not disk.f_flag & os.ST_RDONLY
    return disk.f_bavail * disk.f_frsize if writable else 0


def copy_tree(source: Path, target: Path) -> None:
    """Copy a folder and keep sparse files sparse: the engine's files are mostly holes."""
    target.mkdir(parents=True)
    for entry in source.iterdir():
        if entry.name.startswith(_TEMPORARY):
            continue
        if entry.is_dir():
            copy_tree(entry, target / entry.name)
        else:
            _copy_file(entry, target / entry.name)


def _copy_file(source: Path, target: Path) -> None:
    with source.open("rb") as old, target.open("wb") as new:
        os.ftruncate(new.fileno(), os.fstat(old.fileno()).st_size)
        for start, end in _data_ranges(old.fileno()):
            _copy_range(old.fileno(), new.fileno(), start, end)


def _copy_range(old: int, new: int, start: int, end: int) -> None:
    while start < end:
        data = os.pread(old, min(end - start, 1 << 20), start)
        start += os.pwrite(new, data, start)


def _sync_tree(folder: Path) -> None:
    # Imported here because readers do not need it, and the first answer waits for every import.
    from concurrent.futures import ThreadPoolExecutor

    # The disk syncs many files in parallel as fast as one.
    with ThreadPoolExecutor(_SYNC_THREADS) as pool:
        list(pool.map(_sync, folder.rglob("*")))
    _sync(folder)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_FILE = "coverage.json"


def save_coverage(folder: Path, coverage: Mapping[str, Coverage]) -> None:
    """Write the coverage of these sources. The entries of other sources stay."""
    merged = load_coverage(folder) | dict(coverage)
    new = folder / f"{_FILE}.new"
    new.write_text(json.dumps({name: asdict(entry) for name, entry in merged.items()}), encoding="utf-8")
    new.replace(folder / _FILE)


def load_coverage(folder: Path) -> dict[str, Coverage]:
    """The coverage of each source. Empty if the file is missing or damaged: the next ingest writes it."""
    try:
        return parse_coverage(json.loads((folder / _FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def parse_coverage(data: Mapping[str, Any]) -> dict[str, Coverage]:
    return {name: _parse_entry(entry) for name, entry in data.items()}


def _parse_entry(entry: Mapping[str, Any]) -> Coverage:
    skipped = [SkippedPage(**page) for page in entry["skipped"]]
    return Coverage(entry["listed"], skipped, [ExcludedPage(**page) for page in entry.get("left_out", [])])
