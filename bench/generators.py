"""`python -m bench.generators PROJECT SITE`: does the site have every address and every anchor we compute?

PROJECT is the folder of a Docusaurus, MkDocs or Sphinx project, or a .tar.gz of its documents; SITE is what the
generator has made of it, as a folder or a .tar.gz. Documents without a configuration get one for Docusaurus.
"""

from __future__ import annotations

import argparse
import asyncio
import html
import json
import re
import sys
import tarfile
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bythebook.sources import ExcludedPage, ListedPage, SkippedPage, Unreadable
from bythebook.sources.projects import NonContent, ProjectOptions, find_configuration
from bythebook.sources.projects.project import Project

SITE = "https://book.example.test"
_ID = re.compile(r"\s(?:id|name)=(?:\"([^\"]*)\"|'([^']*)'|([^\s>]+))")
_LOCATION = re.compile(r"<loc>([^<]*)</loc>")
_CONFIGURATION = """module.exports = {
  url: '%s', baseUrl: '/', trailingSlash: false, presets: [['classic', {blog: false}]],
};
"""


@dataclass
class Found:
    """The computed URLs and anchors, and those that the site has."""

    pages: int = 0
    anchors: int = 0
    in_sitemap: int = 0
    not_in_sitemap: list[str] = field(default_factory=list)
    missing_pages: list[str] = field(default_factory=list)
    missing_anchors: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    left_out: int = 0
    unpublished: list[str] = field(default_factory=list)
    """Pages of the site without a document."""


def main() -> None:
    given = _arguments()
    with tempfile.TemporaryDirectory(prefix="bythebook-bench-") as folder:
        project = _unpacked(given.project, Path(folder) / "project")
        site = _unpacked(given.site, Path(folder) / "site")
        if find_configuration(project) is None:
            (project / "docusaurus.config.js").write_text(_CONFIGURATION % SITE, encoding="utf-8")
        wish = ProjectOptions(
            frozenset(NonContent) if given.all else frozenset(), given.version, given.locale, given.builder
        )
        found = asyncio.run(_compared(Project(project, site_url=given.url, options=wish), site, given.url))
    _show(found, as_json=given.json)
    sys.exit(1 if found.missing_pages or found.missing_anchors else 0)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.generators", description=__doc__)
    parser.add_argument("project", type=Path)
    parser.add_argument("site", type=Path)
    parser.add_argument("--url", default=SITE, help="where the site would be published")
    parser.add_argument("--version", default="")
    parser.add_argument("--locale", default="")
    parser.add_argument("--builder", default="auto", choices=("auto", "html", "dirhtml"))
    parser.add_argument("--all", action="store_true", help="also what is besides the book")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def _unpacked(path: Path, folder: Path) -> Path:
    if path.is_dir():
        return path
    with tarfile.open(path) as archive:
        archive.extractall(folder, filter="data")
    return folder


async def _compared(project: Project, site: Path, url: str) -> Found:
    found = Found()
    listed: list[ListedPage] = []
    async for entry in project.listing():
        if isinstance(entry, ListedPage):
            listed.append(entry)
        elif isinstance(entry, SkippedPage):
            found.skipped.append(f"{entry.path}: {entry.reason}")
        elif isinstance(entry, ExcludedPage):
            found.left_out += 1
    base = urlsplit(url).path.rstrip("/")
    files: set[Path] = set()
    sitemap = _sitemap(site)
    for entry in listed:
        if not entry.url.startswith(url):
            continue  # A file of the repository that is not published.
        found.pages += 1
        if sitemap:
            found.in_sitemap += 1
            found.not_in_sitemap += [entry.url] if entry.url not in sitemap else []
        file = _file(site, unquote(urlsplit(entry.url).path).removeprefix(base))
        if file is None:
            found.missing_pages.append(entry.url)
            continue
        files.add(file)
        await _compare_anchors(project, entry, file, found)
    found.unpublished = _others(site, files)
    return found


def _others(site: Path, files: set[Path]) -> list[str]:
    every = {file for file in site.rglob("*.html") if file.name != "404.html"}
    return sorted(str(file.relative_to(site)) for file in every - files)


async def _compare_anchors(project: Project, entry: ListedPage, file: Path, found: Found) -> None:
    try:
        page = await project.read(entry)
    except Unreadable as error:
        found.skipped.append(f"{entry.path}: {error}")
        return
    ids = _ids(file)
    anchors = [block.anchor for block in page.blocks if block.anchor]
    found.anchors += len(anchors)
    found.missing_anchors += [f"{entry.url}#{anchor}" for anchor in anchors if anchor not in ids]


def _ids(file: Path) -> set[str]:
    source = file.read_text(encoding="utf-8", errors="replace")
    return {html.unescape("".join(match)) for match in _ID.findall(source)}


def _sitemap(site: Path) -> set[str]:
    texts = [file.read_text(encoding="utf-8") for file in site.rglob("sitemap.xml")]
    return {html.unescape(location) for text in texts for location in _LOCATION.findall(text)}


def _file(site: Path, path: str) -> Path | None:
    """The file that a static web server would send for a path."""
    here = site / path.strip("/")
    choices = (here, here.with_name(here.name + ".html"), here / "index.html")
    return next((file for file in choices[2 if path.endswith("/") else 0 :] if file.is_file()), None)


def _show(found: Found, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(vars(found), indent=2))
        return
    for name, total, missing in (
        ("addresses", found.pages, found.missing_pages),
        ("sitemap", found.in_sitemap, found.not_in_sitemap),
        ("anchors", found.anchors, found.missing_anchors),
    ):
        if name == "sitemap" and not total:
            continue
        share = 1 - len(missing) / total if total else 1.0
        print(f"{name:<10} {total - len(missing)} of {total} are in the site ({share:.2%})")
        for each in missing[:20]:
            print(f"           missing {each}")
    print(f"left out   {found.left_out}; skipped {len(found.skipped)}; pages of the site without a document:")
    for each in found.unpublished[:20]:
        print(f"           {each}")
    for each in found.skipped[:20]:
        print(f"           skipped {each}")


if __name__ == "__main__":
    main()
