"""MkDocs projects: `mkdocs.yml` and its parents, the navigation, the URLs of pages, and the snippets they include."""

import datetime
import re
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from pathspec import GitIgnoreSpec

from bythebook.errors import ConfigurationError
from bythebook.sources import SkippedPage
from bythebook.sources.folder import walk
from bythebook.sources.projects import (
    DEFAULT_SLUGS,
    NonContent,
    Outline,
    ProjectOptions,
    ProjectPage,
    SlugOptions,
    Style,
    navigation,
)
from bythebook.sources.projects.exclusions import is_changelog, is_sample, list_repository_files
from bythebook.sources.projects.includes import IncludeResolver, Load
from bythebook.sources.projects.metadata import DocumentMetadata, MetadataCache, find_markdown_title
from bythebook.sources.projects.yaml_files import TaggedValue, read_mapping
from bythebook.sources.slugs import python_markdown_slug

_DOCUMENT_SUFFIXES = frozenset([".md", ".markdown", ".mdown", ".mkdn", ".mkd"])
_DEFAULT_IGNORES = (".*", "/templates/")
_MAX_DEPTH = 30
_POST_SLUGS = SlugOptions("pymdownx")


def parse_metadata(fields: dict[str, Any], text: str, file: Path) -> DocumentMetadata:
    title = fields.get("title")
    return DocumentMetadata(
        fields,
        title if isinstance(title, str) else find_markdown_title(text),
        find_references(text),
        is_sample=is_sample(file, text),
    )


def read_outline(
    root: Path, config_file: Path, *, within: Path, options: ProjectOptions, metadata: MetadataCache
) -> Outline:
    """The documents that a MkDocs project publishes, in the order of its navigation."""
    del options  # A MkDocs project has one version and one locale. `Project` applies `include`.
    config = read_config(config_file)
    folder = (root / config.docs_dir).resolve()
    if not folder.is_dir() or not folder.is_relative_to(within):
        raise ConfigurationError(
            f"{config_file.name} sets docs_dir to {config.docs_dir!r}, not a folder of the project. Correct it."
        )
    skipped: list[SkippedPage] = []
    docs = _Docs(folder, config, metadata, tuple(_list_files(folder, config, skipped)))
    pages = docs.pages()
    pages.extend(list_repository_files(root, published={page.file.resolve() for page in pages}))
    included = make_include_resolver(root, folder, config, within=within, metadata=metadata)
    return Outline(
        config.site_url,
        "/",
        tuple(pages),
        skipped=tuple(skipped),
        slugs=config.slugs,
        prepare=lambda text, file: strip_annotation_marks(included.prepare(text, file)),
        included_files=included.included_files,
    )


def _list_files(folder: Path, config: "MkDocsConfig", skipped: list[SkippedPage]) -> Iterator[PurePosixPath]:
    """The Markdown files: those of a folder before those of its subfolders, an index first."""
    found: list[PurePosixPath] = []
    for path in walk(folder, style=Style.MKDOCS):
        if isinstance(path, SkippedPage):
            skipped.append(path)
        elif path.suffix.lower() in _DOCUMENT_SUFFIXES and not config.excluded.match_file(str(path)):
            found.append(path)
    yield from sorted(found, key=lambda path: (path.parent.parts, path.stem not in ("index", "README"), path.name))


