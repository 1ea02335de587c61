"""Heading ids exactly as each documentation generator creates them, so that links lead to the right section."""

import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import partial

from bythebook.sources.projects import DEFAULT_SLUGS, SlugOptions, Style


class AnchorGenerator:
    """Generates the heading ids of one page. Call `anchor` for each heading in order.

    `explicit` are the ids that the author wrote on the page. Some generators avoid them from the start.
    """

    def __init__(self, style: Style, explicit: Iterable[str] = (), *, slugs: SlugOptions = DEFAULT_SLUGS) -> None:
        self._style = style
        self._slug, self._distinct = _RULES[style]
        if slugs != DEFAULT_SLUGS:
            self._slug = partial(python_markdown_slug, slugs=slugs)
        self._taken: dict[str, int] = dict.fromkeys(explicit, 0) if style is Style.MKDOCS else {}

    def anchor(self, text: str, *, level: int, explicit: str = "") -> str:
        """The id of the next heading. Empty if the generator gives none."""
        if explicit:
            # Docusaurus does not check explicit ids for duplicates.
            if self._style is not Style.DOCUSAURUS:
                self._taken.setdefault(explicit, 0)
            anchor = explicit
        else:
            anchor = self._distinct(self._slug(text), self._taken)
        # Docusaurus reserves the id of the page title but does not render it.
        return "" if self._style is Style.DOCUSAURUS and level == 1 else anchor


def github_slug(text: str) -> str:
    """Like github-slugger, which Docusaurus, GitHub and most JavaScript generators use."""
    return "".join(char for char in text.lower() if _is_kept_by_github(char)).replace(" ", "-")


def mkdocs_slug(text: str) -> str:
    """Like the `toc` extension of Python-Markdown."""
    return python_markdown_slug(text, slugs=DEFAULT_SLUGS)


def python_markdown_slug(text: str, *, slugs: SlugOptions) -> str:
    """Like Python-Markdown with the slug function that the configuration selects."""
    if slugs.rule == "pymdownx":
        text = unicodedata.normalize("NFC", text).strip()
        return re.sub(r"[^\w\- ]", "", text.lower() if slugs.lower else text).replace(" ", slugs.separator)
    if slugs.rule == "ascii":
        text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")
    words = re.sub(r"[^\w\s-]", "", text).strip().lower()
    return re.sub(rf"[{re.escape(slugs.separator)}\s]+", slugs.separator, words)


def docutils_slug(text: str) -> str:
    """Like `make_id` of docutils, which Sphinx uses. Empty for a heading without a Latin letter."""
    from docutils.nodes import fully_normalize_name, make_id

    return str(make_id(fully_normalize_name(text)))


def mdbook_slug(text: str) -> str:
    """Like `id_from_content` of mdBook."""
    kept = (char if char.isalnum() or char in "_-" else "-" if char.isspace() else "" for char in text.strip().lower())
    return "".join(kept)


_REMOVED_BY_GITHUB = frozenset(["No", "Pe", "Pf", "Pi", "Ps", "Po", "Pd", "Cc", "Co", "Cf", "Cn", "Zs", "Zl", "Zp"])
_LETTERLIKE_SYMBOLS = ((0x24B6, 0x24E9), (0x1F130, 0x1F149), (0x1F150, 0x1F169), (0x1F170, 0x1F189))


def _is_kept_by_github(char: str) -> bool:
    if char.isascii():
        return char.isalnum() or char in "_- "
    category = unicodedata.category(char)
    if category.startswith("S"):
        return any(low <= ord(char) <= high for low, high in _LETTERLIKE_SYMBOLS)
    return category not in _REMOVED_BY_GITHUB


def _append_counter(slug: str, taken: dict[str, int]) -> str:
    """`intro`, `intro-1`, `intro-2`."""
    anchor = slug
    while anchor in taken:
        taken[slug] += 1
        anchor = f"{slug}-{taken[slug]}"
    taken[anchor] = 0
    return anchor


def _append_underscore_counter(slug: str, taken: dict[str, int]) -> str:
    """`intro`, `intro_1`, `intro_2`; and `_1` for an empty slug."""
    anchor = slug
    while not anchor or anchor in taken:
        match = re.fullmatch(r"(.*)_([0-9]+)", anchor)
        anchor = f"{match[1]}_{int(match[2]) + 1}" if match else f"{anchor}_1"
    taken[anchor] = 0
    return anchor


def _use_numbered_id(slug: str, taken: dict[str, int]) -> str:
    """`intro`, then `id1`, `id2` for duplicates and empty slugs."""
    anchor, number = slug, 0
    while not anchor or anchor in taken:
        number += 1
        anchor = f"id{number}"
    taken[anchor] = 0
    return anchor


_RULES: dict[Style, tuple[Callable[[str], str], Callable[[str, dict[str, int]], str]]] = {
    Style.DOCUSAURUS: (github_slug, _append_counter),
    Style.MKDOCS: (mkdocs_slug, _append_underscore_counter),
    Style.SPHINX: (docutils_slug, _use_numbered_id),
    Style.MDBOOK: (mdbook_slug, _append_counter),
    Style.PLAIN: (github_slug, _append_counter),
}
