"""MDX."""

from __future__ import annotations

from bythebook.pages.readers.markdown import read

__all__ = ["read"]
