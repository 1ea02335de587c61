"""Killing an ingest of a site, also during the crawl. Only at full size: 50 times."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from bythebook.embeddings.local import TASKS_PER_CORE
from bythebook.models.runtime import available_cores
from tests.support.index_contents import contents
from tests.support.ingest_kills import HERE, MOMENTS, Killing, show

KILLS = 50


@dataclass
class SiteKilling(Killing):
    """`IngestKiller` with the pages of a site."""

    url: str = ""

    def environment(self) -> dict[str, str]:
        return super().environment() | {"BYTHEBOOK_SITE_DELAY": "0.02"}

    def command(self) -> list[object]:
        log = self.folder / "embedded"
        return [sys.executable, HERE / "counted.py", log, "ingest", self.url, "--allow-private"]


class Shown(SimpleHTTPRequestHandler):
    """Serves a folder with an index page. All pages are sent, because dates have a resolution of a second."""

    def do_GET(self) -> None:
        del self.headers["If-Modified-Since"]
        super().do_GET()

    def log_message(self, *_arguments: object) -> None:
        """Requests are not logged."""


@contextmanager
def shown(folder: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Shown, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


async def test_a_killed_ingest_of_a_site_keeps_the_book_intact_and_is_resumed(
    model_folder: Path, tmp_path: Path, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    if not request.config.getoption("--full-size"):
        pytest.skip("what comes after the pages is the same as for a folder: --full-size kills fifty of them")
    (tmp_path / "pages").mkdir()
    with shown(tmp_path / "pages") as url:
        killing = SiteKilling(tmp_path, model_folder, random.Random(1), url=url)  # noqa: S311 - the same every time
        for _ in range(10):
            killing.page()
        killing.finish()
        with killing.being_read() as seen:
            killing.kill_so_often(KILLS)
            killing.finish()
        clean = SiteKilling(tmp_path / "clean", model_folder, killing.chance, url=url)
        clean.folder.mkdir()
        clean.finish()
    assert await contents(killing.index, killing.identity) == await contents(clean.index, killing.identity)
    with capsys.disabled():
        show(killing, seen)
    assert all(killing.moments[name] for name in MOMENTS)
    assert killing.embedded_twice <= TASKS_PER_CORE * available_cores() * KILLS
