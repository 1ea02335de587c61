"""The command line as it is, which also writes down every chunk that was embedded.

python counted.py LOG ARGUMENTS...    runs `bythebook ARGUMENTS...`, appending the hash of each chunk's text to LOG
"""

from __future__ import annotations

import hashlib
import os
import sys
from typing import TYPE_CHECKING

from bythebook.cli import main
from bythebook.embeddings.minilm.embedder import LocalEmbedder

if TYPE_CHECKING:
    from bythebook.embeddings import Vector

log = os.open(sys.argv.pop(1), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
embed = LocalEmbedder._embed


def counted(embedder: LocalEmbedder, text: str) -> Vector:
    vector = embed(embedder, text)
    # A chunk stands below its headings, on lines of their own. The questions of a calibration are of one line.
    if "\n" in text:
        os.write(log, hashlib.sha256(text.encode()).hexdigest().encode() + b"\n")
    return vector


setattr(LocalEmbedder, "_embed", counted)  # noqa: B010 - a type checker would not have it
main()
