"""The configuration of a Docusaurus site: its content plugins, its locales, and its sidebars.

Sidebars are written out in a file or generated from the folders. The files are JavaScript or TypeScript: their literals
are parsed and nothing is executed. A value that would have to be computed is UNKNOWN; the values around it are parsed.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final

from bythebook.sources.projects.navigation import NavEntry, NavItem, NavSection, make_budget
from bythebook.sources.urls import strip_number_prefix

_PLACEHOLDERS = ("https://your-docusaurus", "https://tutorial.docusaurus.io")


@dataclass(frozen=True, slots=True)
class ContentPlugin:
    """One folder of documents or posts, with its options."""

    kind: str
    """docs, blog or pages."""
    id: str
    path: str
    route: str
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DocusaurusConfig:
    """The parts of the configuration that determine where documents are published."""

    url: str
    base_path: str
    """The path of the site on its host, with a slash at both ends."""
    trailing_slash: bool | None
    locale: str
    """The default locale."""
    locales: dict[str, dict[str, Any]]
    """All locales with their options."""
    translations: str
    """The folder of the translations."""
    plugins: tuple[ContentPlugin, ...]


def read_config(file: Path) -> DocusaurusConfig:
    """Read a configuration. Values that are not literals get the defaults of Docusaurus."""
    found = parse_export(file.read_text(encoding="utf-8", errors="replace"))
    config: dict[str, Any] = found if isinstance(found, dict) else {}
    i18n = _dictionary(config.get("i18n"))
    url = _text(config.get("url"))
    default = _text(i18n.get("defaultLocale")) or "en"
    names = [name for name in _list(i18n.get("locales")) if isinstance(name, str)] or [default]
    trailing = config.get("trailingSlash")
    return DocusaurusConfig(
        url="" if url.startswith(_PLACEHOLDERS) else url.rstrip("/"),
        base_path="/" + f"{_text(config.get('baseUrl')).strip('/')}/".lstrip("/"),
        trailing_slash=trailing if isinstance(trailing, bool) else None,
        locale=default,
        locales={name: _dictionary(_dictionary(i18n.get("localeConfigs")).get(name)) for name in names},
        translations=_text(i18n.get("path")) or "i18n",
        plugins=tuple(_list_plugins(config)),
    )


def _list_plugins(config: dict[str, Any]) -> Iterator[ContentPlugin]:
    presets = [_parse_plugin_item(item) for item in _list(config.get("presets"))]
    classic = [options for name, options in presets if "classic" in name or not name]
    for options in classic or ([{}] if not _list(config.get("plugins")) else []):
        for kind in ("docs", "blog", "pages"):
            if options.get(kind, {}) is not False:
                yield _make_plugin(kind, _dictionary(options.get(kind)))
    for name, options in map(_parse_plugin_item, _list(config.get("plugins"))):
        kind = next((kind for kind in ("docs", "blog", "pages") if name.endswith(f"content-{kind}")), "")
        if kind:
            yield _make_plugin(kind, options)


def _make_plugin(kind: str, options: dict[str, Any]) -> ContentPlugin:
    path = _text(options.get("path")) or ("src/pages" if kind == "pages" else kind)
    route = options.get("routeBasePath")
    usual = "" if kind == "pages" else kind
    route = route if isinstance(route, str) else usual
    return ContentPlugin(kind, _text(options.get("id")) or "default", path, route.strip("/"), options)


def _parse_plugin_item(item: Any) -> tuple[str, dict[str, Any]]:
    """The name and the options of a preset or plugin."""
    if isinstance(item, list):
        return _text(item[0] if item else ""), _dictionary(item[1] if len(item) > 1 else {})
    return _text(item) or "-", {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _dictionary(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


_MAX_DEPTH = 30
_UNNUMBERED = float("inf")


@dataclass(frozen=True, slots=True)
class SidebarDocument:
    """The metadata of a document from which a sidebar is generated."""

    id: str
    folder: tuple[str, ...]
    """The names of its folders on disk."""
    name: str
    """The name of its file."""
    position: float
    title: str
    """The label of a folder whose index is this document."""


def read_sidebars(file: Path) -> dict[str, Any] | None:
    """The sidebars in a file, by name. None if the file has none or cannot be parsed."""
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
        found = json.loads(text) if file.suffix == ".json" else parse_export(text)
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and found else None


@dataclass(frozen=True, slots=True)
class SidebarBuilder:
    """Converts sidebars to navigation items."""

    documents: Sequence[SidebarDocument]
    category: Callable[[tuple[str, ...]], dict[str, Any]]
    """The fields of the `_category_.json` of a folder."""
    translate: Callable[[str, str], str]
    """Translates the label of a category. The second argument is the name of the sidebar."""
    _budget: Iterator[int] = field(default_factory=make_budget)

    def items(self, sidebars: dict[str, Any]) -> list[NavItem]:
        """The items of all sidebars in order."""
        return [item for name, content in sidebars.items() for item in self._items(content, name, 0)]

    def _items(self, content: Any, sidebar: str, depth: int) -> Iterator[NavItem]:
        if depth > _MAX_DEPTH or next(self._budget, None) is None:
            return
        if isinstance(content, dict) and "type" not in content:
            for label, inner in content.items():
                yield self._section(label, self._items(inner, sidebar, depth + 1), sidebar)
        elif isinstance(content, dict):
            yield from self._item(content, sidebar, depth)
        elif isinstance(content, str):
            yield NavEntry(content)
        elif isinstance(content, list):
            for inner in content:
                yield from self._items(inner, sidebar, depth + 1)

    def _item(self, item: dict[str, Any], sidebar: str, depth: int) -> Iterator[NavItem]:
        kind = item.get("type")
        if kind == "doc" and isinstance(item.get("id"), str):
            yield NavEntry(item["id"])
        elif kind == "autogenerated" and isinstance(item.get("dirName"), str):
            folder = tuple(part for part in item["dirName"].split("/") if part not in ("", "."))
            yield from self.generate(folder, sidebar)
        elif kind == "category" and isinstance(item.get("label"), str):
            own = _linked_document(item)
            lead = [NavEntry(own)] if own else []
            inner = self._items(item.get("items"), sidebar, depth + 1)
            yield self._section(item["label"], [*lead, *inner], sidebar)

    def _section(self, label: str, items: Iterator[NavItem] | list[NavItem], sidebar: str) -> NavSection:
        return NavSection(self.translate(label, sidebar), tuple(items))

    def generate(self, folder: tuple[str, ...], sidebar: str) -> list[NavItem]:
        """The documents and folders below a folder, sorted by position, then by name."""
        return [item for _, _, item in sorted(self._below(folder, sidebar), key=lambda found: found[:2])]

    def _below(self, folder: tuple[str, ...], sidebar: str) -> Iterator[tuple[float, str, NavItem]]:
        inside = [document for document in self.documents if document.folder[: len(folder)] == folder]
        for document in inside:
            if document.folder == folder:
                yield document.position, document.name, NavEntry(document.id)
        for name in dict.fromkeys(document.folder[len(folder)] for document in inside if document.folder != folder):
            if len(folder) < _MAX_DEPTH:
                yield self._folder((*folder, name), sidebar)

    def _folder(self, folder: tuple[str, ...], sidebar: str) -> tuple[float, str, NavItem]:
        category, name = self.category(folder), folder[-1]
        own = self._index(folder, category)
        items = [item for item in self.generate(folder, sidebar) if own is None or item != NavEntry(own.id)]
        label = _text(category.get("label")) or (own.title if own else "") or strip_number_prefix(name)
        position = category.get("position")
        if not isinstance(position, int | float):
            position = own.position if own and own.position != _UNNUMBERED else parse_number_prefix(name)
        lead = [NavEntry(own.id)] if own else []
        return float(position), name, self._section(label, [*lead, *items], sidebar)

    def _index(self, folder: tuple[str, ...], category: dict[str, Any]) -> SidebarDocument | None:
        """The index document of a folder: the one its category links to, or the one with the file name of an index."""
        if "link" in category:
            link = _linked_document(category)
            local = "/".join((*map(strip_number_prefix, folder), link))
            return next((found for found in self.documents if link and found.id in (link, local)), None)
        usual = ("index", "readme", folder[-1].lower())
        here = [found for found in self.documents if found.folder == folder]
        return next((found for found in here if PurePosixPath(found.name).stem.lower() in usual), None)


def _linked_document(category: dict[str, Any]) -> str:
    """The id of the document that a category links to; empty if it links to none."""
    link = _dictionary(category.get("link"))
    return _text(link.get("id")) if link.get("type") == "doc" else ""


def parse_number_prefix(name: str) -> float:
    """The number prefix of a name. Infinity if it has none, so that it is sorted last."""
    rest = strip_number_prefix(name)
    digits = name[: len(name) - len(rest)].rstrip("-_. \t")
    return float(digits) if digits.isascii() and digits.isdigit() else _UNNUMBERED


_MAX_NESTING = 60
_MAX_LENGTH = 100_000
"""The maximum characters of a string and elements of a list. Spread and templates could otherwise multiply them."""
_MAX_SOURCE = 2_000_000
_SPACE = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_WORD = re.compile(r"[A-Za-z_$][\w$]*(?:\s*\??\.\s*[A-Za-z_$][\w$]*)*")
_NUMBER = re.compile(r"[-+]?(?:0x[\da-fA-F]+|\d[\d_]*(?:\.\d+)?(?:e[-+]?\d+)?)")
_STRING = re.compile(r"'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
_TEMPLATE = re.compile(r"`(?:\\.|[^`\\])*`", re.DOTALL)
_REGEX = re.compile(r"/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+/[a-z]*")
_TOKEN = re.compile(rf"{_STRING.pattern}|{_TEMPLATE.pattern}|//[^\n]*|/\*.*?\*/|[\[({{}})\],;]|.", re.DOTALL)
_HOLE = re.compile(r"\$\{\s*([\w$.]+)\s*\}")
_ESCAPE = re.compile(r"\\(u\{[\da-fA-F]{1,6}\}|u[\da-fA-F]{4}|x[\da-fA-F]{2}|\r?\n|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}
_EXPORT = re.compile(r"^[ \t]*(?:module\.exports\s*=(?!=)|export\s+default\b|export\s*=)", re.MULTILINE)
_FUNCTION = re.compile(r"(?:async\s+)?(?:function\b[^({]*\(|\([^()]*\)\s*(?::[^={]+)?=>|[\w$]+\s*=>)")
_RETURN = re.compile(r"\breturn\s*(?=[\[({\w])")
_TYPE = re.compile(r"\s*(?:as|satisfies)\s+[\w$.]+(?:<[^<>]*>)?(?:\[\])*|\s*!(?=[\s,;)\]}])")
_FALLBACK = re.compile(r"\|\||\?\?")
_NEUTRAL_METHOD = re.compile(r"\s*\.\s*(?:filter|flat|concat|freeze|trim)\s*\(")
_BEFORE_REGEX = frozenset("(,=:[!&|?{};")
_CLOSING = {"{": "}", "[": "]", "(": ")"}
_CONSTANTS = {"true": True, "false": False, "null": None, "undefined": None}


class _Unknown:
    """A value that only executing the configuration could compute."""

    def __bool__(self) -> bool:
        return False


UNKNOWN: Final = _Unknown()


def parse_export(source: str) -> Any:
    """The value that a module exports, as far as it is literal. UNKNOWN if there is none."""
    match = _EXPORT.search(source)
    if match is None or len(source) > _MAX_SOURCE:
        return UNKNOWN
    try:
        return _ValueParser(source).value(match.end())[0]
    except (RecursionError, IndexError):
        return UNKNOWN


@dataclass(slots=True)
class _ValueParser:
    """Parses values at positions of a text. Every method returns a value and the position after it."""

    text: str
    _depth: int = 0
    _constants: dict[str, Any] = field(default_factory=dict)

    def value(self, position: int) -> tuple[Any, int]:
        self._depth += 1
        try:
            if self._depth > _MAX_NESTING:
                raise RecursionError
            value, position = self._operand(self._past_space(position))
            return self._parse_suffix(value, position)
        finally:
            self._depth -= 1

    def _past_space(self, position: int) -> int:
        match = _SPACE.match(self.text, position)
        return match.end() if match else position

    def _parse_suffix(self, value: Any, position: int) -> tuple[Any, int]:
        """Parse what follows an operand: a type, a fallback, a concatenation, or an expression that is UNKNOWN."""
        while match := _TYPE.match(self.text, position):
            position = match.end()
        while match := _NEUTRAL_METHOD.match(self.text, position):
            position = self._past_bracket(match.end() - 1)
        position = self._past_space(position)
        if _FALLBACK.match(self.text, position):
            other, end = self.value(position + 2)
            return (value if value else other), end
        if self.text.startswith("+", position):
            other, end = self.value(position + 1)
            texts = isinstance(value, str) and isinstance(other, str) and len(value) + len(other) < _MAX_LENGTH
            return (value + other if texts else UNKNOWN), end
        if position >= len(self.text) or self.text[position] in ",;])}" or self._is_a_new_line(position):
            return value, position
        return UNKNOWN, self._past_expression(position)

    def _is_a_new_line(self, position: int) -> bool:
        """Whether the statement ended without a semicolon."""
        line = self.text.rfind("\n", 0, position) + 1
        return not self.text[line:position].strip() and self.text[position].isalpha()

    def _operand(self, start: int) -> tuple[Any, int]:
        char = self.text[start]
        shape = {"'": self._string, '"': self._string, "`": self._string, "{": self._object, "[": self._elements}
        if char in shape:
            return shape[char](start)
        function = _FUNCTION.match(self.text, start)
        if function:
            return self._function(function)
        if char == "(":
            value, end = self.value(start + 1)
            return value, end + 1 if self.text.startswith(")", end) else self._past_bracket(start)
        for pattern, read in ((_NUMBER, _parse_number), (_WORD, self._name)):
            if match := pattern.match(self.text, start):
                return read(match)
        if match := _REGEX.match(self.text, start):
            return UNKNOWN, match.end()
        return UNKNOWN, self._past_expression(start)

    def _string(self, start: int) -> tuple[Any, int]:
        match = (_TEMPLATE if self.text[start] == "`" else _STRING).match(self.text, start)
        if match is None:
            return UNKNOWN, self._past_expression(start + 1)
        inner = match[0][1:-1]
        if self.text[start] == "`" and "${" in inner:
            return self._fill_template(inner), match.end()
        return _ESCAPE.sub(_unescape, inner), match.end()

    def _fill_template(self, template: str) -> Any:
        """Fill a template literal whose placeholders are constants."""
        values = {name: self._resolve_name(name) for name in _HOLE.findall(template)}
        if "${" in _HOLE.sub("", template) or not all(isinstance(value, str | int) for value in values.values()):
            return UNKNOWN
        if sum(len(str(values[name])) for name in _HOLE.findall(template)) > _MAX_LENGTH:
            return UNKNOWN
        return _HOLE.sub(lambda match: str(values[match[1]]), template)

    def _object(self, start: int) -> tuple[dict[str, Any], int]:
        found: dict[str, Any] = {}
        position = self._past_space(start + 1)
        while position < len(self.text) and self.text[position] != "}":
            position = self._past_comma(self._member(position, found))
        return found, position + 1

    def _past_comma(self, position: int) -> int:
        position = self._past_space(position)
        return self._past_space(position + 1) if self.text.startswith(",", position) else position

    def _member(self, position: int, found: dict[str, Any]) -> int:
        if self.text.startswith("...", position):
            value, position = self.value(position + 3)
            found.update(value if isinstance(value, dict) else {})
            return position
        key, end = self._key(position)
        after = self._past_space(end)
        if self.text.startswith(":", after) and isinstance(key, str):
            found[key], end = self.value(after + 1)
            return end
        if isinstance(key, str) and self.text.startswith((",", "}"), after):
            found[key] = self._resolve_name(key)
            return after
        return max(self._past_expression(position), position + 1)  # A method or a computed name.

    def _key(self, position: int) -> tuple[Any, int]:
        if self.text[position] in "'\"":
            return self._string(position)
        match = _WORD.match(self.text, position) or _NUMBER.match(self.text, position)
        return (match[0], match.end()) if match else (UNKNOWN, position)

    def _elements(self, start: int, closing: str = "]") -> tuple[list[Any], int]:
        """The values between two brackets, separated by commas."""
        found: list[Any] = []
        position = self._past_space(start + 1)
        while position < len(self.text) and self.text[position] != closing:
            spread = self.text.startswith("...", position)
            value, end = self.value(position + 3 if spread else position)
            if spread:
                found.extend(value if isinstance(value, list) and len(found) + len(value) < _MAX_LENGTH else [])
            else:
                found.append(value)
            position = self._past_comma(max(end, position + 1))
        return found, position + 1

    def _function(self, match: re.Match[str]) -> tuple[Any, int]:
        """The value of the first `return` of a function."""
        start = self._past_space(match.end())
        if match[0].endswith("("):
            start = self._past_space(self._past_bracket(match.end() - 1))
        if not self.text.startswith("{", start):
            return self.value(start)
        end = self._past_bracket(start)
        returned = _RETURN.search(self.text, start, end)
        return (self.value(returned.end())[0] if returned else UNKNOWN), end

    def _name(self, match: re.Match[str]) -> tuple[Any, int]:
        name, end = re.sub(r"\s|\?", "", match[0]), match.end()
        if name in _CONSTANTS:
            return _CONSTANTS[name], end
        if self.text.startswith("(", end):
            return self._call(name, end), self._past_bracket(end)
        return self._resolve_name(name), end

    def _call(self, name: str, start: int) -> Any:
        """The value of a call: the argument of `defineConfig`, the path in `require.resolve`."""
        arguments, _ = self._elements(start, ")")
        given = next((argument for argument in arguments if isinstance(argument, dict)), UNKNOWN)
        words = [argument for argument in arguments if isinstance(argument, str)]
        if name.rpartition(".")[2] in ("require", "resolve", "join", "fileURLToPath") and words:
            return "/".join(words)
        return given

    def _resolve_name(self, name: str) -> Any:
        """The value of a constant of the module, or of a property of it."""
        if name not in self._constants:
            self._constants[name] = UNKNOWN  # While it is parsed: a constant that refers to itself is UNKNOWN.
            self._constants[name] = self._look_up(name)
        return self._constants[name]

    def _look_up(self, name: str) -> Any:
        first, *inner = name.split(".")
        declared = re.search(rf"\b(?:const|let|var)\s+{re.escape(first)}\s*(?::[^=\n]+)?=(?!=|>)", self.text)
        if declared is None:
            function = re.search(rf"(?:async\s+)?function\s+{re.escape(first)}\s*\(", self.text)
            return self.value(function.start())[0] if function and not inner else UNKNOWN
        value = self.value(declared.end())[0]
        for key in inner:
            value = value.get(key, UNKNOWN) if isinstance(value, dict) else UNKNOWN
        return value

    def _past_bracket(self, start: int) -> int:
        """The position after the bracket that closes the one at `start`."""
        return self._past(start + 1, closing=_CLOSING[self.text[start]]) + 1

    def _past_expression(self, start: int) -> int:
        """The position of the comma or bracket that ends the expression at `start`."""
        return self._past(start, closing="")

    def _past(self, position: int, *, closing: str) -> int:
        open_now, before = 0, "("
        while position < len(self.text):
            match = (before in _BEFORE_REGEX and _REGEX.match(self.text, position)) or _TOKEN.match(self.text, position)
            if match is None:
                break
            found = match[0]
            before = found if not found.isspace() else before
            if open_now == 0 and (found == closing or (not closing and found in ",;)]}")):
                return position
            open_now += (found in "{[(") - (found in "}])")
            position = match.end()
        return len(self.text)


def _parse_number(match: re.Match[str]) -> tuple[Any, int]:
    text = match[0].replace("_", "")
    number = int(text, 16) if "x" in text else float(text)
    return (int(number) if number == int(number) else number), match.end()


def _unescape(match: re.Match[str]) -> str:
    escape = match[1]
    if escape[0] in "ux" and len(escape) > 1:
        code = int(escape[1:].strip("{}"), 16)
        return chr(code) if code < 0x110000 else ""
    return "" if escape.endswith("\n") else _ESCAPES.get(escape, escape)
