"""MkDocs: its navigation, its addresses, and the pages it makes of a folder of Markdown.

The configuration of a MkDocs site: `mkdocs.yml`, and the one it inherits from.

What a MkDocs page takes in from other files: snippets, whole, by lines or by section.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from bythebook.errors import ConfigurationError
from bythebook.sources import Skipped
from bythebook.sources.folder import walk
from bythebook.sources.projects import USUAL_SLUGS, Aside, Outline, Place, Slugs, Style, exclusions
from bythebook.sources.projects.exclusions import ignored
from bythebook.sources.projects.includes import Inclusion
from bythebook.sources.projects.metadata import Glance, Glances, heading_of_markdown
from bythebook.sources.projects.navigation import Allowance, Arranged, Entry, Section, arranged, entries
from bythebook.sources.projects.yaml_files import Tagged, configuration
from bythebook.sources.slugs import configured_slug

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from bythebook.sources.projects import Wish
    from bythebook.sources.projects.includes import Load
    from bythebook.sources.projects.metadata import Glances
    from bythebook.sources.projects.navigation import Item


_WRITTEN = frozenset([".md", ".markdown", ".mdown", ".mkdn", ".mkd"])
_USUALLY_IGNORED = (".*", "/templates/")
_DEEPEST = 30
_POST_SLUGS = Slugs("pymdownx")


def look(fields: dict[str, Any], text: str, file: Path) -> Glance:
    title = fields.get("title")
    return Glance(
        fields,
        title if isinstance(title, str) else heading_of_markdown(text),
        references(text),
        ("sample",) if exclusions.is_sample(file, text) else (),
    )


def outline(root: Path, config: Path, *, within: Path, wish: Wish, glances: Glances) -> Outline:
    """What a MkDocs project publishes, in the order of its navigation."""
    del wish  # A MkDocs project is one book; what is included is decided by whoever lists it.
    said = read(config)
    folder = (root / said.docs_dir).resolve()
    if not folder.is_dir() or not folder.is_relative_to(within):
        raise ConfigurationError(
            f"{config.name} says the pages are in {said.docs_dir!r}: there is no such folder here."
        )
    skipped: list[Skipped] = []
    docs = _Docs(folder, said, glances, tuple(_files(folder, said, skipped)))
    places = docs.places()
    places.extend(exclusions.of_the_repository(root, published={place.file.resolve() for place in places}))
    included = inclusion(root, folder, said, within=within, glances=glances)
    return Outline(
        said.site_url,
        "/",
        tuple(places),
        skipped=tuple(skipped),
        slugs=said.slugs,
        prepare=lambda text, file: without_annotation_marks(included.prepare(text, file)),
        parts=included.parts,
    )


def _files(folder: Path, said: Config, skipped: list[Skipped]) -> Iterator[PurePosixPath]:
    """The Markdown files, a folder's own before those of the folders in it, an index before the others."""
    found: list[PurePosixPath] = []
    for path in walk(folder, style=Style.MKDOCS):
        if isinstance(path, Skipped):
            skipped.append(path)
        elif path.suffix.lower() in _WRITTEN and not ignored(str(path), (*_USUALLY_IGNORED, *said.excluded)):
            found.append(path)
    yield from sorted(found, key=lambda path: (_folders(path), path.stem not in ("index", "README"), path.name))


def _folders(path: PurePosixPath) -> tuple[str, ...]:
    return path.parent.parts


