"""Anchors: the ids that generators give to headings, to the character, so that a link lands on its section."""

from __future__ import annotations

import re
import unicodedata
from functools import partial
from typing import TYPE_CHECKING

from bythebook.sources.projects import USUAL_SLUGS, Slugs, Style

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Anchors:
    """Hands out the heading ids of one page, in the page's order.

    `explicit` are the ids the author wrote anywhere on the page: some generators keep clear of those from the start.
    """

    def __init__(self, style: Style, explicit: Iterable[str] = (), *, slugs: Slugs = USUAL_SLUGS) -> None:
        self._style = style
        self._slug, self._distinct = _RULES[style]
        if slugs != USUAL_SLUGS:
            self._slug = partial(configured_slug, slugs=slugs)
        self._taken: dict[str, int] = dict.fromkeys(explicit, 0) if style is Style.MKDOCS else {}

    def anchor(self, text: str, *, level: int, explicit: str = "") -> str:
        """The id of the next heading. Empty where the generator gives none."""
        if explicit:
            # Docusaurus takes an id as it is written and does not remember it.
            if self._style is not Style.DOCUSAURUS:
                self._taken.setdefault(explicit, 0)
            anchor = explicit
        else:
            anchor = self._distinct(self._slug(text), self._taken)
        # Docusaurus counts the page's own title among the ids but does not write it out.
        return "" if self._style is Style.DOCUSAURUS and level == 1 else anchor


def github_slug(text: str) -> str:
    """As github-slugger: Docusaurus, GitHub and most JavaScript generators."""
    return "".join(char for char in text.lower() if _kept_by_github(char)).replace(" ", "-")


def mkdocs_slug(text: str) -> str:
    """As the `toc` extension of Python-Markdown."""
    return configured_slug(text, slugs=USUAL_SLUGS)


def configured_slug(text: str, *, slugs: Slugs) -> str:
    """As the slugs a configuration may choose for Python-Markdown."""
    if slugs.rule == "pymdownx":
        text = unicodedata.normalize("NFC", text).strip()
        return re.sub(r"[^\w\- ]", "", text.lower() if slugs.lower else text).replace(" ", slugs.separator)
    if slugs.rule == "ascii":
        text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")
    words = re.sub(r"[^\w\s-]", "", text).strip().lower()
    return re.sub(rf"[{re.escape(slugs.separator)}\s]+", slugs.separator, words)


def docutils_slug(text: str) -> str:
    """As docutils' `make_id`: Sphinx. Empty for a heading without a Latin letter."""
    from docutils.nodes import fully_normalize_name, make_id

    return str(make_id(fully_normalize_name(text)))


def mdbook_slug(text: str) -> str:
    """As mdBook's `id_from_content`."""
    kept = (char if char.isalnum() or char in "_-" else "-" if char.isspace() else "" for char in text.strip().lower())
    return "".join(kept)


_REMOVED_BY_GITHUB = frozenset(["No", "Pe", "Pf", "Pi", "Ps", "Po", "Pd", "Cc", "Co", "Cf", "Cn", "Zs", "Zl", "Zp"])
_LETTERLIKE_SYMBOLS = ((0x24B6, 0x24E9), (0x1F130, 0x1F149), (0x1F150, 0x1F169), (0x1F170, 0x1F189))


def _kept_by_github(char: str) -> bool:
    if char.isascii():
        return char.isalnum() or char in "_- "
    category = unicodedata.category(char)
    if category.startswith("S"):
        return any(low <= ord(char) <= high for low, high in _LETTERLIKE_SYMBOLS)
    return category not in _REMOVED_BY_GITHUB


def _counted(slug: str, taken: dict[str, int]) -> str:
    """`intro`, `intro-1`, `intro-2`."""
    anchor = slug
    while anchor in taken:
        taken[slug] += 1
        anchor = f"{slug}-{taken[slug]}"
    taken[anchor] = 0
    return anchor


def _underscored(slug: str, taken: dict[str, int]) -> str:
    """`intro`, `intro_1`, `intro_2`; and `_1` for a heading that leaves nothing."""
    anchor = slug
    while not anchor or anchor in taken:
        match = re.fullmatch(r"(.*)_([0-9]+)", anchor)
        anchor = f"{match[1]}_{int(match[2]) + 1}" if match else f"{anchor}_1"
    taken[anchor] = 0
    return anchor


def _numbered(slug: str, taken: dict[str, int]) -> str:
    """`intro`, then `id1`, `id2`, whatever the heading."""
    anchor, number = slug, 0
    while not anchor or anchor in taken:
        number += 1
        anchor = f"id{number}"
    taken[anchor] = 0
    return anchor


_RULES: dict[Style, tuple[Callable[[str], str], Callable[[str, dict[str, int]], str]]] = {
    Style.DOCUSAURUS: (github_slug, _counted),
    Style.MKDOCS: (mkdocs_slug, _underscored),
    Style.SPHINX: (docutils_slug, _numbered),
    Style.MDBOOK: (mdbook_slug, _counted),
    Style.PLAIN: (github_slug, _counted),
}
