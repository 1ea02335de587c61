"""What a Sphinx document takes in from other files, and from its configuration."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bythebook.pages.generators import fences
from bythebook.pages.generators.inclusion import Inclusion

if TYPE_CHECKING:
    from pathlib import Path

    from bythebook.pages.generators.glances import Glances
    from bythebook.pages.generators.inclusion import Load

_DIRECTIVE = re.compile(
    r"^(?P<indent>[ \t]*)\.\.[ \t]+(?P<name>include|literalinclude)::[ \t]+(?P<path>\S+)[ \t]*$"
    r"(?P<options>(?:\n(?P=indent)[ \t]+:[\w-]+:.*$)*)",
    re.MULTILINE,
)
_FENCE = re.compile(
    r"^(?P<indent>[ \t]*)(?P<mark>`{3,}|:{3,})\{(?P<name>include|literalinclude)\}[ \t]+(?P<path>\S+)[ \t]*$"
    r"(?P<options>(?:\n[ \t]*:[\w-]+:.*$)*)\n[ \t]*(?P=mark)[ \t]*$",
    re.MULTILINE,
)
_OPTION = re.compile(r":([\w-]+):[ \t]*(.*)")
_SELECTS = frozenset(
    [
        *("start-line", "end-line", "start-after", "end-before", "literal", "code", "start-at", "end-at", "pyobject"),
        *("diff", "lines", "prepend", "append", "dedent"),
    ]
)
_COMMENT = re.compile(r"^(?:%.*|\+\+\+.*)$\n?", re.MULTILINE)
_MARKDOWN = frozenset([".md", ".markdown"])


def references(text: str) -> tuple[str, ...]:
    if "include" not in text:
        return ()
    found = (match for pattern in (_DIRECTIVE, _FENCE) for match in pattern.finditer(text))
    return tuple(dict.fromkeys(match["path"] for match in found if _takes_all(match)))


def _takes_all(match: re.Match[str]) -> bool:
    return not any(name in _SELECTS for name, _ in _OPTION.findall(match["options"]))


def inclusion(source: Path, *, within: Path, glances: Glances) -> Inclusion:
    def find(reference: str, file: Path) -> Path:
        return source / reference.lstrip("/") if reference.startswith("/") else file.parent / reference

    return Inclusion(within, glances, find, _insert)


def _insert(text: str, load: Load) -> str:
    def shown(match: re.Match[str]) -> str:
        content = load(match["path"]) if _takes_all(match) else None
        if content is None:
            return match[0]
        if match["name"] == "literalinclude":
            content = _as_code(content, match)
        return "\n".join(match["indent"] + line if line else line for line in content.strip("\n").split("\n")) + "\n"

    return _FENCE.sub(shown, _DIRECTIVE.sub(shown, text))


def _as_code(content: str, match: re.Match[str]) -> str:
    language = dict(_OPTION.findall(match["options"])).get("language", "") or _language(match["path"])
    if "mark" in match.groupdict():
        fence = "`" * 8
        return f"{fence}{language}\n{content.rstrip()}\n{fence}"
    lines = ["   " + line if line else line for line in content.rstrip().split("\n")]
    return "\n".join([f".. code-block:: {language or 'text'}", "", *lines])


def _language(path: str) -> str:
    return {"py": "python", "js": "javascript", "sh": "bash", "rs": "rust"}.get(
        ending := path.rpartition(".")[2], ending
    )


def completed(text: str, file: Path, definitions: str) -> str:
    """The text with what the configuration adds, or without what only MyST sees."""
    if file.suffix.lower() in _MARKDOWN:
        return fences.changed_outside(text, lambda piece: _COMMENT.sub("", piece))
    return f"{text}\n\n{definitions}\n" if definitions and "|" in text else text
