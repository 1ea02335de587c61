"""reStructuredText."""
from __future__ import annotations
from bythebook.pages.readers.plain import read
__all__=["read"]
