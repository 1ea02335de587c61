"""The command line with a log of every embedded chunk.

python counting_cli.py LOG ARGUMENTS...    runs `bythebook ARGUMENTS...`, appends the hash of each chunk to LOG
"""

from __future__ import annotations

import hashlib
import os
import sys
from typing import TYPE_CHECKING

from bythebook.cli import main
from bythebook.embeddings.local import LocalEmbedder

if TYPE_CHECKING:
    from bythebook.embeddings import Vector

log = os.open(sys.argv.pop(1), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
embed = LocalEmbedder.embed


def counted(embedder: LocalEmbedder, text: str) -> Vector:
    vector = embed(embedder, text)
    # The text of a chunk has its headings on separate lines. Calibration questions have one line.
    if "\n" in text:
        os.write(log, hashlib.sha256(text.encode()).hexdigest().encode() + b"\n")
    return vector


setattr(LocalEmbedder, "embed", counted)  # noqa: B010 - a type checker would not have it
main()
