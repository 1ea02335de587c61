"""How fast documents are read, and with how much memory: each file by a process of its own, as an ingest has it.

python -m bench.documents FILE... [--json]
"""

from __future__ import annotations

import argparse
import json
import resource
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.processes import python, run
from bythebook.pages.capped import CappedReader
from bythebook.pages.readers.documents import has_chapters


@dataclass(frozen=True, slots=True)
class Reading:
    """What reading one file took. Memory and processor time are those of the process that read it."""

    file: str
    pages: int
    words: int
    seconds: float
    megabytes: float

    def __str__(self) -> str:
        rate = self.pages / self.seconds
        return (
            f"{self.file:<30} {self.pages:6d} pages {self.words:9d} words {self.seconds:7.2f} s of processor time "
            f"{rate:7.1f} pages/s  peak {self.megabytes:.0f} MB"
        )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.documents", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, help="PDF, EPUB and Word files")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(asdict(_measured(given.files[0]))))
        return
    # The highest memory of a process that has ended cannot be told from that of the one before it.
    found = [
        Reading(**run(python("-m", "bench.documents", "--one", str(file.resolve()))).json()) for file in given.files
    ]
    if given.json:
        print(json.dumps([asdict(reading) for reading in found], indent=2))
    else:
        for reading in found:
            print(reading)


def _measured(file: Path) -> Reading:
    reader = CappedReader()
    chapters = reader.chapters(file) if has_chapters(file) else [""]
    drafts = [reader.read(file, part=chapter) for chapter in chapters]
    reader.stop()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    sheets = [int(part.anchor.removeprefix("page=")) for part in drafts[0].parts if part.anchor.startswith("page=")]
    words = sum(len(part.text.split()) for draft in drafts for part in draft.parts)
    seconds = used.ru_utime + used.ru_stime
    return Reading(file.name, max(sheets, default=len(chapters)), words, seconds, used.ru_maxrss / 1024)


if __name__ == "__main__":
    main()
