"""The configuration of a MkDocs site: `mkdocs.yml`, and the one it inherits from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bythebook.errors import ConfigurationError
from bythebook.pages.generators import USUAL_SLUGS, Slugs
from bythebook.pages.generators.yaml_files import Tagged, configuration

if TYPE_CHECKING:
    from pathlib import Path

_MOST_PARENTS = 5


@dataclass(frozen=True, slots=True)
class Blog:
    """The blog of Material for MkDocs."""

    folder: str
    post_url: str


@dataclass(frozen=True, slots=True)
class Config:
    """What the configuration says."""

    site_url: str
    docs_dir: str
    nav: list[Any] | None
    directory_urls: bool
    excluded: tuple[str, ...]
    drafts: tuple[str, ...]
    slugs: Slugs
    snippets: tuple[str, ...] | None
    """The folders that snippets are taken from; None where the site has no snippets."""
    blog: Blog | None


def read(file: Path) -> Config:
    """Read a configuration. What it does not say is as MkDocs has it by default."""
    said = _inherited(file, 0)
    nav = said.get("nav")
    extensions = _options(said.get("markdown_extensions"))
    plugins = _options(said.get("plugins"))
    return Config(
        site_url=_text(said.get("site_url")).rstrip("/"),
        docs_dir=_text(said.get("docs_dir")) or "docs",
        nav=nav if isinstance(nav, list) else None,
        directory_urls=_plain(said.get("use_directory_urls")) is not False,
        excluded=_lines(said.get("exclude_docs")),
        drafts=_lines(said.get("draft_docs")),
        slugs=_slugs(extensions.get("toc", {})),
        snippets=_snippets(extensions),
        blog=_blog(plugins),
    )


def _inherited(file: Path, depth: int) -> dict[str, Any]:
    try:
        said = configuration(file)
    except FileNotFoundError as exc:
        raise ConfigurationError(f"{file} is inherited from, and is not there. Correct INHERIT.") from exc
    parent = said.pop("INHERIT", None)
    if not isinstance(parent, str) or depth >= _MOST_PARENTS:
        return said
    return _merged(_inherited((file.parent / parent).resolve(), depth + 1), said)


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for name, value in above.items():
        known = merged.get(name)
        merged[name] = _merged(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return merged


def _plain(value: Any) -> Any:
    """The value itself, or what stands in for a variable of the environment where that is not set."""
    if not isinstance(value, Tagged):
        return value
    if value.tag != "ENV" or not isinstance(value.value, list) or len(value.value) < 2:
        return None
    return value.value[-1]


def _text(value: Any) -> str:
    value = _plain(value)
    return value.strip() if isinstance(value, str) else ""


def _lines(value: Any) -> tuple[str, ...]:
    return tuple(_text(value).splitlines())


def _options(value: Any) -> dict[str, dict[str, Any]]:
    """Extensions or plugins with their options, however they are written."""
    found: dict[str, dict[str, Any]] = {}
    items = [{name: options} for name, options in value.items()] if isinstance(value, dict) else value
    for item in items if isinstance(items, list) else []:
        if isinstance(item, str):
            found[item] = {}
        elif isinstance(item, dict):
            found.update({str(name): options if isinstance(options, dict) else {} for name, options in item.items()})
    return {name.rpartition("/")[2]: options for name, options in found.items()}


def _slugs(toc: dict[str, Any]) -> Slugs:
    separator = _text(toc.get("separator")) or "-"
    chosen = toc.get("slugify")
    if not isinstance(chosen, Tagged):
        return Slugs(separator=separator) if separator != "-" else USUAL_SLUGS
    words = chosen.value if isinstance(chosen.value, dict) else {}
    given = words.get("kwds", {})
    case = _text(given.get("case")) if isinstance(given, dict) else ""
    name = chosen.tag + _text(chosen.value)
    if "pymdownx" in name:
        lower = case.startswith("lower") or ("uslugify" in name and "cased" not in name)
        return Slugs("pymdownx", lower=lower, separator=separator)
    return Slugs("unicode" if "unicode" in name else "ascii", separator=separator)


def _snippets(extensions: dict[str, dict[str, Any]]) -> tuple[str, ...] | None:
    for name in ("pymdownx.snippets", "markdown_include.include", "mdx_include"):
        if name in extensions:
            base = _plain(extensions[name].get("base_path"))
            bases = base if isinstance(base, list) else [base]
            return tuple(text for text in map(_text, bases) if text) or (".",)
    return None


def _blog(plugins: dict[str, dict[str, Any]]) -> Blog | None:
    if "blog" not in plugins:
        return None
    options = plugins["blog"]
    return Blog(_text(options.get("blog_dir")) or "blog", _text(options.get("post_url_format")) or "{date}/{slug}")
