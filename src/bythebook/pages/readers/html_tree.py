"""What counts in a tree of HTML: which part of it is the content, and what in that is only furniture."""

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
        *("headerlink", "hash-link", "header-anchor", "anchor-link", "anchorjs-link", "heading-anchor"),
        *("footnote-backref", "footnote-ref", "footnote-reference", "fn-backref", "linenos", "lineno", "linenodiv"),
        *("katex-mathml", "sr-only", "visually-hidden", "md-content__button", "md-source-file", "md-feedback"),
        *("sphinxsidebar", "related", "viewcode-link", "theme-doc-toc-mobile", "theme-doc-toc-desktop", "md-sidebar"),
        *("md-skip", "skip-link", "nav-wrapper", "nav-wide-wrapper", "headerbtn", "prev-next-area"),
    ]
)
_ASIDE_OF_THE_TEXT = re.compile(r"admonition|callout|alert|note|tip|warning|caution|danger|topic|aside")
_INVISIBLE = re.compile(r"display:none|visibility:hidden|font-size:0(?:[a-z%]*)(?=;|!|$)")
_SHOWN_HIDDEN_ROLES = frozenset(["tabpanel"])
_CONTENT = ("article", "main", "[role=main]", ".theme-doc-markdown", ".md-content", "div.body", "div.document")
_LANGUAGE = re.compile(r"(?:^|\s)(?:(?:language|lang|highlight)-(?:source-)?|brush:\s*)([\w+#.-]+)")
_BEYOND_CODE = frozenset(["article", "body", "html", "li", "main", "section", "dd"])
_NO_LANGUAGE = frozenset(["default", "none", "text", "plaintext", "undefined", "source"])


def content(tree: LexborHTMLParser) -> LexborNode | None:
    """The node that holds what the page is about: the only article, the main part, or the whole body."""
    for selector in _CONTENT:
        found = tree.css(selector)
        if len(found) == 1 and found[0].text(strip=True):
            return found[0]
    return tree.body


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
    if tag == "aside":
        return not _ASIDE_OF_THE_TEXT.search(attributes.get("class") or "")
    return _is_hidden(attributes) or (tag == "a" and _is_mark(node, attributes))


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


def anchor_of(heading: LexborNode) -> str:
    """The id that leads to a heading: its own, one inside it, or that of the section it opens."""
    if heading.attributes.get("id"):
        return heading.attributes["id"] or ""
    inner = heading.css_first("a[id], span[id], a[name]")
    if inner is not None:
        return inner.attributes.get("id") or inner.attributes.get("name") or ""
    parent = heading.parent
    if parent is not None and parent.tag == "header":
        parent = parent.parent
    if parent is None or not (parent.tag == "section" or "section" in (parent.attributes.get("class") or "").split()):
        return ""
    first = parent.css_first("h1, h2, h3, h4, h5, h6")
    return (parent.attributes.get("id") or "") if first is not None and first.mem_id == heading.mem_id else ""
