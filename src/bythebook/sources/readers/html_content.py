"""What counts in a tree of HTML: which part of it is the content, and what in that is only furniture.

Density: where the words of a page are, if it does not mark its content in any way we know.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode


BLOCKS = frozenset(
    [
        *("address", "article", "aside", "blockquote", "body", "center", "dd", "details", "dialog", "div", "dl", "dt"),
        *(
            "fieldset",
            "figcaption",
            "figure",
            "form",
            "header",
            "hgroup",
            "hr",
            "label",
            "legend",
            "main",
            "p",
            "section",
        ),
        *("summary", "caption", "tbody", "thead", "tfoot", "tr", "td", "th", "html"),
    ]
)
_FURNITURE = frozenset(
    [
        *(
            "script",
            "style",
            "template",
            "noscript",
            "iframe",
            "svg",
            "canvas",
            "object",
            "embed",
            "head",
            "nav",
            "footer",
        ),
        *(
            "button",
            "select",
            "input",
            "textarea",
            "form",
            "dialog",
            "audio",
            "video",
            "map",
            "math",
            "title",
            "link",
            "meta",
        ),
    ]
)
_FURNITURE_CLASSES = frozenset(
    [
        *("headerlink", "hash-link", "header-anchor", "anchor-link", "anchorjs-link", "heading-anchor", "anchor-icon"),
        *("footnote-backref", "footnote-ref", "footnote-reference", "fn-backref", "linenos", "lineno", "linenodiv"),
        *("line-numbers-rows", "line-numbers-wrapper", "copy-button", "copybtn", "clipboard-copy"),
        *("katex-mathml", "sr-only", "visually-hidden", "screen-reader-text", "d-print-none", "md-content__button"),
        *("md-source-file", "md-feedback", "md-sidebar", "md-tags", "md-banner", "md-consent", "md-skip", "md-top"),
        *("sphinxsidebar", "related", "viewcode-link", "toctree-wrapper", "sphinx-toctree", "breadcrumbs-aside"),
        *(
            "wy-nav-side",
            "wy-nav-top",
            "wy-breadcrumbs",
            "rst-versions",
            "rst-footer-buttons",
            "rst-breadcrumbs-buttons",
        ),
        *("bd-header", "bd-header-article", "bd-sidebar", "bd-sidebar-primary", "bd-sidebar-secondary", "bd-footer"),
        *("bd-footer-content", "bd-footer-article", "header-article", "header-article-items", "announcement"),
        *("related-pages", "bottom-of-page", "back-to-top", "back-to-top-wrapper", "edit-this-page", "view-this-page"),
        *("content-icon-container", "toc-drawer", "toc-sticky", "sidebar-drawer", "theme-toggle-container"),
        *("theme-doc-toc-mobile", "theme-doc-toc-desktop", "theme-doc-version-banner", "theme-doc-version-badge"),
        *("theme-doc-breadcrumbs", "theme-doc-footer", "theme-edit-this-page", "theme-announcement-bar"),
        *("pagination-nav", "table-of-contents", "skip-link", "skip-to-content", "nav-wrapper", "nav-wide-wrapper"),
        *("headerbtn", "prev-next-area", "prev-next-footer", "edit-link", "last-updated", "VPDocFooter", "VPLocalNav"),
        *("prev-next", "pager", "breadcrumb", "breadcrumbs", "cookie-banner", "cookie-notice", "cookie-consent"),
        *("share-buttons", "social-share", "sharedaddy", "post-navigation", "comments-area", "comment-respond"),
    ]
)
_FURNITURE_ROLES = frozenset(["navigation", "banner", "contentinfo", "search", "dialog", "alertdialog", "tooltip"])
_ASIDE_OF_THE_TEXT = re.compile(r"admonition|callout|alert|note|tip|warning|caution|danger|topic|aside")
_INVISIBLE = re.compile(r"display:none|visibility:hidden|font-size:0(?:[a-z%]*)(?=;|!|$)")
_SHOWN_HIDDEN_ROLES = frozenset(["tabpanel"])
_CONTENT = (
    *(".theme-doc-markdown", "article.md-content__inner", "article.bd-article", "#furo-main-content", "div.vp-doc"),
    *("[itemprop=articleBody]", "div.body", "article", "main", "[role=main]", ".md-content", "div.document"),
)
_BEFORE_THE_SITE = {"docusaurus": " | ", "mkdocs": " - "}
_A_SCREENFUL = 1_000
_PANELS = "[role=tabpanel], .tabbed-block, .vp-code-group > .blocks > div"
_LANGUAGE = re.compile(r"(?:^|\s)(?:(?:language|lang|highlight)-(?:source-)?|brush:\s*)([\w+#.-]+)")
_BEYOND_CODE = frozenset(["article", "body", "html", "li", "main", "section", "dd"])
_NO_LANGUAGE = frozenset(["default", "none", "text", "plaintext", "undefined", "source"])


def content(tree: LexborHTMLParser) -> LexborNode | None:
    """The node that holds what the page is about, as its generator marks it; None where nothing is marked."""
    for selector in _CONTENT:
        found = tree.css(selector)
        if len(found) == 1 and found[0].text(strip=True) and not _is_a_teaser(found[0], tree):
            return found[0]
    return None


def _is_a_teaser(article: LexborNode, tree: LexborHTMLParser) -> bool:
    """Whether an article is only a small part of what the page is about."""
    main = tree.css_first("main") if article.tag == "article" else None
    words = len(main.text(strip=True)) if main is not None else 0
    return words > _A_SCREENFUL and 4 * len(article.text(strip=True)) < words


def document_title(tree: LexborHTMLParser) -> str:
    node = tree.css_first("title")
    return " ".join(node.text().split()) if node is not None else ""


def own_title(tree: LexborHTMLParser) -> str:
    """What the author called the page, where its generator is known to write that before the name of the site.

    It need not be the top heading, and is what the same page is called when it is read from its source.
    """
    generator = tree.css_first("meta[name=generator]")
    name = ((generator.attributes.get("content") or "") if generator is not None else "").lower()
    for known, mark in _BEFORE_THE_SITE.items():
        if name.startswith(known):
            return document_title(tree).rpartition(mark)[0]
    return ""


def is_furniture(node: LexborNode) -> bool:
    """Whether a reader of the text does not see this, or sees it on every page."""
    tag, attributes = node.tag or "", node.attributes
    if tag in _FURNITURE:
        return True
    if not attributes:
        return tag == "aside"
    classes = set((attributes.get("class") or "").split())
    if classes & _FURNITURE_CLASSES or "data-footnote-ref" in attributes or attributes.get("role") == "doc-noteref":
        return True
    if attributes.get("role") in _FURNITURE_ROLES or "data-copybutton" in attributes:
        return True
    if tag == "aside":
        return not _ASIDE_OF_THE_TEXT.search(attributes.get("class") or "") and not _is_sidebar_of_the_text(node)
    return _is_hidden(attributes) or (tag == "a" and _is_mark(node, attributes))


def _is_sidebar_of_the_text(aside: LexborNode) -> bool:
    """Sphinx has sidebars that are written into the text; they carry a title of their own."""
    first = aside.css_first("p, div")
    return first is not None and "sidebar-title" in (first.attributes.get("class") or "").split()


def _is_hidden(attributes: dict[str, str | None]) -> bool:
    if "hidden" in attributes:
        # The tabs behind the open one are hidden until their label is clicked; they are still text of the page.
        return attributes.get("role") not in _SHOWN_HIDDEN_ROLES
    style = (attributes.get("style") or "").replace(" ", "").lower()
    return _INVISIBLE.search(style) is not None


def _is_mark(node: LexborNode, attributes: dict[str, str | None]) -> bool:
    """A link to where it stands: the sign beside a heading."""
    if not (attributes.get("href") or "").startswith("#"):
        return False
    return attributes.get("aria-hidden") == "true" or node.text(strip=True).strip("\u200b") in {
        "",
        "¶",
        "#",
        "§",
        "🔗",
        "↩",
    }


def language_of(pre: LexborNode) -> str:
    """The language a generator noted on the code, or around it."""
    node: LexborNode | None = pre.css_first("code") or pre
    while node is not None and node.tag not in _BEYOND_CODE:
        match = _LANGUAGE.search(node.attributes.get("class") or "")
        if match and match[1] not in _NO_LANGUAGE:
            return match[1]
        node = node.parent
    return ""


def anchor_of(heading: LexborNode, firsts: dict[int, int]) -> str:
    """The id that leads to a heading: its own, one inside it, or that of the section it opens.

    `firsts` remembers the first heading of each section, so that a long one is searched once.
    """
    if heading.attributes.get("id"):
        return heading.attributes["id"] or ""
    inner = heading.css_first("a[id], span[id], a[name]")
    if inner is not None:
        return inner.attributes.get("id") or inner.attributes.get("name") or ""
    section = _section_of(heading)
    if section is None:
        return ""
    if section.mem_id not in firsts:
        first = section.css_first("h1, h2, h3, h4, h5, h6")
        firsts[section.mem_id] = first.mem_id if first is not None else 0
    return (section.attributes.get("id") or "") if firsts[section.mem_id] == heading.mem_id else ""


def _section_of(heading: LexborNode) -> LexborNode | None:
    parent = heading.parent
    if parent is not None and parent.tag == "header":
        parent = parent.parent
    if parent is None or not (parent.tag == "section" or "section" in (parent.attributes.get("class") or "").split()):
        return None
    return parent


def labelled_panels(tabs: LexborNode) -> list[tuple[LexborNode, str]]:
    """The panels that belong to a row of tabs, each with the words on its tab."""
    labels = [" ".join(node.text().split()) for node in tabs.css("[role=tab], label")]
    around = tabs.parent
    panels: list[LexborNode] = []
    for _ in range(3):
        if around is None or panels:
            break
        panels = [node for node in around.css(_PANELS) if not _is_nested(node, around)]
        around = around.parent
    return list(zip(panels, labels, strict=False)) if len(panels) == len(labels) else []


def _is_nested(panel: LexborNode, around: LexborNode) -> bool:
    """Whether a panel is inside another one of the same set."""
    node = panel.parent
    while node is not None and node.mem_id != around.mem_id:
        if node.attributes.get("role") == "tabpanel" or "tabbed-block" in (node.attributes.get("class") or "").split():
            return True
        node = node.parent
    return False


def is_row_of_tabs(node: LexborNode) -> bool:
    classes = (node.attributes.get("class") or "").split()
    return node.attributes.get("role") == "tablist" or "tabbed-labels" in classes or _is_code_group(node, classes)


def _is_code_group(node: LexborNode, classes: list[str]) -> bool:
    around = node.parent
    return (
        "tabs" in classes and around is not None and "vp-code-group" in (around.attributes.get("class") or "").split()
    )


_SHARE = 0.8
"""The part of the running text that an element must hold to be taken for its parent."""
_FEWEST_WORDS = 20
_NAMES = re.compile(
    r"(?:^|[-_\s])(?:header|top|logo|nav|navbar|navigation|menu|sidebar|side-?bar|footer|foot|breadcrumbs?|cookies?|consent|gdpr|banner"
    r"|masthead|toc|pagination|pager|share|sharing|social|comments?|related|advert\w*|ads?|promo|newsletter|subscribe)"
    r"(?:$|[-_\s])",
    re.I,
)
"""How people who write their own pages call what surrounds the text."""
_CONTAINERS = frozenset(["div", "section", "td", "center", "article", "table", "tbody", "tr"])
_WEIGHTLESS = frozenset(["a", "nav", "footer", "script", "style", "form", "select", "button", "noscript", "template"])
_SURROUNDINGS = frozenset(["div", "section", "ul", "ol", "aside", "td", "p", "table", "header", "center"])


def densest(body: LexborNode) -> LexborNode:
    """The innermost element that holds most of the running text: text that is not a link and not in a menu."""
    weights: dict[int, int] = {}
    _weigh(body, weights)
    here = body
    while True:
        heaviest = max(
            (child for child in here.iter(include_text=False) if child.tag in _CONTAINERS),
            key=lambda child: weights.get(child.mem_id, 0),
            default=None,
        )
        if heaviest is None or weights.get(heaviest.mem_id, 0) < max(
            _FEWEST_WORDS, _SHARE * weights.get(here.mem_id, 0)
        ):
            return here
        here = heaviest


def is_surrounding(node: LexborNode) -> bool:
    """Whether an element is named like a menu or a footer, or consists of little but links."""
    if node.tag not in _SURROUNDINGS:
        return False
    if _is_named_so(node):
        return True
    return node.tag in ("ul", "ol", "div", "p", "td") and _is_menu(node)


def _is_menu(node: LexborNode) -> bool:
    links = node.css("a[href]")
    if len(links) < 4 or node.css_first("pre, h1, h2, h3") is not None:
        return False
    linked = sum(len(link.text(strip=True)) for link in links)
    return linked > 0.8 * len(node.text(strip=True))


def _weigh(root: LexborNode, weights: dict[int, int]) -> None:
    """Count the words below each element, but for those of links and of what is named like a menu."""
    order: list[LexborNode] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        order.append(node)
        for child in node.iter(include_text=True):
            if child.is_text_node:
                words = len((child.text_content or "").split())
                weights[node.mem_id] = weights.get(node.mem_id, 0) + words
            elif child.is_element_node and child.tag not in _WEIGHTLESS and not _is_named_so(child):
                waiting.append(child)
    for node in reversed(order):
        if node.mem_id != root.mem_id and node.parent is not None:
            weights[node.parent.mem_id] = weights.get(node.parent.mem_id, 0) + weights.get(node.mem_id, 0)


def _is_named_so(node: LexborNode) -> bool:
    if node.tag not in _SURROUNDINGS:
        return False
    named = f"{node.attributes.get('id') or ''} {node.attributes.get('class') or ''}"
    return bool(_NAMES.search(named)) and node.css_first("h1, pre") is None
