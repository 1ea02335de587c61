"""What a Docusaurus page imports and shows as it is: other Markdown, and files of code."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bythebook.pages.compose import fenced
from bythebook.pages.generators import fences
from bythebook.pages.generators.inclusion import Inclusion
from bythebook.pages.readers import front_matter

if TYPE_CHECKING:
    from pathlib import Path

    from bythebook.pages.generators.glances import Glances
    from bythebook.pages.generators.inclusion import Load

_RAW = "!!raw-loader!"
_IMPORT = re.compile(
    rf"^import[ \t]+(?P<name>\w+)[ \t]+from[ \t]+(?P<quote>['\"])(?P<path>[^'\"\n]+\.mdx?|{_RAW}[^'\"\n]+)(?P=quote);?",
    re.MULTILINE,
)
_PROPERTY = re.compile(r"(\w+)=(?:\"([^\"]*)\"|'([^']*)'|\{\s*['\"]([^'\"]*)['\"]\s*\})")
_USED = re.compile(r"\{\s*props\.(\w+)\s*\}")
_LANGUAGE = re.compile(r"\blanguage=[\"']([\w+#-]+)[\"']")


def references(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(match["path"] for match in _IMPORT.finditer(text))) if "import" in text else ()


def inclusion(root: Path, *, within: Path, glances: Glances) -> Inclusion:
    def find(reference: str, file: Path) -> Path:
        path = reference.removeprefix(_RAW).partition("?")[0]
        return root / path.removeprefix("@site/") if path.startswith("@site/") else file.parent / path

    return Inclusion(within, glances, find, _insert)


def _insert(text: str, load: Load) -> str:
    for match in list(_IMPORT.finditer(text)):
        content = load(match["path"])
        if content is not None:
            show = _code if match["path"].startswith(_RAW) else _markdown
            text = show(text, match["name"], content)
    return text


def _markdown(text: str, name: str, content: str) -> str:
    """The text with `<Name />` replaced by what was imported under that name."""
    body = front_matter.split(content)[1].strip("\n")
    tag = re.compile(rf"<{name}(?P<given>(?:\s[^<>]*?)?)\s*(?:/>|>\s*</{name}>)")

    def shown(match: re.Match[str]) -> str:
        given = {name: "".join(values) for name, *values in _PROPERTY.findall(match["given"])}
        filled = _USED.sub(lambda used: given.get(used[1], used[0]), body)
        return f"\n\n{filled}\n\n"

    return fences.changed_outside(text, lambda piece: tag.sub(shown, piece))


def _code(text: str, name: str, content: str) -> str:
    """The text with `<CodeBlock>{Name}</CodeBlock>` replaced by a block of that code."""
    block = re.compile(rf"<CodeBlock(?P<given>[^<>]*)>\s*\{{\s*{name}\s*\}}\s*</CodeBlock>")

    def shown(match: re.Match[str]) -> str:
        language = _LANGUAGE.search(match["given"])
        return f"\n\n{fenced(content, language=language[1] if language else '')}\n\n"

    return fences.changed_outside(text, lambda piece: block.sub(shown, piece))
