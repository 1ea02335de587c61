"""Sites, read over HTTP: `python -m bench.sites [FOLDER]`.

FOLDER has the archives of two generated sites and of the sources of one of them. They are served on this machine,
ingested, and compared with their own HTML, which is taken apart by the standard library and not by our readers.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from bench.content_labels import NAVIGATION, facts, mark
from bench.metrics import Metric
from bench.processes import ROOT, bythebook, python
from bythebook.book import Book
from bythebook.chunking.splitter import ChunkSizes, split_page
from bythebook.settings import Settings
from bythebook.sources import BlockKind, ListedPage
from bythebook.sources.folder import Folder
from bythebook.sources.projects import Style
from bythebook.sources.website import CrawlLimits
from bythebook.sources.website.source import Website

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bythebook.chunking import Chunk
    from bythebook.sources import Page, PageSource

DATA = ROOT.parent / "shared" / "data" / "docs"
SITES = {"docusaurus": "site_docusaurus_physical_ai_textbook", "mkdocs": "site_mkdocs_material_docs"}
SOURCES, PUBLISHED = "physical_ai_textbook", "https://book.example.test"
PAGES = 500
AT_FULL_SPEED = CrawlLimits(private=True, delay=0.0)


@contextmanager
def shown(folder: Path, log: Path) -> Iterator[str]:
    """Serve the folder at a local URL."""
    with subprocess.Popen(
        python("-m", "bench.static_site", str(folder), str(log)), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as server:
        if server.stdout is None:
            raise AssertionError("its output is a pipe")
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}/"
        finally:
            server.terminate()


def file_of(root: Path, url: str) -> Path:
    path = urlsplit(url).path.strip("/")
    tried = (root / path, root / f"{path}.html", root / path / "index.html")
    return next(each for each in tried if each.is_file())


async def pages_of(source: PageSource) -> list[Page]:
    return [await source.read(entry) async for entry in source.listing() if isinstance(entry, ListedPage)]


async def read_site(url: str) -> list[Page]:
    with closing(Website(url, limits=AT_FULL_SPEED)) as site:
        return await pages_of(site)


async def chunks_of(pages: list[Page], work: Path) -> list[Chunk]:
    async with Book.open(Settings.load({"data_dir": work / "nothing"})) as book:
        return [
            chunk for page in pages for chunk in split_page(page, count=book.embedder.count_tokens, sizes=ChunkSizes())
        ]


def ingest(url: str, index: Path, *more: str, delay: float = 0.0) -> dict[str, Any]:
    """Run the complete command."""
    command = [*bythebook("ingest", url, "--data-dir", index, "--json", "--allow-private"), *more]
    environment = {"BYTHEBOOK_SITE_DELAY": str(delay)}
    started = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=_with(environment))
    if done.returncode not in (0, 3):
        raise SystemExit(done.stderr)
    report: dict[str, Any] = json.loads(done.stdout)
    return report | {"wall": time.perf_counter() - started}


def _with(more: dict[str, str]) -> dict[str, str]:
    return {**os.environ, **more}


def ingested(name: str, root: Path, work: Path) -> Iterator[Metric]:
    """Run the command, and read the coverage of the sitemap from `status`."""
    listed = len(re.findall(r"<loc>", (root / "sitemap.xml").read_text(encoding="utf-8")))
    index = work / f"index-{name}"
    with shown(root, work / f"{name}.log") as url:
        report = ingest(url, index)
    done = subprocess.run(
        bythebook("status", "--data-dir", index, "--json"), capture_output=True, text=True, check=True
    )
    (source,) = json.loads(done.stdout)["sources"]
    raw = {
        "in the sitemap": listed,
        "pages": source["pages"],
        "chunks": report["chunks"],
        "skipped": len(source["skipped"]),
    }
    yield Metric(f"{name}: pages of the sitemap in the book", source["pages"] / listed, unit="", at_least=1.0, raw=raw)


def faithful(name: str, root: Path, work: Path) -> Iterator[Metric]:
    """Compare anchors and code listings with the served HTML."""
    with shown(root, work / f"{name}.log") as url:
        pages = asyncio.run(read_site(url))
    chunks = asyncio.run(chunks_of(pages, work))
    html = {page.url: facts(file_of(root, page.url).read_text(encoding="utf-8")) for page in pages}
    anchored = [chunk for chunk in chunks if chunk.anchor]
    unreal = [chunk.anchor for chunk in anchored if chunk.anchor not in html[chunk.url][0]]
    raw: dict[str, Any] = {"chunks": len(chunks), "with an anchor": len(anchored)}
    yield Metric(f"{name}: anchors of chunks that no element has", len(unreal), unit="", at_most=0, raw=raw)
    wrong, count = 0, 0
    for page in pages:
        written, kept = Counter(map(_shape, html[page.url][1])), Counter(map(_shape, _listings(page)))
        written.pop("", None)
        count += sum(written.values())
        wrong += sum((written - kept).values()) + sum((kept - written).values())
    yield Metric(f"{name}: listings that differ from the HTML's", wrong, unit="", at_most=0, raw={"listings": count})


def _listings(page: Page) -> list[str]:
    fenced = [page.text[block.start : block.end] for block in page.blocks if block.kind is BlockKind.CODE]
    return [text.partition("\n")[2].rpartition("\n")[0] for text in fenced]


def _shape(listing: str) -> str:
    """Exact comparison, except for outer blank lines and invisible characters."""
    return re.sub("[\u00ad\u200b\u2060\ufeff]", "", listing.replace("\r", "")).strip("\n").rstrip()


def unsurrounded(name: str, root: Path, work: Path) -> Iterator[Metric]:
    """Every text of every page is marked as navigation or content, and the marks are looked for in the chunks."""
    marked = work / f"marked-{name}"
    marks: list[tuple[Path, list[str]]] = []
    for file in sorted(root.rglob("*")):
        copy = marked / file.relative_to(root)
        if file.is_dir():
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix == ".html":
            done = mark(file.read_text(encoding="utf-8"), name=f"{len(marks)}")
            copy.write_text(done.html, encoding="utf-8")
            marks.append((copy, done.content))
        else:
            copy.write_bytes(file.read_bytes())
    with shown(marked, work / f"{name}.log") as url:
        pages = asyncio.run(read_site(url))
    chunks = asyncio.run(chunks_of(pages, work))
    around = [chunk for chunk in chunks if NAVIGATION in chunk.embedded]
    yield Metric(
        f"{name}: chunks with any text of navigation or footer",
        len(around),
        unit="",
        at_most=0,
        raw={"chunks": len(chunks)},
    )
    text, read = " ".join(chunk.embedded for chunk in chunks), {file_of(marked, page.url) for page in pages}
    wanted = [word for file, words in marks if file in read for word in words]
    found = set(re.findall(r"zq\w+?qz", text))
    kept = sum(word in found for word in wanted)
    yield Metric(
        f"{name}: texts of the content that are in a chunk",
        kept / len(wanted),
        unit="",
        raw={"texts": len(wanted), "kept": kept},
    )


def as_its_sources(root: Path, sources: Path, work: Path) -> Iterator[Metric]:
    """Compare the book from its published pages with the book from its files."""
    folder = Folder(sources / "docs", site_url=f"{PUBLISHED}/docs", style=Style.DOCUSAURUS)
    with shown(root, work / "same.log") as url, closing(Website(url, limits=AT_FULL_SPEED, site_url=PUBLISHED)) as site:
        published = {page.url: page for page in asyncio.run(pages_of(site))}
    written = {page.url: page for page in asyncio.run(pages_of(folder))}
    both = sorted(published.keys() & written.keys())
    raw: dict[str, Any] = {"pages of both": len(both), "only published": len(published.keys() - written.keys())}
    raw |= {"only written": len(written.keys() - published.keys())}
    mine = asyncio.run(chunks_of([published[url] for url in both], work))
    its = asyncio.run(chunks_of([written[url] for url in both], work))
    one, other = Counter(map(_same, mine)), Counter(map(_same, its))
    share = 2 * sum((one & other).values()) / (sum(one.values()) + sum(other.values()))
    raw |= {"chunks of the site": len(mine), "chunks of the sources": len(its)}
    yield Metric("same chunks from the site and from its sources", share, unit="", raw=raw)
    exact = sum(published[url].text == written[url].text for url in both)
    yield Metric("pages whose text is the same to the character", exact / len(both), unit="", raw={"pages": exact})
    listings = [Counter(map(_shape, _listings(page))) for page in (published[url] for url in both)]
    theirs = [Counter(map(_shape, _listings(page))) for page in (written[url] for url in both)]
    # Content that a script renders in the browser is in the Markdown but not in the HTML.
    wrong = sum(sum((a - b).values()) for a, b in zip(listings, theirs, strict=True))
    raw = {"listings": sum(map(Counter.total, listings))}
    raw["drawn by a script, in the Markdown only"] = sum(map(Counter.total, theirs)) - raw["listings"]
    yield Metric("listings that are not in the Markdown as they are", wrong, unit="", at_most=0, raw=raw)


def _same(chunk: Chunk) -> tuple[str, str, str, str]:
    return (chunk.url, chunk.anchor, " > ".join(chunk.heading_hierarchy), chunk.text)


def quick(roots: list[Path], work: Path) -> Iterator[Metric]:
    """Pages per second without embedding: reading only, and fetching and reading."""
    from bythebook.sources.readers import html

    texts = [file.read_text(encoding="utf-8") for root in roots for file in root.rglob("*.html")]
    before = time.process_time()
    for text in texts:
        html.read(text)
    took = time.process_time() - before
    raw = {"pages": len(texts), "MB": sum(map(len, texts)) / 1e6, "s of CPU": took}
    yield Metric("pages read a second of CPU", len(texts) / took, unit="/s", raw=raw)
    count, took, used = 0, 0.0, time.process_time()
    for root in roots:
        with shown(root, work / "quick.log") as url, closing(Website(url, limits=AT_FULL_SPEED)) as site:
            before = time.perf_counter()
            count += len(asyncio.run(_listed(site)))
            took += time.perf_counter() - before
    raw = {"pages": count, "s": took, "pages a second of CPU": count / (time.process_time() - used)}
    yield Metric("pages fetched and read a second", count / took, unit="/s", raw=raw)


async def _listed(site: Website) -> list[ListedPage]:
    return [entry async for entry in site.listing() if isinstance(entry, ListedPage)]


def edited(work: Path, *, dated: bool) -> Iterator[Metric]:
    """Change one of many pages. With `dated` the sitemap has modification dates."""
    root, index, log = work / f"many-{dated}", work / f"many-{dated}-index", work / f"many-{dated}.log"
    _write_site(root)
    with shown(root, log) as url:
        _write_sitemap(root, url, dated=dated, changed=-1)
        first = ingest(url, index)
        page = root / "p250.html"
        page.write_text(
            page.read_text(encoding="utf-8").replace("</p>", " One sentence more.</p>", 1), encoding="utf-8"
        )
        _write_sitemap(root, url, dated=dated, changed=250)
        log.write_text("")
        report = ingest(url, index)
        requests = len(log.read_text().splitlines())
    how = "with lastmod" if dated else "with ETags only"
    raw = {
        "pages": first["pages"],
        "changed": report["changed"],
        "chunks embedded": report["embedded"],
        "s": report["wall"],
    }
    raw |= {"first ingest s": first["wall"]}
    yield Metric(f"requests for one edited page of {PAGES}, {how}", requests, unit="", raw=raw)


def _write_site(root: Path) -> None:
    root.mkdir()
    menu = "".join(f"<li><a href=/p{number}>Lantern {1000 + number}</a>" for number in range(PAGES))
    for number in range(PAGES):
        text = f"Lantern {1000 + number} burns for {number * 7 % 97} nights and is kept in room {number % 31}."
        (root / f"p{number}.html").write_text(
            f"<!doctype html><title>Lantern {1000 + number}</title><nav><ul>{menu}</ul></nav><main>"
            f"<h1 id=lantern>Lantern {1000 + number}</h1><p>{text}</p></main><footer>All lanterns</footer>",
            encoding="utf-8",
        )
    (root / "index.html").write_text("<main><h1>Lanterns</h1><p>All of them.</p></main>", encoding="utf-8")


def _write_sitemap(root: Path, url: str, *, dated: bool, changed: int) -> None:
    def entry(number: int) -> str:
        when = "2026-11-16T12:00:00Z" if number == changed else "2026-01-01T12:00:00Z"
        return f"<url><loc>{url}p{number}</loc>{f'<lastmod>{when}</lastmod>' if dated else ''}</url>"

    text = "<urlset>" + "".join(map(entry, range(PAGES))) + "</urlset>"
    (root / "sitemap.xml").write_text(text, encoding="utf-8")


def figures(data: Path, parts: list[str], work: Path) -> Iterator[Metric]:
    roots = {}
    for name in (*SITES.values(), SOURCES):
        roots[name] = work / name
        with tarfile.open(data / f"{name}.tar.gz") as packed:
            packed.extractall(roots[name], filter="data")
    for name, archive in SITES.items():
        if "ingest" in parts:
            yield from ingested(name, roots[archive], work)
        if "faithful" in parts:
            yield from faithful(name, roots[archive], work)
            yield from unsurrounded(name, roots[archive], work)
    if "sources" in parts:
        yield from as_its_sources(roots[SITES["docusaurus"]], roots[SOURCES], work)
    if "speed" in parts:
        yield from quick([roots[name] for name in SITES.values()], work)
    if "edited" in parts:
        for dated in (True, False):
            yield from edited(work, dated=dated)


PARTS = ("ingest", "faithful", "sources", "speed", "edited")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.sites", description=__doc__)
    parser.add_argument("data", nargs="?", type=Path, default=DATA, metavar="FOLDER")
    parser.add_argument("--only", action="append", choices=PARTS, help="measure only this; may be repeated")
    given = parser.parse_args()
    if not given.data.is_dir():
        raise SystemExit(f"there is no folder {given.data} with the archives of the sites; name yours")
    passed = True
    with tempfile.TemporaryDirectory(prefix="bythebook-sites-") as folder:
        for figure in figures(given.data, given.only or list(PARTS), Path(folder)):
            passed = passed and figure.passed
            print(figure, flush=True)
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
