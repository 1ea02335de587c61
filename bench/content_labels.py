"""Marks in the HTML of a generated site, set independently of the readers that are measured with them.

Every text of a page gets a unique word: one that says it belongs to the navigation around the page, or one that
says it is content. What a theme puts around its content is known from the theme; everything outside of `main` is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

NAVIGATION = "zqnavigationqz"

SURROUNDING = frozenset(
    [
        *(
            "theme-doc-toc-mobile",
            "theme-doc-toc-desktop",
            "theme-doc-breadcrumbs",
            "pagination-nav",
            "theme-doc-footer",
        ),
        *("theme-layout-navbar", "theme-doc-sidebar-container", "theme-doc-version-banner", "theme-edit-this-page"),
        *(
            "md-header",
            "md-sidebar",
            "md-footer",
            "md-nav",
            "md-content__button",
            "md-source-file",
            "md-skip",
            "md-tabs",
        ),
        *("md-path", "md-feedback", "md-top", "md-search", "headerlink", "hash-link"),
    ]
)
_SURROUNDING_TAGS = frozenset(["nav", "footer", "button"])
_NOT_SHOWN = frozenset(["script", "style", "title", "template", "noscript", "svg"])
_ALWAYS_CLOSED = frozenset(
    [
        *("nav", "footer", "button", "main", "article", "aside", "header", "div", "section", "span", "a", "form"),
        *("pre", "code", "table", "ul", "ol", "svg", "script", "style", "title", "template", "noscript", "label"),
    ]
)


@dataclass
class Marked:
    """A page with its marks, and the marks of its content."""

    html: str
    content: list[str] = field(default_factory=list)


class _Reader(HTMLParser):
    """Knows what is open; only elements that are always closed are counted."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.open: list[tuple[str, frozenset[str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _ALWAYS_CLOSED:
            self.open.append((tag, frozenset((dict(attrs).get("class") or "").split())))

    def handle_endtag(self, tag: str) -> None:
        if any(name == tag for name, _ in self.open):
            while self.open.pop()[0] != tag:
                pass

    def is_in(self, tags: frozenset[str]) -> bool:
        return any(name in tags for name, _ in self.open)

    @property
    def is_navigation(self) -> bool:
        around = any(classes & SURROUNDING for _, classes in self.open)
        return around or self.is_in(_SURROUNDING_TAGS) or not self.is_in(frozenset(["main"]))


class _Marker(_Reader):
    def __init__(self, html: str) -> None:
        super().__init__()
        self._lines = [0]
        for line in html.split("\n"):
            self._lines.append(self._lines[-1] + len(line) + 1)
        self.found: list[tuple[int, bool]] = []
        self.feed(html)

    def handle_data(self, data: str) -> None:
        if self.is_in(_NOT_SHOWN) or not any(char.isalnum() for char in data):
            return
        line, column = self.getpos()
        end = self._lines[line - 1] + column + len(data.rstrip())
        self.found.append((end, self.is_navigation))


def mark(html: str, *, name: str) -> Marked:
    """The page with a mark after every text. `name` makes the marks of its content unique."""
    result = Marked(html)
    pieces, last = [], 0
    for number, (place, navigation) in enumerate(_Marker(html).found):
        word = NAVIGATION if navigation else f"zq{name}x{number}qz"
        pieces += [html[last:place], " ", word]
        last = place
        if not navigation:
            result.content.append(word)
    result.html = "".join([*pieces, html[last:]])
    return result


class _Facts(_Reader):
    """The ids of a page, and the text of its listings, line by line."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.convert_charrefs = True
        self.ids: set[str] = set()
        self.listings: list[str] = []
        self._listing: list[str] | None = None
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        super().handle_starttag(tag, attrs)
        values = dict(attrs)
        self.ids |= {values["id"]} - {None} if "id" in values else set()  # type: ignore[arg-type]
        numbers = any("linenodiv" in classes for _, classes in self.open)
        if tag == "pre" and self.is_in(frozenset(["main"])) and not numbers:
            self._listing = []
        elif tag == "br" and self._listing is not None:
            self._listing.append("\n")

    def handle_endtag(self, tag: str) -> None:
        super().handle_endtag(tag)
        if tag == "pre" and self._listing is not None:
            self.listings.append("".join(self._listing))
            self._listing = None

    def handle_data(self, data: str) -> None:
        if self._listing is not None:
            self._listing.append(data)


def facts(html: str) -> tuple[set[str], list[str]]:
    """The ids a page has, and the listings inside its content."""
    found = _Facts(html)
    return found.ids, found.listings
