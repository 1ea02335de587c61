"""Opening a path: the project of a generator, or a folder of documents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bythebook.pages.folder import Folder
from bythebook.pages.generators import configuration_in

if TYPE_CHECKING:
    from bythebook.pages import PageSource
    from bythebook.pages.generators import Style, Wish


def open_path(path: str | Path, *, site_url: str, style: Style | None, wish: Wish) -> PageSource:
    """The pages at this path. A `style` that is not the project's own makes it a folder like any other."""
    root = Path(path).expanduser()
    found = configuration_in(root)
    if found and style in (None, found[0]):
        from bythebook.pages.project import Project

        return Project(root, site_url=site_url, wish=wish)
    return Folder(root, site_url=site_url, style=style)
