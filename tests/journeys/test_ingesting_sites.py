"""`bythebook ingest https://...` on the command line."""

from __future__ import annotations

import asyncio
import json

from tests.conftest import Run
from tests.support.site_server import SiteServer, page, serving


async def test_a_site_is_ingested_with_its_coverage(bythebook: Run) -> None:
    shown = {"/": page("Home"), "/lamp": page("Lamps", "A lamp glows at night."), "/oil": page("Oil", "Oil burns.")}
    async with serving(SiteServer(dict(shown))) as server:
        server.sitemap("/", "/lamp", "/oil", "/lost")
        url = f"{server.url}/"
        refused = await asyncio.to_thread(bythebook, "ingest", url)
        assert (refused.returncode, server.connections) == (2, 0)
        assert "add --allow-private if the site is yours" in refused.stderr

        done = await asyncio.to_thread(bythebook, "ingest", url, "--allow-private", "--json")
        assert (done.returncode, json.loads(done.stdout)["pages"]) == (3, 3)

    status = await asyncio.to_thread(bythebook, "status")
    assert f"{url}: 3 pages, coverage 75% of the 4 listed" in status.stdout
    assert f"skipped {url}lost: it is not there (HTTP 404)" in status.stdout
    (source,) = json.loads((await asyncio.to_thread(bythebook, "status", "--json")).stdout)["sources"]
    assert (source["name"], source["listed"], len(source["skipped"])) == (url, 4, 1)