@dataclass(frozen=True, slots=True)
class _Docs:
    folder: Path
    config: "MkDocsConfig"
    metadata: MetadataCache
    files: tuple[PurePosixPath, ...]
    _budget: Iterator[int] = field(default_factory=navigation.make_budget)

    def pages(self) -> list[ProjectPage]:
        nav = self.config.nav
        items = list(self._items(nav, 0)) if nav is not None else self._folder(())
        order = navigation.arrange_documents(items, {str(path): _folder_title(path) for path in self.files})
        return [self._place(PurePosixPath(at.document), at) for at in order]

    def _place(self, path: PurePosixPath, at: navigation.NavPosition) -> ProjectPage:
        metadata = self.metadata.get(self.folder / path)
        category, reason = self._classify(path, metadata)
        return ProjectPage(
            self.folder / path,
            (category is NonContent.BLOG and self._post(path, metadata)) or self._route(path),
            str(path.with_suffix("")),
            module=at.module,
            title=at.title,
            category=category,
            reason=reason,
        )

    def _classify(self, path: PurePosixPath, metadata: DocumentMetadata) -> tuple[NonContent | None, str]:
        """The category of a document that is not content, and the reason why it is left out."""
        in_blog = self.config.blog is not None and path.is_relative_to(self.config.blog.folder)
        if self.config.drafts.match_file(str(path)) or (in_blog and metadata.fields.get("draft") is True):
            return None, "a draft, which is not published"
        if in_blog:
            return NonContent.BLOG, "a blog post" if path.stem != "index" else "the first page of the blog"
        if metadata.is_sample:
            return NonContent.STARTER, "a sample page that comes with MkDocs"
        if is_changelog(path.stem):
            return NonContent.CHANGELOG, "a list of changes"
        return None, ""

    def _post(self, path: PurePosixPath, metadata: DocumentMetadata) -> str:
        """The path of a post of Material's blog; empty for any other page."""
        blog, date = self.config.blog, metadata.fields.get("date")
        date = date.get("created") if isinstance(date, dict) else date
        if blog is None or not isinstance(date, datetime.date) or not path.is_relative_to(f"{blog.folder}/posts"):
            return ""
        slug = metadata.get_text("slug") or python_markdown_slug(metadata.title or path.stem, slugs=_POST_SLUGS)
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

    def _items(self, nav: Iterable[Any], depth: int) -> Iterator[navigation.NavItem]:
        for item in nav if depth < _MAX_DEPTH else ():
            if next(self._budget, None) is None:
                return
            if isinstance(item, str):
                yield navigation.NavEntry(_document_name(item))
            elif isinstance(item, dict):
                for title, inner in item.items():
                    yield from self._titled_items(str(title or ""), inner, depth)

    def _titled_items(self, title: str, inner: Any, depth: int) -> Iterator[navigation.NavItem]:
        if isinstance(inner, str):
            yield navigation.NavEntry(_document_name(inner), title)
        elif isinstance(inner, list):
            items = tuple(self._items(inner, depth + 1))
            yield navigation.NavSection(title or self._first_title(items), items)

    def _first_title(self, items: tuple[navigation.NavItem, ...]) -> str:
        """The title of the first document, which names a section without a title."""
        first = next((entry for item in items for entry in navigation.iterate_entries(item)), None)
        return first.title or self.metadata.get(self.folder / first.document).title if first else ""

    def _folder(self, folder: tuple[str, ...]) -> list[navigation.NavItem]:
        """The default navigation: the documents of a folder, then its subfolders."""
        inside = [path for path in self.files if path.parent.parts[: len(folder)] == folder]
        here: list[navigation.NavItem] = [
            navigation.NavEntry(str(path)) for path in inside if path.parent.parts == folder
        ]
        below = dict.fromkeys(path.parent.parts[len(folder)] for path in inside if path.parent.parts != folder)
        return [
            *here,
            *(navigation.NavSection(_format_title(name), tuple(self._folder((*folder, name)))) for name in below),
        ]


def _document_name(path: str) -> str:
    return str(PurePosixPath(path.strip().removeprefix("./").lstrip("/")))


def _folder_title(path: PurePosixPath) -> str:
    return _format_title(path.parts[0]) if len(path.parts) > 1 else ""


def _format_title(name: str) -> str:
    title = re.sub(r"[-_]", " ", name)
    return title.capitalize() if title.lower() == title else title


_MAX_PARENTS = 5


@dataclass(frozen=True, slots=True)
class MaterialBlog:
    """The blog of Material for MkDocs."""

    folder: str
    post_url: str


@dataclass(frozen=True, slots=True)
class MkDocsConfig:
    """The configuration of a site."""

    site_url: str
    docs_dir: str
    nav: list[Any] | None
    directory_urls: bool
    excluded: GitIgnoreSpec
    drafts: GitIgnoreSpec
    slugs: SlugOptions
    snippets: tuple[str, ...] | None
    """The base folders of snippets; None if the site does not use snippets."""
    blog: MaterialBlog | None


