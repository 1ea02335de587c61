"""Words of AsciiDoc: markup inside a line, read as a browser shows it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST = 10_000
"""Letters beyond which a paragraph is data, and is kept as it is written."""

_NAMES = (
    "nbsp sp empty blank zwsp wj plus lt gt amp quot apos lsquo rsquo ldquo rdquo deg brvbar asterisk tilde".split()
)
_SHOWN_AS = [" ", " ", "", "", "", "", *"+<>&\"'‘’“”°¦*~"]
_MORE = {"caret": "^", "backslash": "\\", "backtick": "`", "vbar": "|", "startsb": "[", "endsb": "]", "cpp": "C++"}
CHARACTERS = dict(zip(_NAMES, _SHOWN_AS, strict=True)) | _MORE | {"two-colons": "::", "two-semicolons": ";;"}
"""What every document may name: characters that would be markup if they were written."""

_AS_TYPED = re.compile(r"\+\+\+(.+?)\+\+\+|pass:[a-z,]*\[(.*?)(?<!\\)\]|`\+(.+?)\+`|(?<!\w)\+(\S|\S.*?\S)\+(?!\w)")
_ATTRIBUTE = re.compile(r"(?<!\\)\{(\w[\w-]*)\}")
_COUNTER = re.compile(r"(?<!\\)\{(?:counter2?|set):[^{}]*\}")
_UNSEEN = re.compile(
    r"\[\[[\w:.-]+(?:,[^\[\]]*)?\]\]|\banchor:[\w:.-]+\[[^\[\]]*\]"  # a place to link to
    r"|\(\(\((?:[^()]|\([^()]*\))*\)\)\)|\bindexterm:\[[^\[\]]*\]"  # only in the index
    r"|\b(?:image|icon):[^\s:\[\]][^\s\[\]]*\[[^\[\]]*\]"
)
_NOTE = re.compile(r"\s*\bfootnote(?:ref)?:[\w-]*\[((?:[^\[\]]|\[[^\[\]]*\])*)\]")
_REFERENCE = re.compile(r"<<#?([^<>,]+)(?:,\s*([^<>]*))?>>")
_LINK = re.compile(
    r"(?<!\\)(?:\b(?:link:|xref:|mailto:)(?P<target>[^\s\[\]]*)|(?P<url>\b(?:https?|ftp|irc)://[^\s\[\]<>]+))"
    r"\[(?P<said>(?:[^\[\]\\]|\\.)*)\]"
)
_MACRO = re.compile(r"\b(?:kbd|btn|stem|latexmath|asciimath|indexterm2):\[((?:[^\[\]\\]|\\.)*)\]")
_MENU = re.compile(r"\bmenu:([^\s\[\]][^\[\]]*)\[([^\[\]]*)\]")
_TERM = re.compile(r"\(\(([^()]+)\)\)")
_CURVED = ((re.compile(r'"`(.+?)`"'), r"“\1”"), (re.compile(r"'`(.+?)`'"), r"‘\1’"))
_ROLE = r"(?:\[[^\[\]]*\])?"
_MARKED = [
    *(re.compile(rf"(?<!\\){_ROLE}{re.escape(2 * mark)}(.+?){re.escape(2 * mark)}") for mark in "*_`#"),
    *(re.compile(rf"(?<![\w;:}}\\]){_ROLE}{re.escape(mark)}(\S|\S.*?\S){re.escape(mark)}(?!\w)") for mark in "*_`#"),
    *(re.compile(rf"(?<!\\){_ROLE}{re.escape(mark)}(\S+?){re.escape(mark)}") for mark in "^~"),
]
_REPLACED = [
    (re.compile(pattern), shown)
    for pattern, shown in [
        (r"(?<!\\)\(C\)", "©"),
        (r"(?<!\\)\(R\)", "®"),
        (r"(?<!\\)\(TM\)", "™"),
        (r"(?<=\w)--(?=\w)", "—"),
        (r"(?<= )--(?= )", "—"),
        (r"(?<!\\)\.\.\.", "…"),
        (r"(?<=\w)'(?=\w)", "’"),
        (r"(?<!\\)->", "→"),
        (r"(?<![\\<=])=>", "⇒"),
        (r"(?<!\\)<-(?!-)", "←"),
        (r"\\(?=[*_`#^~{\[\]<.(+-]|https?:|link:)", ""),
    ]
]
_KEPT = re.compile("\ue000(\\d+)\ue001")
_MARKUP = re.compile(r"[*_`#^~{\[\]<>\\+():'.-]")


def words(text: str, attributes: Mapping[str, str]) -> tuple[str, list[str]]:
    """A line as it reads, and the notes that stand at its foot."""
    if len(text) > LONGEST or not _MARKUP.search(text):
        return text, []
    kept: list[str] = []

    def keep(match: re.Match[str]) -> str:
        kept.append(next((group for group in match.groups() if group is not None), ""))
        return f"\ue000{len(kept) - 1}\ue001"

    text = _AS_TYPED.sub(keep, text.replace("\ue000", "").replace("\ue001", ""))
    text = substituted(text, attributes)
    notes = [note for note in _NOTE.findall(text) if note.strip()]
    text = _UNSEEN.sub("", _NOTE.sub("", text))
    text = _shown(text)
    return _KEPT.sub(lambda match: kept[int(match[1])], text), [_shown(note) for note in notes]


def substituted(text: str, attributes: Mapping[str, str]) -> str:
    """With the values of the document's attributes. One that is not known is left as it is written."""
    if "{" not in text:
        return text
    return _ATTRIBUTE.sub(lambda match: attributes.get(match[1].lower(), match[0]), _COUNTER.sub("", text))


def _shown(text: str) -> str:
    text = _REFERENCE.sub(lambda match: match[2] or match[1], text)
    text = _LINK.sub(_said, text)
    text = _MENU.sub(lambda match: " › ".join(filter(None, [match[1], *re.split(r"\s*>\s*", match[2])])), text)
    text = _MACRO.sub(lambda match: match[1].replace("\\]", "]"), text)
    text = _TERM.sub(r"\1", text)
    for pattern, shown in _CURVED:
        text = pattern.sub(shown, text)
    for pattern in _MARKED:
        text = pattern.sub(r"\1", text)
    for pattern, shown in _REPLACED:
        text = pattern.sub(shown, text)
    return text


def _said(match: re.Match[str]) -> str:
    said = match["said"].replace("\\]", "]").strip()
    # Behind the words of a link there may be where it opens: `[the words,window=_blank]`.
    said = re.sub(r'(?:^|,)\s*(?:window|role|opts|options|rel|subject|body)=(?:"[^"]*"|[^,]*)', "", said).strip('" ^')
    return said or match["target"] or match["url"] or ""
