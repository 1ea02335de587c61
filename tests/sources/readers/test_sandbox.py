"""Documents built to break their parser are reported and skipped within limits on memory and time; the rest is read."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bythebook.sources import Unreadable
from bythebook.sources.readers.sandbox import Sandbox, SandboxLimits
from tests.support.sample_documents import Set, assembled, docx, epub, para, pdf, running, stream, zipped

if TYPE_CHECKING:
    from bythebook.sources.document import ParsedDocument

GOOD = pdf(running("It burns."))
SMALL = SandboxLimits(memory=400_000_000, seconds=60.0, stall=30.0, output=2_000_000)
ENTITIES = "<!DOCTYPE x [" + "".join(
    f'<!ENTITY e{number} "{f"&e{number - 1};" * 10 if number else "lol"}">' for number in range(10)
)


@pytest.fixture(scope="module")
def reader() -> Sandbox:
    """One sandbox for all of these files; its process is replaced when it dies."""
    return Sandbox(SMALL)


def read(reader: Sandbox, folder: Path, name: str, data: bytes, *, part: str = "") -> ParsedDocument:
    file = folder / name
    file.write_bytes(data)
    return reader.read_file(file, part=part)


def assert_reads_on(reader: Sandbox, folder: Path) -> None:
    assert [part.text for part in read(reader, folder, "good.pdf", GOOD).parts] == ["It burns."]


def pages_of(count: int, content: bytes) -> bytes:
    """A PDF whose pages all show the same content."""
    kids = b" ".join(b"%d 0 R" % (number + 4) for number in range(count))
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 3 0 R >>"
    tree = b"<< /Type /Pages /Count %d /Kids [%s] >>" % (count, kids)
    return assembled([b"<< /Type /Catalog /Pages 2 0 R >>", tree, stream(content), *[page] * count])


def many_files(count: int) -> bytes:
    return zipped({f"{number}": "" for number in range(count)})


BOMBS = {
    "a million zeros in a hundred bytes": ("a.docx", docx("", files={"word/document.xml": b"0" * 60_000_000})),
    "entities in entities": ("a.docx", docx("", files={"word/document.xml": ENTITIES + "]><x>&e9;</x>"})),
    "two hundred thousand nested tags": ("a.docx", docx("<w:sdt>" * 200_000 + "</w:sdt>" * 200_000)),
    "tags that never close": ("a.docx", docx("<w:sdt>" * 200_000)),
    "too many files": ("a.docx", many_files(20_001)),
    "a stream that unpacks to 200 MB": ("a.pdf", pages_of(1, b"0 " * 100_000_000)),
    "arrays in arrays": ("a.pdf", pages_of(1, b"[" * 1_000_000)),
    "a tree of pages without end": (
        "a.pdf",
        assembled([b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 9 >>"]),
    ),
    "objects in objects": ("a.pdf", b"%PDF-1.4\n1 0 obj " + b"<</A " * 200_000 + b"\ntrailer << /Root 1 0 R >>"),
    "nothing but noise": ("a.pdf", b"%PDF-1.4\n" + random.Random(1).randbytes(100_000)),  # noqa: S311 - the same noise every time
}


@pytest.mark.parametrize("name", BOMBS)
def test_reports_a_bomb_and_reads_the_next_file(reader: Sandbox, tmp_path: Path, name: str) -> None:
    file, data = BOMBS[name]

    with pytest.raises(Unreadable) as caught:
        read(reader, tmp_path, file, data)

    assert str(caught.value)
    assert_reads_on(reader, tmp_path)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("<div>" * 1_000_000, id="a million nested tags"),
        pytest.param("<p>" + "x" * 60_000_000, id="a chapter that unpacks to 60 MB"),
    ],
)
def test_a_hostile_chapter_does_not_affect_the_others(reader: Sandbox, tmp_path: Path, body: str) -> None:
    file = tmp_path / "a.epub"
    file.write_bytes(epub({"bomb.xhtml": body, "oil.xhtml": "<p>It burns.</p>"}))

    assert reader.list_chapters(file) == ["OEBPS/bomb.xhtml", "OEBPS/oil.xhtml"]
    with pytest.raises(Unreadable):
        reader.read_file(file, part="OEBPS/bomb.xhtml")
    assert [part.text for part in reader.read_file(file, part="OEBPS/oil.xhtml").parts] == ["It burns."]


def test_limits_memory(tmp_path: Path) -> None:
    reader = Sandbox(SandboxLimits(memory=120_000_000))

    with pytest.raises(Unreadable, match=r"more than 120 MB of memory are needed to read it; split it"):
        read(reader, tmp_path, "a.docx", docx("<w:p/>" * 2_000_000))
    assert_reads_on(reader, tmp_path)
    reader.stop()


def test_limits_time_despite_heartbeats(tmp_path: Path) -> None:
    """Each heartbeat, one for each page, extends the stall limit but not the limit in all."""
    endless = pages_of(15_000, b"BT (x) Tj ET " * 500)
    reader = Sandbox(SandboxLimits(seconds=0.2))

    with pytest.raises(Unreadable, match=r"it takes too long to read \(over 0.2 s\)"):
        read(reader, tmp_path, "a.pdf", endless)
    reader.stop()
    stalled = Sandbox(SandboxLimits(stall=0.01))
    with pytest.raises(Unreadable, match=r"it takes too long to read \(over 0.01 s for one page"):
        read(stalled, tmp_path, "b.pdf", endless)
    stalled.stop()


def test_limits_the_size_of_the_output(reader: Sandbox, tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="more than 2 MB of text came out of it; split it"):
        read(reader, tmp_path, "a.docx", docx(para("oil " * 1_000_000)))
    assert_reads_on(reader, tmp_path)


def test_replaces_a_process_that_was_killed(tmp_path: Path) -> None:
    reader = Sandbox(SMALL)
    assert_reads_on(reader, tmp_path)
    process = reader._process
    assert process
    os.kill(process.pid, signal.SIGSEGV)
    process.wait()

    with pytest.raises(Unreadable, match=r"its parser crashed \(signal 11\); save it again"):
        read(reader, tmp_path, "a.pdf", GOOD)
    assert_reads_on(reader, tmp_path)
    reader.stop()


def test_stops_from_another_thread(tmp_path: Path) -> None:
    reader = Sandbox(SMALL)
    assert_reads_on(reader, tmp_path)
    threading.Timer(0.2, reader.stop).start()

    with pytest.raises(Unreadable):
        read(reader, tmp_path, "a.pdf", pages_of(15_000, b"BT (x) Tj ET " * 50))


def test_the_process_of_a_sandbox_serves_the_next_one_until_it_is_stopped(tmp_path: Path) -> None:
    reader = Sandbox(SMALL)
    assert_reads_on(reader, tmp_path)
    process = reader._process
    assert process
    del reader

    following = Sandbox(SMALL)
    assert_reads_on(following, tmp_path)
    assert following._process is process
    following.stop()
    assert process.wait(10) is not None


@pytest.mark.parametrize(
    "deed",
    [
        pytest.param("import socket; socket.socket()", id="no network"),
        pytest.param("import urllib.request; urllib.request.urlopen('http://127.0.0.1:9')", id="no request"),
        pytest.param("import subprocess; subprocess.run(['true'])", id="no other program"),
        pytest.param("import os; os.system('true')", id="no shell"),
        pytest.param("import os; os.fork()", id="no other process"),
        pytest.param("open('written', 'w')", id="no file to write"),
        pytest.param("import os; os.open('written', os.O_WRONLY | os.O_CREAT)", id="no file to write, by other means"),
        pytest.param("import os; os.remove('kept')", id="no file to remove"),
    ],
)
def test_the_process_has_no_rights(tmp_path: Path, deed: str) -> None:
    (tmp_path / "kept").write_text("x")
    script = (
        f"from bythebook.sources.readers.sandbox_worker import drop_privileges; drop_privileges(1_000_000_000); {deed}"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert "is not allowed while a document is read" in done.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["kept"]


def test_the_process_gets_no_environment_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COHERE_API_KEY", "canary")
    reader = Sandbox(SMALL)
    assert_reads_on(reader, tmp_path)
    assert reader._process
    environment = Path(f"/proc/{reader._process.pid}/environ")
    if not environment.exists():
        pytest.skip("this system does not show the variables of a process")

    assert b"canary" not in environment.read_bytes()
    reader.stop()


HEADING = '<w:style w:styleId="H"><w:name w:val="heading 1"/></w:style>'


def samples() -> dict[str, bytes]:
    page = [
        Set("The Lamp", size=20),
        *running("It burns", "all night.", top=650),
        *running("x = 1", font="mono", top=600),
    ]
    table = f"<w:tbl><w:tr><w:tc>{para('a')}</w:tc><w:tc>{para('b')}</w:tc></w:tr></w:tbl>"
    return {
        "a.pdf": pdf(page, page, title="Light", outline=[("The Lamp", 1, 1), ("Oil", 2, 2)]),
        "b.pdf": pdf(page, packed=True),
        "c.docx": docx(para("Lamp", style="H") + table, styles=HEADING),
        "d.epub": epub({"a.xhtml": "<h1>Oil</h1><p>It burns.</p>"}, nav={"a.xhtml": "Oil"}),
    }


def mutated(data: bytes, chance: random.Random) -> bytes:
    """The file with some bytes changed, removed, repeated or replaced by large numbers."""
    changed = bytearray(data)
    for _ in range(chance.choice((1, 2, 5, 20))):
        at = chance.randrange(len(changed) or 1)
        match chance.randrange(4):
            case 0:
                changed[at : at + 1] = chance.randbytes(1)
            case 1:
                del changed[at : at + chance.randrange(1, 60)]
            case 2:
                changed[at:at] = changed[at : at + chance.randrange(1, 200)]
            case 3:
                changed[at:at] = chance.choice((b"0", b"-1", b"99999999999", b"<<", b">>", b"\x00\xff", b"[", b"/"))
    return bytes(changed)


def test_reads_or_rejects_randomly_changed_files(
    reader: Sandbox, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    rounds = 5_000 if request.config.getoption("--full-size") else 40
    chance = random.Random(7)  # noqa: S311 - the same changes every time
    reasons = [
        _reason(reader, tmp_path / name, mutated(data, chance))
        for _ in range(rounds)
        for name, data in samples().items()
    ]

    assert [reason for reason in reasons if "parser crashed" in reason] == []
    assert rounds / 4 < sum(not reason for reason in reasons) < 4 * rounds - rounds / 4
    assert_reads_on(reader, tmp_path)


def _reason(reader: Sandbox, file: Path, data: bytes) -> str:
    """Why the file cannot be read; empty if it can."""
    file.write_bytes(data)
    try:
        for part in reader.list_chapters(file) if file.suffix == ".epub" else [""]:
            reader.read_file(file, part=part)
    except Unreadable as exc:
        return str(exc)
    return ""