def read_config(file: Path) -> MkDocsConfig:
    """Read a configuration. Values that it does not set get the defaults of MkDocs."""
    fields = _read_parents(file, 0)
    nav = fields.get("nav")
    extensions = _parse_options(fields.get("markdown_extensions"))
    plugins = _parse_options(fields.get("plugins"))
    return MkDocsConfig(
        site_url=_text(fields.get("site_url")).rstrip("/"),
        docs_dir=_text(fields.get("docs_dir")) or "docs",
        nav=nav if isinstance(nav, list) else None,
        directory_urls=_resolve_tag(fields.get("use_directory_urls")) is not False,
        excluded=_compile_ignores(file, [*_DEFAULT_IGNORES, *_text(fields.get("exclude_docs")).splitlines()]),
        drafts=_compile_ignores(file, _text(fields.get("draft_docs")).splitlines()),
        slugs=_parse_slugs(extensions.get("toc", {})),
        snippets=_parse_snippets(extensions),
        blog=_parse_blog(plugins),
    )


def _read_parents(file: Path, depth: int) -> dict[str, Any]:
    try:
        fields = read_mapping(file)
    except FileNotFoundError as exc:
        raise ConfigurationError(
            f"{file} does not exist, but another configuration inherits from it. Correct INHERIT."
        ) from exc
    parent = fields.pop("INHERIT", None)
    if not isinstance(parent, str) or depth >= _MAX_PARENTS:
        return fields
    return _merge(_read_parents((file.parent / parent).resolve(), depth + 1), fields)