@dataclass(frozen=True, slots=True)
class _Docs:
    folder: Path
    config: Config
    glances: Glances
    files: tuple[PurePosixPath, ...]
    _allowance: Allowance = field(default_factory=Allowance)

    def places(self) -> list[Place]:
        nav = self.config.nav
        items = list(self._items(nav, 0)) if nav is not None else self._folder(())
        order = arranged(items)
        known = {str(path): path for path in self.files}
        listed = [at for at in order.values() if at.document in known]
        inside = {at.document for at in listed}
        rest = [Arranged(str(path), "", _title_of_folder(path)) for path in self.files if str(path) not in inside]
        return [self._place(known[at.document], at) for at in (*listed, *rest)]

    def _place(self, path: PurePosixPath, at: Arranged) -> Place:
        file = self.folder / path
        glance = self.glances.of(file)
        route = self._route(path)
        chapter = str(path.with_suffix(""))
        if aside := self._aside(path, glance):
            if aside[0] is Aside.BLOG:
                route = self._post(path, glance) or route
            return Place(file, route, chapter, module=at.module, title=at.title, aside=aside[0], reason=aside[1])
        return Place(file, route, chapter, module=at.module, title=at.title)

    def _aside(self, path: PurePosixPath, glance: Glance) -> tuple[Aside | None, str] | None:
        if ignored(str(path), self.config.drafts) or self._is_draft(path, glance):
            return None, "a draft, which is not published"
        if self.config.blog is not None and path.is_relative_to(self.config.blog.folder):
            return Aside.BLOG, "a blog post" if path.stem != "index" else "the first page of the blog"
        if "sample" in glance.contents:
            return Aside.STARTER, "a sample page that comes with MkDocs"
        if exclusions.is_changelog(path.stem):
            return Aside.CHANGELOG, "a list of changes"
        return None

    def _is_draft(self, path: PurePosixPath, glance: Glance) -> bool:
        blog = self.config.blog
        return blog is not None and path.is_relative_to(blog.folder) and glance.fields.get("draft") is True

    def _post(self, path: PurePosixPath, glance: Glance) -> str:
        """The address of a post of Material's blog; empty for a page that is none."""
        blog, date = self.config.blog, glance.fields.get("date")
        date = date.get("created") if isinstance(date, dict) else date
        if blog is None or not isinstance(date, datetime.date) or not path.is_relative_to(f"{blog.folder}/posts"):
            return ""
        slug = glance.word("slug") or configured_slug(glance.title or path.stem, slugs=_POST_SLUGS)
        filled = blog.post_url.replace("{slug}", slug).replace("{file}", path.stem)
        address = filled.replace("{date}", f"{date:%Y/%m/%d}").strip("/")
        return self._shape(PurePosixPath(blog.folder, address), index=False)

    def _route(self, path: PurePosixPath) -> str:
        index = path.stem in ("index", "README")
        return self._shape(path.parent if index else path.with_suffix(""), index=index)

    def _shape(self, path: PurePosixPath, *, index: bool) -> str:
        if self.config.directory_urls:
            return f"/{path}/".replace("/./", "/")
        return f"/{path / 'index.html' if index else f'{path}.html'}".replace("/./", "/")

    def _items(self, nav: Iterable[Any], depth: int) -> Iterator[Item]:
        for item in nav if depth < _DEEPEST else ():
            if not self._allowance.take():
                return
            if isinstance(item, str):
                yield Entry(_document(item))
            elif isinstance(item, dict):
                for title, inner in item.items():
                    yield from self._named(str(title or ""), inner, depth)

    def _named(self, title: str, inner: Any, depth: int) -> Iterator[Item]:
        if isinstance(inner, str):
            yield Entry(_document(inner), title)
        elif isinstance(inner, list):
            items = tuple(self._items(inner, depth + 1))
            yield Section(title or self._first_title(items), items)

    def _first_title(self, items: tuple[Item, ...]) -> str:
        """What the first document of a section without a name calls itself."""
        first = next((entry for item in items for entry in entries(item)), None)
        return first.title or self.glances.of(self.folder / first.document).title if first else ""

    def _folder(self, folder: tuple[str, ...]) -> list[Item]:
        """The navigation where none is configured: a folder's documents, then the folders in it."""
        inside = [path for path in self.files if _folders(path)[: len(folder)] == folder]
        here: list[Item] = [Entry(str(path)) for path in inside if _folders(path) == folder]
        below = dict.fromkeys(_folders(path)[len(folder)] for path in inside if _folders(path) != folder)
        return [*here, *(Section(_title(name), tuple(self._folder((*folder, name)))) for name in below)]


def _document(path: str) -> str:
    return str(PurePosixPath(path.strip().removeprefix("./").lstrip("/")))


def _title_of_folder(path: PurePosixPath) -> str:
    return _title(path.parts[0]) if len(path.parts) > 1 else ""


def _title(name: str) -> str:
    title = re.sub(r"[-_]", " ", name)
    return title.capitalize() if title.lower() == title else title


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


