"""Generated sites for browser tests: real ones where they are available, and small imitations.

The imitations were written for these tests. They have what may disturb a widget: styles for every element, a search
with keyboard shortcuts, themes, and links that change the page without loading it.
"""

from __future__ import annotations

import tarfile
from dataclasses import dataclass
from pathlib import Path

DOCUSAURUS_STYLE = """
*, *::before, *::after { box-sizing: content-box !important; }
html { font-size: 62.5%; } body { margin: 0; line-height: 3; color: #1c1e21; text-transform: lowercase; }
html[data-theme=dark] { background: #1b1b1d; color: #e3e3e3; }
button { all: unset; } a { color: #2e8555 !important; text-decoration: none !important; } svg { display: none; }
::target-text { background: #f0f; }
div, section, article { animation: none !important; max-width: 90rem; } textarea, input { display: none; }
"""
MATERIAL_STYLE = """
* { -webkit-tap-highlight-color: transparent; letter-spacing: .3em; } html { font-size: 125%; height: 100%; }
body { display: flex; flex-direction: column; min-height: 100%; } body > * { flex-shrink: 0; } ol li { display: none; }
[dir=ltr] button, [dir=ltr] input { background: none; border: 0; font-size: 0; } by-the-book { transform: scale(2); }
body[data-md-color-scheme=slate] { background: #1e2129; color: #e2e4e9; } article { counter-reset: x; }
"""
# The search shortcut as in Material: a listener on the window that ignores other handlers.
MATERIAL_KEYS = """<script>addEventListener('keydown', (event) => {
  if (event.key === '/' && !/input|textarea/i.test(document.activeElement.localName)) {
    document.querySelector('[name=query]').focus(); event.preventDefault();
  }
});</script>"""


def _small_docusaurus(title: str, text: str) -> str:
    return (
        '<!doctype html><html lang="en" dir="ltr" class="docs-wrapper" data-theme="light"><head>'
        f'<title>{title}</title><style>{DOCUSAURUS_STYLE}</style></head><body><div id="__docusaurus">'
        '<nav class="navbar">Handbook</nav><main><article><div class="theme-doc-markdown markdown">'
        f"<h1>{title}</h1>{text}</div></article></main></div></body></html>"
    )


def _small_material(title: str, text: str) -> str:
    return (
        f'<!doctype html><html lang="en" class="no-js"><head><title>{title}</title><style>{MATERIAL_STYLE}</style>'
        '</head><body dir="ltr" data-md-color-scheme="default"><header data-md-component="header">Handbook'
        '<div class="md-search" data-md-component="search"><label>Search <input name="query"></label></div></header>'
        '<div class="md-container" data-md-component="container"><main data-md-component="main"><article>'
        f"<h1>{title}</h1>{text}</article></main></div>{MATERIAL_KEYS}</body></html>"
    )


_FILLER = "<p>The gallery is swept after every storm, and the rail is looked at for rust.</p>" * 30
SMALL = {
    "docusaurus/lens": ("The lens", "<p>The lens is polished with rouge every spring by two keepers.</p>"),
    "docusaurus/boats": ("The boats", "<p>Two boats hang in the davits, and both are tarred in autumn.</p>"),
    "material/clock": ("The clockwork", "<p>The clockwork that turns the light is wound by hand every four hours.</p>"),
    "material/stores": ("The stores", "<p>Flour and lamp oil are counted on the first day of each month.</p>"),
}


@dataclass(frozen=True, slots=True)
class Generated:
    """One site: the first page, a question for it, and the target of a link that does not reload the page."""

    first: str
    question: str
    says: str
    then: str
    """Another page of the site."""
    slash_is_ours: bool
    swap: str
    """What the generator's own script does when a link is followed: the next page takes the place of this one."""


# React takes over the root, and what the head says about the page.
_DOCUSAURUS_SWAP = """async (address) => {
  const next = new DOMParser().parseFromString(await (await fetch(address)).text(), 'text/html');
  history.pushState({}, '', address);
  document.title = next.title;
  for (const node of document.querySelectorAll('head [data-rh]')) node.remove();
  document.head.append(...next.querySelectorAll('head meta[data-rh]'));
  document.querySelector('#__docusaurus').replaceChildren(...next.querySelector('#__docusaurus').childNodes);
  document.documentElement.className = next.documentElement.className;
  document.documentElement.dataset.theme = 'dark';
  scrollTo(0, 0);
}"""
# Every component is replaced by the one of the same name, and scripts of the container run again.
_MATERIAL_SWAP = """async (address) => {
  const next = new DOMParser().parseFromString(await (await fetch(address)).text(), 'text/html');
  history.pushState({}, '', address);
  document.title = next.title;
  for (const name of ['announce', 'container', 'header-topic', 'outdated', 'logo', 'skip']) {
    const [old, fresh] = [document, next].map((page) => page.querySelector(`[data-md-component=${name}]`));
    if (old && fresh) old.replaceWith(fresh);
  }
  for (const old of document.querySelectorAll('script[src*="widget.js"]')) {
    const script = document.createElement('script');
    for (const { name, value } of old.attributes) script.setAttribute(name, value);
    old.replaceWith(script);
    await new Promise((resolve) => { script.onload = script.onerror = resolve; });
  }
  document.body.dataset.mdColorScheme = 'slate';
  scrollTo(0, 0);
}"""

SITES = {
    "small docusaurus": Generated(
        "small/docusaurus/lens.html", "How often is the lens polished?", "polished with rouge",
        "small/docusaurus/boats.html", True, _DOCUSAURUS_SWAP,
    ),
    "small material": Generated(
        "small/material/clock.html", "How often is the clockwork wound?", "wound by hand every four hours",
        "small/material/stores.html", False, _MATERIAL_SWAP,
    ),
    "docusaurus": Generated(
        "real/docusaurus/docs/book/control-systems.html", "What is the Zero Moment Point?", "Zero Moment Point is a",
        "real/docusaurus/docs/book/introduction.html", True, _DOCUSAURUS_SWAP,
    ),
    "material": Generated(
        "real/material/setup/setting-up-navigation/index.html",
        "What happens to clicks on internal links when instant loading is enabled?", "intercepted and dispatched",
        "real/material/setup/setting-up-tags/index.html", False, _MATERIAL_SWAP,
    ),
}  # fmt: skip


def write_small(folder: Path) -> None:
    """Write the imitations. The answer is far down the page."""
    for name, (title, text) in SMALL.items():
        made = _small_docusaurus if name.startswith("docusaurus") else _small_material
        path = folder / "small" / f"{name}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(made(title, f"{_FILLER}<h2 id='more'>More</h2>{text}{_FILLER}"), encoding="utf-8")


def unpack_real(folder: Path, collections: Path) -> None:
    """Extract the pages of real sites that the tests use."""
    for generator, archive in (("docusaurus", "docusaurus_physical_ai_textbook"), ("material", "mkdocs_material_docs")):
        with tarfile.open(collections / "docs" / f"site_{archive}.tar.gz") as packed:
            for site in (SITES[generator].first, SITES[generator].then):
                found = packed.extractfile(f"./{Path(site).relative_to(f'real/{generator}')}")
                assert found is not None, site
                (folder / site).parent.mkdir(parents=True, exist_ok=True)
                (folder / site).write_bytes(found.read())
