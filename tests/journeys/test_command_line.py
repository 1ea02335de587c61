"""The first steps of a user: ingest a folder, ask, inspect, edit."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import httpx
import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def test_a_folder_becomes_a_book_that_answers_with_a_link_to_the_sentence(
    bythebook: Run, lighthouse: Path, tmp_path: Path
) -> None:
    read = bythebook("ingest", lighthouse)
    assert read.returncode == 0, read.stderr
    assert "5 added, 0 changed, 0 removed, 0 unchanged, 0 skipped" in read.stdout
    assert (tmp_path / ".bythebook" / ".gitignore").read_text(encoding="ascii") == "*\n"

    asked = bythebook("ask", "How often does the fog horn sound?")
    assert asked.returncode == 0, asked.stderr
    assert "The horn gives two blasts of three seconds every ninety seconds. " in asked.stdout
    page = (lighthouse / "signals" / "fog.md").as_uri()
    assert f"{page}#the-horns-pattern:~:text=The%20horn%20gives%20two%20blasts,three%20seconds" in asked.stdout


def test_a_question_that_is_far_from_the_book_is_refused_without_links(bythebook: Run, shelved: Path) -> None:
    asked = bythebook("ask", "--data-dir", shelved, "What is the boiling point of mercury?", "--json")
    assert asked.returncode == 0
    response = json.loads(asked.stdout)
    assert "I don't have information about" in response["answer"]
    assert (response["outcome"], response["grounded"], response["citations"]) == ("refused", False, [])
    assert response["suggestions"] == []


def test_a_question_without_a_subject_gets_a_question_back(bythebook: Run, shelved: Path) -> None:
    response = json.loads(bythebook("ask", "--data-dir", shelved, "What is it?", "--json").stdout)
    assert (response["outcome"], response["grounded"]) == ("clarify", False)


def test_a_second_run_writes_nothing(bythebook: Run, lighthouse: Path, tmp_path: Path) -> None:
    bythebook("ingest", lighthouse)
    index = tmp_path / ".bythebook" / "index"
    before = {path: path.stat().st_mtime_ns for path in index.rglob("*") if path.name != "WRITER"}
    again = bythebook("ingest", lighthouse)
    assert again.returncode == 0
    assert "(0 embedded)" in again.stdout
    # Opening a shard touches its files. The generation, the pointer and the hints must not change.
    after = {path for path in index.rglob("*") if path.name != "WRITER"}
    assert after == set(before)
    assert (index / "CURRENT").read_text() == "g000001"


def test_an_edit_embeds_only_the_changed_chunks(bythebook: Run, lighthouse: Path) -> None:
    bythebook("ingest", lighthouse)
    fog = lighthouse / "signals" / "fog.md"
    fog.write_text(fog.read_text().replace("ninety seconds", "sixty seconds"))
    report = json.loads(bythebook("ingest", lighthouse, "--json").stdout)
    assert {name: report[name] for name in ("added", "changed", "removed", "unchanged", "embedded")} == {
        "added": 0, "changed": 1, "removed": 0, "unchanged": 4, "embedded": 1,
    }  # fmt: skip
    assert "every sixty seconds" in bythebook("ask", "How often does the fog horn sound?").stdout


def test_a_deleted_page_is_no_longer_found(bythebook: Run, lighthouse: Path) -> None:
    bythebook("ingest", lighthouse)
    (lighthouse / "signals" / "fog.md").unlink()
    report = json.loads(bythebook("ingest", lighthouse, "--json").stdout)
    assert (report["removed"], report["pages"]) == (1, 4)
    found = json.loads(bythebook("search", "fog horn blasts", "--json").stdout)
    assert all(not result["url"].endswith("fog.md") for result in found["results"])


def test_a_dry_run_shows_the_plan_and_changes_nothing(bythebook: Run, lighthouse: Path, tmp_path: Path) -> None:
    plan = bythebook("ingest", lighthouse, "--dry-run")
    assert plan.returncode == 0
    assert "5 added" in plan.stdout
    assert not (tmp_path / ".bythebook").exists()


def test_a_search_can_be_filtered(bythebook: Run, lighthouse: Path) -> None:
    bythebook("ingest", lighthouse, "--site-url", "https://light.example/book")
    found = json.loads(bythebook("search", "warning ships", "--filter", "module=Signals", "--json").stdout)
    assert {result["module_name"] for result in found["results"]} == {"Signals"}
    found = json.loads(
        bythebook("search", "oil", "--filter", "url=https://light.example/book/keeping", "--json").stdout
    )
    assert {result["chapter_id"] for result in found["results"]} == {"keeping/lamp", "keeping/log"}


def test_the_same_search_gives_the_same_list(bythebook: Run, shelved: Path) -> None:
    first, second = (
        json.loads(bythebook("search", "--data-dir", shelved, "lamp oil", "--json").stdout)["results"] for _ in range(2)
    )
    assert first == second
    assert [result["position"] for result in first] == [1, 2, 3, 4, 5]
    assert all(0.0 <= result["score"] <= 1.0 for result in first)


def test_an_unreadable_page_is_reported_and_skipped(bythebook: Run, lighthouse: Path) -> None:
    (lighthouse / "broken.md").write_bytes(b"# Caf\xe9 au lait")
    (lighthouse / "empty.md").write_text("")
    read = bythebook("ingest", lighthouse)
    assert read.returncode == 3
    assert "2 skipped" in read.stdout
    assert "broken.md" in read.stderr
    assert "empty.md" in read.stderr
    shown = json.loads(bythebook("status", "--json").stdout)
    assert [skipped["path"] for skipped in shown["sources"][0]["skipped"]] == ["broken.md", "empty.md"]
    assert shown["sources"][0]["coverage"] == pytest.approx(5 / 7)


def test_two_sources_make_one_book_until_one_is_pruned(bythebook: Run, lighthouse: Path) -> None:
    bythebook("ingest", lighthouse / "keeping")
    both = json.loads(bythebook("ingest", lighthouse / "signals", "--json").stdout)
    assert both["pages"] == 4
    alone = json.loads(bythebook("ingest", lighthouse / "signals", "--prune", "--json").stdout)
    assert (alone["pages"], alone["removed"]) == (2, 2)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        pytest.param(["ask", "Why?"], 1, "there is no book yet", id="no book yet"),
        pytest.param(["ingest", "nowhere"], 2, "nowhere", id="no such folder"),
        pytest.param(["ask", "  "], 2, "the question is empty", id="empty question"),
        pytest.param(["ask", "x" * 1001], 2, "at most 1000", id="question too long"),
        pytest.param(["ask", "lamp", "--top-k", "11"], 2, "from 1 to 10", id="too many passages"),
        pytest.param(["ask", "lamp", "--threshold", "much"], 2, "retrieval_threshold", id="no such threshold"),
        pytest.param(["search", "lamp", "--filter", "colour=red"], 2, "module=NAME", id="no such filter"),
        pytest.param(["dance"], 2, "dance", id="no such command"),
        pytest.param(["ingest"], 2, "sources", id="nothing to ingest"),
        pytest.param(["status"], 1, "bythebook ingest", id="status without a book"),
    ],
)
def test_errors_say_what_to_do(bythebook: Run, arguments: list[str], code: int, message: str) -> None:
    done = bythebook(*arguments)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_an_empty_folder_is_an_error_and_changes_nothing(bythebook: Run, lighthouse: Path, tmp_path: Path) -> None:
    bythebook("ingest", lighthouse)
    (tmp_path / "nothing").mkdir()
    done = bythebook("ingest", tmp_path / "nothing")
    assert done.returncode == 2
    assert "there are no pages in" in done.stderr
    assert json.loads(bythebook("status", "--json").stdout)["pages"] == 5


def test_with_json_an_error_is_an_object(bythebook: Run) -> None:
    done = bythebook("ask", "Why is the lamp lit?", "--json")
    assert done.returncode == 1
    error = json.loads(done.stdout)
    assert (error["error"], error["status_code"], error["recoverable"]) == ("not_found", 404, False)


def test_status_describes_the_book(bythebook: Run, shelved: Path) -> None:
    shown = json.loads(bythebook("status", "--data-dir", shelved, "--json").stdout)
    assert (shown["pages"], shown["generation"], shown["dimension"]) == (5, "g000001", 384)
    assert [(model["title"], model["license"], model["installed"]) for model in shown["models"][:2]] == [
        ("granite-embedding-30m-english", "Apache-2.0", True),
        ("ms-marco-MiniLM-L-12-v2", "Apache-2.0", True),
    ]
    assert shown["size_bytes"] > 0
    tried = shown["calibration"]
    assert 0 < tried["kept"] <= 1
    assert (tried["recall"], shown["retrieval_threshold"]) == (tried["refused"], "auto")
    assert 0 < tried["precision"] <= 1
    text = bythebook(
        "status", "--data-dir", shelved, BYTHEBOOK_RETRIEVAL_THRESHOLD="0.5", BYTHEBOOK_MODEL_FOLDER="nowhere"
    ).stdout
    assert "not installed: passages are ranked without it; run 'bythebook model download ms-marco" in text
    assert "retrieval_threshold is set to 0.5" in text
    assert "5 pages" in text
    assert "precision" in text
    assert "made of half the words of the book's sentences" in text


def test_config_shows_the_origin_of_each_value(bythebook: Run, tmp_path: Path) -> None:
    (tmp_path / "bythebook.toml").write_text("retrieval_top_k = 7\n[chunk]\ntokens = 200\n")
    (tmp_path / ".env").write_text("export BYTHEBOOK_CHUNK_OVERLAP='20'\nOTHER=1\n")
    shown = json.loads(bythebook("config", "--json", BYTHEBOOK_RETRIEVAL_TOP_K="8").stdout)
    origins = {name: (row["value"], row["origin"]) for name, row in shown.items()}
    assert origins["retrieval_top_k"] == ("8", "environment")
    assert origins["chunk_tokens"] == ("200", "bythebook.toml")
    assert origins["chunk_overlap"] == ("20", ".env")
    assert origins["site_url"] == ("", "default")


def test_a_closed_pipe_is_not_reported(bythebook: Run, shelved: Path, tmp_path: Path, model_folder: Path) -> None:
    command = f"{sys.executable} -m bythebook search lamp --json --data-dir {shelved} | head -c 1"
    environment = os.environ | {"BYTHEBOOK_MODEL_FOLDER": str(model_folder)}
    done = subprocess.run(
        ["/bin/sh", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("{", "")


def test_progress_is_shown_only_on_a_terminal(bythebook: Run, lighthouse: Path, tmp_path: Path) -> None:
    assert "embedding" not in bythebook("ingest", lighthouse).stderr
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "bythebook", "ingest", str(lighthouse), "--rebuild"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=slave) as process:
        os.close(slave)
        shown = _everything(master)
        output, _ = process.communicate(timeout=60)
    assert "embedding" in shown
    assert b"Published" in output


def test_on_a_terminal_a_citation_is_a_link_and_lines_are_wrapped(shelved: Path, tmp_path: Path) -> None:
    master, slave = pty.openpty()
    command = [
        sys.executable,
        "-m",
        "bythebook",
        "ask",
        "--data-dir",
        str(shelved),
        "How",
        "do",
        "I",
        "light",
        "the",
        "lamp",
    ]
    environment = os.environ | {"TERM": "xterm", "NO_COLOR": "", "COLUMNS": "60"}
    with subprocess.Popen(command, cwd=tmp_path, stdout=slave, stderr=subprocess.DEVNULL, env=environment) as process:
        os.close(slave)
        shown = _everything(master)
        process.wait(timeout=60)
    assert re.search(r"\x1b\]8;;file:\S+:~:text=\S+\x1b\\\[1\] Tending the lamp > Lighting the lamp\x1b\]8;;", shown)
    answer = re.sub(r"\x1b\[[0-9;]*m", "", shown.partition("\x1b]8;;")[0])
    assert max(map(len, answer.splitlines())) <= 60


def _everything(terminal: int) -> str:
    """Read a terminal until no process has it open."""
    shown = b""
    with contextlib.suppress(OSError):
        while data := os.read(terminal, 65536):
            shown += data
    os.close(terminal)
    return shown.decode()


def test_an_interrupted_ingest_keeps_the_book_intact(bythebook: Run, lighthouse: Path, tmp_path: Path) -> None:
    bythebook("ingest", lighthouse)
    for number in range(900):
        (lighthouse / f"page{number}.md").write_text(f"# Page {number}\n\n" + f"Keeper {number} writes. " * 60)
    command = [sys.executable, "-m", "bythebook", "ingest", str(lighthouse)]
    journals = tmp_path / ".bythebook" / "index"
    # If the tests run in the background, child processes inherit an ignored SIGINT.
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed,  # noqa: PLW1509
    ) as process:
        while not any(path.stat().st_size for path in journals.glob("*.journal")) and process.poll() is None:
            pass
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "Nothing is lost" in said
    assert json.loads(bythebook("status", "--json").stdout)["pages"] == 5
    assert "ninety seconds" in bythebook("ask", "How often does the fog horn sound?").stdout


def test_the_demo_answers_from_the_manual_and_opens_its_page(
    bythebook: Run, model_folder: Path, tmp_path: Path
) -> None:
    done = bythebook("demo")
    assert done.returncode == 0, done.stderr
    assert "[1]" in done.stdout

    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path / "shown"}\n', encoding="utf-8")
    browser.chmod(0o755)
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "BYTHEBOOK_MODEL_FOLDER": str(model_folder)}
    for variables, opened in (({"BROWSER": f"{browser} %s"}, True), ({"BROWSER": "there-is-no-such-browser"}, False)):
        with subprocess.Popen(
            [sys.executable, "-m", "bythebook", "demo", "--open", "--json"],
            cwd=tmp_path, env=environment | variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            assert process.stdout is not None
            ready = json.loads(process.stdout.readline())
            assert ready["opened"] is opened
            assert "<title>By the Book</title>" in httpx.get(ready["url"], trust_env=False, timeout=60).text
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
        assert process.returncode == 130, said
        assert f"The manual is at {ready['url']}, Ctrl-C to stop." in said
        assert ("Open it in a browser." in said) is not opened
    assert (tmp_path / "shown").read_text(encoding="utf-8").startswith("http://127.0.0.1:")


def test_help_and_version(bythebook: Run) -> None:
    assert "ingest" in bythebook("--help").stdout
    assert bythebook("--version").stdout.strip() == "0.1.0"
    assert bythebook().returncode == 2


def test_an_unusable_data_folder_is_named(bythebook: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder", encoding="utf-8")
    for arguments in (("ask", "lamp"), ("status",), ("ingest", tmp_path)):
        done = bythebook(*arguments, "--data-dir", tmp_path / "file")
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert "file" in done.stderr
        assert "cannot be used: Not a directory. Check the path." in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
def test_a_failed_write_of_the_answer_is_an_error(model_folder: Path, tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "BYTHEBOOK_MODEL_FOLDER": str(model_folder)}
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-m", "bythebook", "config"],
            cwd=tmp_path,
            env=environment,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=120,
        )
    assert (done.returncode, done.stderr) == (1, "error: the output could not be written: No space left on device.\n")


def test_closed_streams_are_not_an_error(tmp_path: Path) -> None:
    command = f"{sys.executable} -m bythebook config >&- 2>&-"
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    done = subprocess.run(["/bin/sh", "-c", command], cwd=tmp_path, env=environment, check=False, timeout=120)
    assert done.returncode == 0


async def test_the_demo_does_not_answer_from_transcripts() -> None:
    """The transcripts contain questions and answers about other books."""
    from bythebook.cli.demo import EXCLUDED_FOLDERS, find_manual
    from bythebook.sources.folder import Folder

    every = [item.path async for item in Folder(find_manual()).listing()]
    book = [item.path async for item in Folder(find_manual(), exclude=EXCLUDED_FOLDERS).listing()]
    assert {path.partition("/")[0] for path in set(every) - set(book)} == {"transcripts"}
    assert "index.md" in book


def test_spelling_may_differ_from_the_book(bythebook: Run, tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "arm.md").write_text(
        "# The arm\n\nThe gripper is calibrated by inverse kinematics (IK) before each shift."
    )
    (pages / "node.md").write_text("# Nodes\n\nCall `rclpy.spin_once(node)` to handle one message and return.")
    (pages / "loop.md").write_text("# Loops\n\nCall `rclpy.spin(node)` to handle every message until the node ends.")
    (pages / "plan.md").write_text("# Plans\n\nIK is solved again whenever the goal moves.")
    bythebook("ingest", pages)

    assert "gripper is calibrated" in bythebook("ask", "How is the grippper calibratd?").stdout
    assert "handle one message" in bythebook("ask", "What does spin_once do?").stdout.partition("[1]")[0]
    found = json.loads(bythebook("search", "inverse kinematics", "--json").stdout)["results"]
    assert {result["title"] for result in found[:2]} == {"The arm", "Plans"}


def test_a_question_needs_no_quotes_and_may_come_from_a_pipe(bythebook: Run, shelved: Path) -> None:
    words = bythebook("ask", "--data-dir", shelved, "How", "often", "does", "the", "fog", "horn", "sound?")
    quoted = bythebook("ask", "--data-dir", shelved, "How often does the fog horn sound?")
    piped = subprocess.run(
        [sys.executable, "-m", "bythebook", "ask", "--data-dir", str(shelved)],
        input="How often does the fog horn sound?\n", capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert "two blasts of three seconds" in quoted.stdout
    assert words.stdout == quoted.stdout == piped.stdout


def test_usage_errors_are_json_like_all_others(bythebook: Run) -> None:
    failed = bythebook("status", "--nope", "--json")
    assert failed.returncode == 2
    assert json.loads(failed.stdout)["error"] == "invalid_input"
    assert "--nope" in failed.stderr


def test_omissions_are_one_line_for_each_reason(bythebook: Run, lighthouse: Path) -> None:
    for name in ("a.md", "b.md", "c.md"):
        (lighthouse / name).write_text("::: lighthouse.lamp\n", encoding="utf-8")
    done = bythebook("ingest", lighthouse)
    assert done.returncode == 0
    assert "left out a.md and 2 more: its text is generated from code" in done.stderr
    assert done.stderr.count("generated from code") == 1


def test_a_project_is_named_on_one_line(bythebook: Run, lighthouse: Path) -> None:
    (lighthouse / "mkdocs.yml").write_text("site_name: Light\nsite_url: https://light.example/\n", encoding="utf-8")
    (lighthouse / "docs").mkdir()
    (lighthouse / "docs" / "index.md").write_text("# Light\n\nThe light is lit.\n", encoding="utf-8")
    done = bythebook("ingest", lighthouse)
    assert "MkDocs project mkdocs.yml, 1 pages, published at https://light.example" in done.stderr


ESCAPES = "\x1b]52;c;ZXZpbA==\x07\x1b[2J\x9b31m\u202e"


def test_nothing_of_a_page_controls_the_terminal(
    bythebook: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "lamp.md").write_text(
        f"# The {ESCAPES}Lamp\n\nThe lamp burns {ESCAPES}oil.\n\n```sh\nburn {ESCAPES} oil\n```\n"
    )
    cell = {"cell_type": "code", "source": f"fog = '{ESCAPES}'", "outputs": [], "metadata": {}}
    (pages / "fog.ipynb").write_text(json.dumps({"cells": [cell], "metadata": {"title": f"Fog\n{ESCAPES}"}}))
    (pages / "a\n9 added, 0 skipped\x1b[2J.md").write_text("# Forged\n\nThe report has a line of its own.\n")
    monkeypatch.setenv("FORCE_COLOR", "1")
    question = "How does one burn oil in the lamp?"
    runs = [bythebook("ingest", pages), bythebook("ask", question), bythebook("ask", question, "--json")]
    runs += [
        bythebook("search", question),
        bythebook("search", "fog"),
        bythebook("status"),
        bythebook("status", "--json"),
    ]
    for ran in runs:
        printed = ran.stdout + ran.stderr
        assert "Traceback" not in printed
        assert not [char for char in printed if char != "\n" and not char.isprintable()]
        assert "\n9 added" not in printed