_ONE = re.compile(r"^(?P<indent>[ \t]*)-+8<-+[ \t]+(?P<quote>[\"'])(?P<path>[^\"'\n]+)(?P=quote)[ \t]*$", re.MULTILINE)
_MANY = re.compile(
    r"^(?P<indent>[ \t]*)(?P<mark>-+8<-+)[ \t]*\n(?P<paths>(?:(?![ \t]*-+8<-+).*\n)+?)[ \t]*(?P=mark)[ \t]*$",
    re.MULTILINE,
)
_INCLUDE = re.compile(r"^(?P<indent>[ \t]*)\{!(?P<quote>)[ \t]*(?P<path>[^!\n]+?)[ \t]*!\}[ \t]*$", re.MULTILINE)
_LINES = re.compile(r"(?P<path>[^:]+)(?::(?P<first>\d*)(?::(?P<last>\d*))?)?")
_SECTION = re.compile(r"(?P<path>[^:]+):(?P<name>[A-Za-z_][\w-]*)")
_MARK = re.compile(r"^.*-+8<-+[ \t]*\[(?:start|end):[^\]\n]*\].*\n?", re.MULTILINE)

_CODE_MARK = re.compile(r"[ \t]*(?:#|//|--|;|<!--|/\*|%)[ \t]*\(\d+\)!(?:[ \t]*(?:-->|\*/))?[ \t]*$", re.MULTILINE)
_ANNOTATED = re.compile(r"[ \t]*\{[^{}]*\.annotate\b[^{}]*\}[ \t]*")
_MARK_IN_TEXT = re.compile(r"[ \t]?\(\d+\)")


def references(text: str) -> tuple[str, ...]:
    if "8<" not in text and "{!" not in text:
        return ()
    one = [match["path"] for pattern in (_ONE, _INCLUDE) for match in pattern.finditer(text)]
    many = [path for match in _MANY.finditer(text) for path in match["paths"].splitlines()]
    return tuple(dict.fromkeys(path.strip() for path in (*one, *many) if path.strip()))


def without_annotation_marks(text: str) -> str:
    """The text without the marks that Material turns into buttons; what they show stands below, as a list."""
    if ")!" in text:
        text = _CODE_MARK.sub("", text)
    if ".annotate" in text:
        text = "\n".join(_without_marks(text.split("\n")))
    return text


def _without_marks(lines: list[str]) -> list[str]:
    """The lines, where a paragraph that is annotated says so in its last one."""
    start = 0
    for at, line in enumerate(lines):
        if not line.strip():
            start = at + 1
        elif _ANNOTATED.fullmatch(line):
            lines[start:at] = [_MARK_IN_TEXT.sub("", above) for above in lines[start:at]]
    return lines


def inclusion(root: Path, docs: Path, said: Config, *, within: Path, glances: Glances) -> Inclusion:
    bases = [root / base for base in said.snippets] if said.snippets is not None else []

    def find(reference: str, file: Path) -> Path:
        path = _path(reference)
        # Snippets are found from their base; `{! !}` also from the document.
        places = [*(base / path for base in bases), *([file.parent / path] if bases else [])]
        return next((place for place in places if place.is_file()), docs / "\0")

    return Inclusion(within, glances, find, _insert if said.snippets is not None else _as_it_is)


def _as_it_is(text: str, _load: Load) -> str:
    return text


def _insert(text: str, load: Load) -> str:
    def one(match: re.Match[str]) -> str:
        return _indented(_taken(match["path"], load), match["indent"], match[0])

    def many(match: re.Match[str]) -> str:
        found = [_taken(path.strip(), load) for path in match["paths"].splitlines() if path.strip()]
        whole = "\n\n".join(piece for piece in found if piece is not None)
        return _indented(whole or None, match["indent"], match[0])

    return _INCLUDE.sub(one, _MANY.sub(many, _ONE.sub(one, text)))


def _taken(reference: str, load: Load) -> str | None:
    """What a reference names of a file: all of it, some lines, or a section between two marks."""
    text = load(reference)
    if text is None:
        return None
    if named := _SECTION.fullmatch(reference):
        name = re.escape(named["name"])
        inner = re.search(rf"\[start:{name}\].*\n((?s:.*?))^.*\[end:{name}\]", text, re.MULTILINE)
        return _MARK.sub("", inner[1]) if inner else None
    lines = _LINES.fullmatch(reference)
    if lines and (lines["first"] or lines["last"]):
        text = "\n".join(text.splitlines()[int(lines["first"] or 1) - 1 : int(lines["last"] or 10**9)])
    return _MARK.sub("", text)


def _path(reference: str) -> str:
    match = _SECTION.fullmatch(reference) or _LINES.fullmatch(reference)
    return (match["path"] if match else reference).strip()


def _indented(text: str | None, indent: str, otherwise: str) -> str:
    if text is None:
        return otherwise
    return "\n".join(indent + line if line else line for line in text.strip("\n").split("\n"))
