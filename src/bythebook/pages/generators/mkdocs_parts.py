"""What a MkDocs page takes in from other files: snippets, whole, by lines or by section."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bythebook.pages.generators.inclusion import Inclusion

if TYPE_CHECKING:
    from pathlib import Path

    from bythebook.pages.generators.glances import Glances
    from bythebook.pages.generators.inclusion import Load
    from bythebook.pages.generators.mkdocs_config import Config

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