def _merge(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for name, value in above.items():
        known = merged.get(name)
        merged[name] = _merge(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return merged


def _resolve_tag(value: Any) -> Any:
    """The value itself, or the default of an `!ENV` tag. The environment is not read."""
    if not isinstance(value, TaggedValue):
        return value
    if value.tag != "ENV" or not isinstance(value.value, list) or len(value.value) < 2:
        return None
    return value.value[-1]


def _text(value: Any) -> str:
    value = _resolve_tag(value)
    return value.strip() if isinstance(value, str) else ""


def _compile_ignores(file: Path, lines: list[str]) -> GitIgnoreSpec:
    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError as exc:
        raise ConfigurationError(f"{file}: exclude_docs or draft_docs is not valid: {exc}. Correct it.") from exc


def _parse_options(value: Any) -> dict[str, dict[str, Any]]:
    """Extensions or plugins with their options, from any of the forms that MkDocs accepts."""
    found: dict[str, dict[str, Any]] = {}
    items = [{name: options} for name, options in value.items()] if isinstance(value, dict) else value
    for item in items if isinstance(items, list) else []:
        if isinstance(item, str):
            found[item] = {}
        elif isinstance(item, dict):
            found.update({str(name): options if isinstance(options, dict) else {} for name, options in item.items()})
    return {name.rpartition("/")[2]: options for name, options in found.items()}


def _parse_slugs(toc: dict[str, Any]) -> SlugOptions:
    separator = _text(toc.get("separator")) or "-"
    chosen = toc.get("slugify")
    if not isinstance(chosen, TaggedValue):
        return SlugOptions(separator=separator) if separator != "-" else DEFAULT_SLUGS
    words = chosen.value if isinstance(chosen.value, dict) else {}
    given = words.get("kwds", {})
    case = _text(given.get("case")) if isinstance(given, dict) else ""
    name = chosen.tag + _text(chosen.value)
    if "pymdownx" in name:
        lower = case.startswith("lower") or ("uslugify" in name and "cased" not in name)
        return SlugOptions("pymdownx", lower=lower, separator=separator)
    return SlugOptions("unicode" if "unicode" in name else "ascii", separator=separator)


def _parse_snippets(extensions: dict[str, dict[str, Any]]) -> tuple[str, ...] | None:
    if "pymdownx.snippets" not in extensions:
        return None
    base = _resolve_tag(extensions["pymdownx.snippets"].get("base_path"))
    return tuple(filter(None, map(_text, base if isinstance(base, list) else [base]))) or (".",)


def _parse_blog(plugins: dict[str, dict[str, Any]]) -> MaterialBlog | None:
    if "blog" not in plugins:
        return None
    options = plugins["blog"]
    return MaterialBlog(
        _text(options.get("blog_dir")) or "blog", _text(options.get("post_url_format")) or "{date}/{slug}"
    )


_ONE = re.compile(r"^(?P<indent>[ \t]*)-+8<-+[ \t]+(?P<quote>[\"'])(?P<path>[^\"'\n]+)(?P=quote)[ \t]*$", re.MULTILINE)
_MANY = re.compile(
    r"^(?P<indent>[ \t]*)(?P<mark>-+8<-+)[ \t]*\n(?P<paths>(?:(?![ \t]*-+8<-+).*\n)+?)[ \t]*(?P=mark)[ \t]*$",
    re.MULTILINE,
)
_LINES = re.compile(r"(?P<path>[^:]+)(?::(?P<first>\d*)(?::(?P<last>\d*))?)?")
_SECTION = re.compile(r"(?P<path>[^:]+):(?P<name>[A-Za-z_][\w-]*)")
_MARK = re.compile(r"^.*-+8<-+[ \t]*\[(?:start|end):[^\]\n]*\].*\n?", re.MULTILINE)

_CODE_MARK = re.compile(r"[ \t]*(?:#|//|--|;|<!--|/\*|%)[ \t]*\(\d+\)!(?:[ \t]*(?:-->|\*/))?[ \t]*$", re.MULTILINE)
_ANNOTATED = re.compile(r"[ \t]*\{[^{}]*\.annotate\b[^{}]*\}[ \t]*")
_MARK_IN_TEXT = re.compile(r"[ \t]?\(\d+\)")


def find_references(text: str) -> tuple[str, ...]:
    if "8<" not in text:
        return ()
    one = [match["path"] for match in _ONE.finditer(text)]
    many = [path for match in _MANY.finditer(text) for path in match["paths"].splitlines()]
    return tuple(dict.fromkeys(path.strip() for path in (*one, *many) if path.strip()))


def strip_annotation_marks(text: str) -> str:
    """Remove the marks that Material shows as buttons. The list of annotations below stays."""
    if ")!" in text:
        text = _CODE_MARK.sub("", text)
    if ".annotate" in text:
        text = "\n".join(_strip_marks(text.split("\n")))
    return text


def _strip_marks(lines: list[str]) -> list[str]:
    """Remove the marks from each paragraph whose last line has the class `annotate`."""
    start = 0
    for at, line in enumerate(lines):
        if not line.strip():
            start = at + 1
        elif _ANNOTATED.fullmatch(line):
            lines[start:at] = [_MARK_IN_TEXT.sub("", above) for above in lines[start:at]]
    return lines


def make_include_resolver(
    root: Path, docs: Path, config: MkDocsConfig, *, within: Path, metadata: MetadataCache
) -> IncludeResolver:
    bases = [root / base for base in config.snippets] if config.snippets is not None else []

    def find(reference: str, _file: Path) -> Path:
        match = _SECTION.fullmatch(reference) or _LINES.fullmatch(reference)
        path = (match["path"] if match else reference).strip()
        return next((base / path for base in bases if (base / path).is_file()), docs / "\0")

    # Without the extension, a reference stays in the text as it is.
    insert = _insert_snippets if config.snippets is not None else lambda text, _load: text
    return IncludeResolver(within, metadata, find, insert)


def _insert_snippets(text: str, load: Load) -> str:
    def one(match: re.Match[str]) -> str:
        return _indent(_load_snippet(match["path"], load), match["indent"], match[0])

    def many(match: re.Match[str]) -> str:
        found = [_load_snippet(path.strip(), load) for path in match["paths"].splitlines() if path.strip()]
        whole = "\n\n".join(part for part in found if part is not None)
        return _indent(whole or None, match["indent"], match[0])

    return _MANY.sub(many, _ONE.sub(one, text))


def _load_snippet(reference: str, load: Load) -> str | None:
    """The part of a file that a reference names: all of it, some lines, or a section between two marks."""
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


def _indent(text: str | None, indent: str, otherwise: str) -> str:
    if text is None:
        return otherwise
    return textwrap.indent(text.strip("\n"), indent)
