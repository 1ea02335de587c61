"""How fast documents are read, with how much memory, and how much of their text comes out.

Each file is read in a separate process, as in an ingest. With `--against` a PDF is compared with the HTML page it
was printed from: the share of the page's sequences of five words that came out, and of those that came out that are the
page's.

python -m bench.documents FILE... [--against PAGE.html] [--json]
"""

from __future__ import annotations

import argparse
import json
import re
import resource
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.processes import python, run
from bythebook.sources.readers import find_format, html
from bythebook.sources.readers.sandbox import Sandbox

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bythebook.sources.document import DocumentPart

TOGETHER = 5
_FENCE = re.compile(r"^`{3,}.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Reading:
    """The cost of reading one file: memory and processor time of its process."""

    file: str
    pages: int
    words: int
    seconds: float
    megabytes: float
    found: float | None
    """The recall of the text of the page."""
    right: float | None
    """The precision of the extracted text."""

    def __str__(self) -> str:
        compared = f"  found {self.found:.4f}, right {self.right:.4f}" if self.found is not None else ""
        return (
            f"{self.file:<24} {self.pages:6d} pages {self.words:9d} words {self.seconds:7.2f} s of processor time "
            f"{self.pages / self.seconds:7.1f} pages/s  peak {self.megabytes:.0f} MB{compared}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.documents", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, help="PDF, EPUB and Word files")
    parser.add_argument("--against", type=Path, help="the HTML page that a PDF was printed from")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(asdict(_measured(given.files[0], given.against))))
        return
    against = ["--against", str(given.against.resolve())] if given.against else []
    # The peak memory of an ended process cannot be separated from that of the previous one.
    commands = (python("-m", "bench.documents", "--one", str(file.resolve()), *against) for file in given.files)
    found = [Reading(**run(command).json()) for command in commands]
    if given.json:
        print(json.dumps([asdict(reading) for reading in found], indent=2))
    else:
        for reading in found:
            print(reading)


def _measured(file: Path, against: Path | None) -> Reading:
    reader = Sandbox()
    chapters = reader.list_chapters(file) if (row := find_format(file.suffix)) and row.is_collection else [""]
    parts = [part for chapter in chapters for part in reader.read_file(file, part=chapter).parts]
    reader.stop()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    sheets = [int(part.anchor.removeprefix("page=")) for part in parts if part.anchor.startswith("page=")]
    pages = max(sheets, default=len(chapters))
    seconds = used.ru_utime + used.ru_stime
    found = right = None
    if against:
        said, written = _sequences(parts), _sequences(html.read(against.read_text(encoding="utf-8")).parts)
        both = (said & written).total()
        found, right = both / written.total(), both / said.total()
    return Reading(file.name, pages, len(_words(parts)), seconds, used.ru_maxrss / 1024, found, right)


def _words(parts: Iterable[DocumentPart]) -> list[str]:
    return re.findall(r"\w+", " ".join(_FENCE.sub("", part.text) for part in parts))


def _sequences(parts: Iterable[DocumentPart]) -> Counter[tuple[str, ...]]:
    words = _words(parts)
    return Counter(zip(*(words[first:] for first in range(TOGETHER)), strict=False))


if __name__ == "__main__":
    main()
