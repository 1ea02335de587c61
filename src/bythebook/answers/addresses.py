"""Addresses in the open: what looks like one in what a model writes."""

from __future__ import annotations

import re

ADDRESS = re.compile(r"(?<![A-Za-z0-9])(?:(?:https?|ftp|file|wss?)://|mailto:|www\.)", re.IGNORECASE)
END = re.compile(r"[\s<>\"`|\[\]{}【]")
LOOPBACK = re.compile(r"https?://(?:localhost|127\.0\.0\.1|0\.0\.0\.0)(?![\w.-])", re.IGNORECASE)
# Without what stands before its sign, which may have been shown already.
EMAIL = re.compile(r"(?<=[\w.+-])@[\w-]+(?:\.[\w-]+)+")
_LETTERS = re.compile(r"[A-Za-z]+")
_LEADING = ("https", "ftp", "file", "wss", "mailto", "www")


def is_none(word: str, before: str) -> bool:
    """Whether a word that may go on is no address, however it goes on; `before` is what it continues, if anything."""
    attached = before.isascii() and before.isalnum()
    leads = not attached and any(scheme.startswith(word.lower()) for scheme in _LEADING)
    return _LETTERS.fullmatch(word) is not None and not leads


def bare(url: str) -> str:
    """The address without the marks of the sentence it stands in."""
    bare = url.rstrip(".,;:!?'*_~")
    return bare.rstrip(")") if bare.endswith(")") and bare.count("(") < bare.count(")") else bare
