"""Editing a book, ingesting it, and killing the ingest."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import bythebook
from bythebook.embeddings import EmbedderId
from bythebook.embeddings.local import EMBEDDER_ID

HERE = Path(__file__).parent
WORDS = "lamp horn keeper oil page fog wick lens ship storm stair night log rope bell glass".split()

ANY_TIME = "at any time"

Moment = Callable[["Killing"], bool]


@dataclass
class Killing:
    """Edits a book and kills its ingests."""

    folder: Path
    model_folder: Path
    chance: random.Random
    written: int = 0
    """The number of sections written so far. All have different words, so no text must be embedded twice."""
    current: str = ""
    journal: int = 0
    locks: tuple[Path, ...] = ()
    hints: tuple[int, ...] = ()
    wanted: int = 0
    process: int = 0
    runs: int = 0
    moments: Counter[str] = field(default_factory=Counter)
    """The number of killed runs by moment."""

    @property
    def identity(self) -> EmbedderId:
        return EMBEDDER_ID

    @property
    def record(self) -> int:
        """The size of a vector in the checkpoint file, in bytes."""
        return 32 + 4 * self.identity.dimension + 4

    @property
    def index(self) -> Path:
        return self.folder / "data" / "index"

    @property
    def pages(self) -> Path:
        return self.folder / "pages"

    def environment(self) -> dict[str, str]:
        source = str(Path(bythebook.__file__).parents[1])
        return {"PATH": os.environ["PATH"], "PYTHONPATH": source, "BYTHEBOOK_MODEL_FOLDER": str(self.model_folder)}

    def command(self) -> list[object]:
        return [sys.executable, HERE / "counting_cli.py", self.folder / "embedded", "ingest", self.pages]

    def start(self) -> subprocess.Popen[str]:
        self.current = (self.index / "CURRENT").read_text() if (self.index / "CURRENT").exists() else ""
        self.journal = self.journal_size()
        self.locks = tuple(self.index.glob("g*/LOCK"))
        self.hints = tuple(self.written_at(name) for name in HINTS)
        self.runs += 1
        self.wanted = self.chance.randint(1, 8)
        process = subprocess.Popen(
            [*map(str, self.command()), "--data-dir", str(self.folder / "data"), "--json"],
            cwd=self.folder,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.process = process.pid
        return process

    def finish(self) -> dict[str, int]:
        """Run an ingest to its end."""
        with self.start() as process:
            output, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
        report: dict[str, int] = json.loads(output)
        return report

    def kill(self, name: str) -> None:
        """Start a run and kill it at this moment or shortly after, unless it ends before."""
        with self.start() as process:
            if name == ANY_TIME:
                _ended(process, within=self.chance.uniform(0, 3))
            while not MOMENTS[name](self) and not _ended(process, within=0.0005):
                pass
            _ended(process, within=self.chance.choice([0, 0, 0.002, 0.02]))
            self.moments[name] += process.poll() is None
            process.kill()
            process.communicate()

    def journal_size(self) -> int:
        return sum(path.stat().st_size for path in self.index.glob("*.journal"))

    def writer(self) -> str:
        """The process id in the writer lock."""
        return (self.index / "WRITER").read_text() if (self.index / "WRITER").exists() else ""

    def written_at(self, name: str) -> int:
        return (self.index / name).stat().st_mtime_ns if (self.index / name).exists() else 0

    def is_flipped(self) -> bool:
        return (self.index / "CURRENT").read_text() != self.current

    def edit(self) -> None:
        """Remove two pages, change three, add two. A book of constant size is not calibrated again each time."""
        for page in self.chance.sample(sorted(self.pages.iterdir()), 2):
            page.unlink()
        for page in self.chance.sample(sorted(self.pages.iterdir()), 3):
            sections = page.read_text().split("\n\n## ")
            place = self.chance.randrange(1, len(sections))
            sections[place] = self.section()
            page.write_text("\n\n## ".join(sections))
        self.page()
        self.page()

    def page(self) -> None:
        name = f"page{self.written}"
        (self.pages / f"{name}.md").write_text("\n\n## ".join([f"# {name}", *(self.section() for _ in range(4))]))

    def section(self) -> str:
        self.written += 1
        return f"Section {self.written}\n\n" + " ".join(self.chance.choices(WORDS, k=60)) + f" {self.written}."

    @contextmanager
    def being_read(self) -> Iterator[Counter[str]]:
        """Run a reader process. On exit, the counter has its reads by generation."""
        seen: Counter[str] = Counter()
        identity = [self.identity.model, str(self.identity.dimension)]
        command = [sys.executable, str(HERE / "index_reader.py"), str(self.index), *identity]
        with subprocess.Popen(
            command,
            env=self.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as reader:
            try:
                yield seen
                assert reader.poll() is None, "the reader process failed"
            finally:
                output, errors = reader.communicate(timeout=60)
        assert reader.returncode == 0, errors
        seen.update(json.loads(output))

    def kill_so_often(self, kills: int) -> None:
        """Use all moments in random order until enough runs were killed. Runs that ended earlier do not count."""
        enough = self.moments.total() + kills
        while True:
            for name in self.chance.sample(list(MOMENTS), len(MOMENTS)):
                self.edit()
                self.kill(name)
                if self.moments.total() == enough:
                    return

    def embedded(self) -> Counter[str]:
        """The number of embeddings by chunk."""
        return Counter((self.folder / "embedded").read_text().split())

    @property
    def embedded_twice(self) -> int:
        """The number of repeated embeddings."""
        return self.embedded().total() - len(self.embedded())


def _ended(process: subprocess.Popen[str], *, within: float) -> bool:
    try:
        process.wait(timeout=within)
    except subprocess.TimeoutExpired:
        return False
    return True


def show(killing: Killing, seen: Counter[str]) -> None:
    """Print the kills and their cost."""
    kills, twice = killing.moments.total(), killing.embedded_twice
    lines = [
        f"{kills} kills of {killing.runs} runs, {seen.total()} readings of {len(seen)} generations meanwhile",
        f"{len(killing.embedded())} chunks embedded, {twice} of them twice: {twice / kills:.2f} for each kill",
        *(f"{times:4} when {name}" for name, times in killing.moments.items()),
    ]
    print("", *lines, sep="\n")  # noqa: T201


HINTS = ("stamps.json", "coverage.json")

MOMENTS: dict[str, Moment] = {
    ANY_TIME: lambda _: True,
    "the right to write is taken": lambda k: k.writer() == str(k.process),
    "a few vectors are written down": lambda k: k.journal_size() >= k.journal + k.wanted * k.record,
    "the draft is begun": lambda k: (k.index / "draft").exists(),
    "the draft has a catalogue": lambda k: (k.index / "draft" / "book.db").exists(),
    "the draft has a name": lambda k: any(f.name > k.current for f in k.index.glob("g*")),
    "the pointer is written": lambda k: (k.index / "CURRENT.new").exists(),
    "the pointer is flipped": lambda k: k.is_flipped(),
    "the journal is cleared": lambda k: k.is_flipped() and not k.journal_size(),
    "the stamps are kept": lambda k: k.written_at("stamps.json") > k.hints[0],
    "the coverage is kept": lambda k: k.written_at("coverage.json") > k.hints[1],
    "an old generation is being swept": lambda k: not all(lock.exists() for lock in k.locks),
}
"""The boundaries between the stages of an ingest, as visible in the index folder."""
