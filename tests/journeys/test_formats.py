"""A manual as PDF, a course as EPUB and a folder of notebooks become one book."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.support.sample_documents import epub, notebook, pdf, running

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def test_documents_of_several_formats_become_one_book(bythebook: Run, tmp_path: Path) -> None:
    first = [*running("The Lamp", size=20, top=740), *running("The lamp stands on top of the tower.", top=700)]
    second = running("Trim the wick to two millimetres before the lamp is lit at dusk.", top=700)
    (tmp_path / "manual.pdf").write_bytes(pdf(first, second, title="The Keeper's Manual"))
    (tmp_path / "course.epub").write_bytes(
        epub({"oil.xhtml": "<h1>Oil</h1><p>Colza oil is kept in the cellar in forty casks.</p>"}, title="A Course")
    )
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "fog.ipynb").write_text(
        notebook({"cell_type": "markdown", "source": "# Fog\n\nThe horn is sounded in fog every ninety seconds."})
    )
    (tmp_path / "notebooks" / "broken.pdf").write_bytes(b"%PDF-1.4 broken")
    sources = [tmp_path / name for name in ("manual.pdf", "course.epub", "notebooks")]

    read = bythebook("ingest", *sources)
    assert read.returncode == 3, read.stderr
    assert "3 added, 0 changed, 0 removed, 0 unchanged, 1 skipped" in read.stdout
    assert "skipped broken.pdf: it is damaged, or not a PDF" in read.stderr

    (citation,) = json.loads(bythebook("ask", "To what length do I trim the wick?", "--json").stdout)["citations"]
    assert citation["title"] == "The Keeper's Manual, page 2"
    assert citation["url"] == (tmp_path / "manual.pdf").as_uri() + "#page=2"
    assert citation["quote"] == "Trim the wick to two millimetres before the lamp is lit at dusk."

    (citation,) = json.loads(bythebook("ask", "Where is the colza oil kept?", "--json").stdout)["citations"]
    assert citation["title"] == "Oil"
    assert citation["url"] == (tmp_path / "course.epub").as_uri() + "#OEBPS/oil.xhtml"

    again = bythebook("ingest", *sources)
    assert again.returncode == 3
    assert "0 added, 0 changed, 0 removed, 3 unchanged, 1 skipped" in again.stdout

    # A page that becomes unreadable is reported. The book keeps its last version.
    (tmp_path / "course.epub").write_bytes(b"no archive any more")
    later = bythebook("ingest", *sources)
    assert later.returncode == 3, later.stderr
    assert "0 added, 0 changed, 0 removed, 2 unchanged, 2 skipped" in later.stdout
    assert "skipped course.epub: it is damaged, or not what its name says" in later.stderr
    assert json.loads(bythebook("ask", "Where is the colza oil kept?", "--json").stdout)["citations"] == [citation]
