"""Projects of site generators and watched folders on the command line."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

from tests.conftest import Run

BOOKS = Path(__file__).parents[1] / "books"


def test_a_project_is_ingested_and_excluded_pages_are_listed(bythebook: Run, tmp_path: Path) -> None:
    project = shutil.copytree(BOOKS / "tidepool", tmp_path / "website")

    plan = bythebook("ingest", project, "--dry-run")
    assert (plan.returncode, "9 added" in plan.stdout, "10 left out" in plan.stdout) == (0, True, True)
    assert "and 1 more: a blog post; --include blog adds it" in plan.stderr

    report = json.loads(bythebook("ingest", project, "--include", "blog", "--include", "pages", "--json").stdout)
    assert (report["pages"], len(report["left_out"])) == (12, 7)
    found = json.loads(bythebook("search", "thickness of glass", "--filter", "module=Setting up", "--json").stdout)
    first = found["results"][0]
    assert (first["url"], first["chapter_id"]) == ("https://tidepool.example/guide/book/tanks/basin", "tanks/basin")
    assert "left out on purpose" in bythebook("status").stdout

    wrong = bythebook("ingest", project, "--include", "everything")
    assert (wrong.returncode, "'everything' is none of blog, pages" in wrong.stderr) == (2, True)
    version = bythebook("ingest", project, "--site-version", "7")
    assert (version.returncode, "the site has no version '7'" in version.stderr) == (2, True)


def test_a_watched_folder_is_ingested_after_each_change(model_folder: Path, lighthouse: Path) -> None:
    command = [sys.executable, "-m", "bythebook", "ingest", str(lighthouse), "--watch", "--json"]
    environment = os.environ | {"BYTHEBOOK_MODEL_FOLDER": str(model_folder)}
    # If the tests run in the background, child processes inherit an ignored SIGINT.
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(
        command,
        cwd=lighthouse.parent,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed,  # noqa: PLW1509
    ) as process:
        assert process.stdout
        assert process.stderr
        assert process.stderr.readline().startswith("Watching ")
        assert json.loads(process.stdout.readline())["added"] == 5

        (lighthouse / "new.md").write_text("# Ravens\n\nRavens nest below the lamp.\n", encoding="utf-8")
        assert json.loads(process.stdout.readline())["added"] == 1

        lighthouse.rename(lighthouse.with_name("elsewhere"))
        assert process.stderr.readline().startswith("Not ingested: there are no pages in")
        lighthouse.with_name("elsewhere").rename(lighthouse)
        assert json.loads(process.stdout.readline())["unchanged"] == 6

        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, "Interrupted. Nothing is lost.\n")


def test_watch_and_dry_run_exclude_each_other(bythebook: Run, lighthouse: Path) -> None:
    done = bythebook("ingest", lighthouse, "--watch", "--dry-run")
    assert (done.returncode, "--dry-run ingests nothing" in done.stderr) == (2, True)
