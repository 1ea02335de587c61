"""Cleaning: what a model writes, piece by piece as it comes, with its citations as marks and without any other link.

Link text stays and the link goes; an image and raw HTML go altogether; code is left as it is. A piece is let through
once nothing that follows can change what becomes of it, so that the text is the same however it was cut up on its way,
and nothing is ever shown that has to be taken back. `Cleaner` is both the stream and the whole: one way for both.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bythebook.answers import markdown_scanner
from bythebook.answers.citation_markers import SUPERSCRIPT_DIGITS, mark, positions, says_source, superscript
from bythebook.answers.markdown_scanner import (
    Fence,
    More,
    Sources,
    after_bracket,
    after_code,
    after_destination,
    after_html,
    cited_by_tag,
    is_definition,
    is_placeholder,
    may_announce,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bythebook.answers.citation_markers import Passages

# Our own marks, and characters nobody sees, in which a page could hide something.
_FORBIDDEN = re.compile(
    "[\U000f0000-\U000fffff\u0000-\u0008\u000b-\u001f\u007f\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufeff]"
)
# A mark is no part of a word: what follows it must be seen beside it.
_WORD = re.compile(rf"[^\s\\`!\[(<【|{SUPERSCRIPT_DIGITS}\U000f0000-\U000fffff]+")
_SPACE = re.compile(r"[^\S\n]+")
_RISKY = re.compile(r"[\[<]|://|www\.|@", re.IGNORECASE)
_PARENTHESIS = re.compile(r"\(\s*(?:\d|\[|see\b|sources?\b|from\b|cf\b|https?:|www\.)", re.IGNORECASE)
_MAY_CITE = ("see", "source", "sources", "from", "cf", "http:", "https:", "www.")
_COUNTED = re.compile(r"\(\s*(?:see\s+)?(?:sources?:?\s*)?(\d[\d\s,;–-]*)\)(?=[.,;:!?)]|\s*\Z|\s*\n)", re.IGNORECASE)
_BRACKETED = re.compile(r"\(\s*(?:see\s+|cf\.\s+|sources?:?\s*)?((?:\[\^?[\d\s,;–-]+\][\s,;]*)+)\)", re.IGNORECASE)
_SOURCED = re.compile(r"\(\s*((?:(?:sources?|see|from)\b|https?://|www\.)[^()\n]*)\)", re.IGNORECASE)
_LONGEST_PARENTHESIS = 200
_CLOSING = ".,;:!?)]}"


class Cleaner:
    """Takes text as it comes, gives out what may be shown."""

    def __init__(self, passages: Passages) -> None:
        self._passages = passages
        self._held = ""
        self._line_starts = True
        self._fence: Fence | None = None
        self._sources = Sources(passages)
        self._barred = False
        """Whether a bar stands in code on this line."""
        self._angled = False
        """Whether an angle bracket was opened and nothing has come that an address in it could not have."""
        self._space = ""
        self._left_out = False
        self._tail = "\n"
        self._out: list[str] = []
        self._final = False

    def feed(self, text: str) -> str:
        """What may be shown, now that `text` has come."""
        return self._take(_FORBIDDEN.sub("", text))

    def end(self) -> str:
        """What is left, now that nothing follows."""
        self._final = True
        return self._take("")

    def again(self, text: str) -> str:
        """A whole text that was put together from cleaned parts, with the marks it has."""
        self._final = True
        return self._take(text)

    def _take(self, text: str) -> str:
        self._held += text
        try:
            while self._held:
                self._step()
        except More:
            pass
        shown = "".join(self._out)
        self._out.clear()
        return shown

    def _step(self) -> None:
        """Deal with what the held text begins with."""
        if self._line_starts:
            self._line()
            return
        char = self._held[0]
        if char == "\n":
            self._space, self._line_starts, self._barred = "", True, False
            self._write("\n", drop=1)
        elif char.isspace():
            # Where something was left out, one of the spaces around it is enough.
            twice = self._left_out and (self._space or self._tail[-1] == "\n")
            self._space += "" if twice else char
            self._held = self._held[1:]
        elif char in SUPERSCRIPT_DIGITS:
            self._superscript()
        else:
            handler = {
                "\\": self._escape, "`": self._code, "!": self._image, "[": self._bracket, "(": self._parenthesis,
                "<": self._html, "【": self._lenticular, "|": self._literal,
            }.get(char, self._word)  # fmt: skip
            handler()

    # Lines

    def _line(self) -> None:
        """Lines that are to be taken or left whole: code, definitions, and lists of sources."""
        end = self._held.find("\n") + 1
        whole = bool(end) or self._final
        line = self._held[: end or len(self._held)]
        if self._fence is not None or (whole and (opened := Fence.opened_by(line))):
            self._code_line(line, self._fence or opened, whole=whole)
        elif not whole and (self._sources.listing or may_announce(line)):
            raise More
        elif whole and is_definition(line):
            self._held = self._held[len(line) :]
        elif whole and (found := self._sources.read(line)) is not None:
            self._cite(found, drop=len(line))
            if found:
                self._write("\n")
        else:
            if heading := self._sources.given_back():
                self._write(heading)
            self._line_starts = False

    def _code_line(self, line: str, fence: Fence | None, *, whole: bool) -> None:
        if not whole or fence is None:
            raise More
        placed = fence.placed(line)
        # A bar beside the opening fence makes it the head of a table, if what follows looks like one.
        self._write(placed if self._fence is not None else placed.replace("|", ""), drop=len(line))
        self._fence = None if self._fence is not None and fence.closed_by(line) else fence

    # What a line is made of

    def _word(self) -> None:
        match = _WORD.match(self._held)
        word = match[0] if match else self._held[0]
        beside = "" if self._space else self._tail[-1]
        # What stands before it, if that is the beginning of the same word.
        before = "" if self._left_out else beside
        if len(word) == len(self._held) and not markdown_scanner.is_none(word, before):
            self._wait()
        if address := markdown_scanner.ADDRESS.search(before + word, len(before)):
            start = address.start() - len(before)
            self._write(word[:start], drop=start)
            self._address()
        elif markdown_scanner.EMAIL.search(beside + word):
            said = markdown_scanner.EMAIL.sub(lambda found: f"`{found[0]}`", beside + word)
            self._write(said[len(beside) :], drop=len(word))
        else:
            self._write(word.replace("]:", "] :"), drop=len(word))

    def _address(self) -> None:
        """An address in the open: a citation, or gone. Only one on the reader's own machine may stay, as code."""
        end = markdown_scanner.END.search(self._held)
        if end is None:
            self._wait()
        bare = markdown_scanner.bare(self._held[: end.start() if end else len(self._held)])
        if markdown_scanner.LOOPBACK.match(bare):
            self._write(f"`{bare}`", drop=len(bare))
        else:
            self._cite(self._passages.at(bare), drop=len(bare))

    def _escape(self) -> None:
        if len(self._held) < 2:
            self._wait()
        punctuation = self._held[1:2] and not self._held[1].isalnum() and not self._held[1].isspace()
        size = 2 if punctuation else 1
        self._write(self._held[:size], drop=size)

    def _code(self) -> None:
        """Code stays as it is. Backticks without a partner go, or the next ones would pair with them.

        A bar may end a cell of a table, and then the code on this line pairs up differently: what could be a link in
        it is not left to code any more.
        """
        run = len(self._held) - len(self._held.lstrip("`"))
        end = after_code(self._held, 0, final=self._final)
        code = self._held[:end]
        self._barred = self._barred or (end is not None and "|" in code)
        if end is None or (self._barred and _RISKY.search(code)):
            self._leave_out(run)
        else:
            self._write(code, drop=end)

    def _superscript(self) -> None:
        size = len(self._held) - len(self._held.lstrip(SUPERSCRIPT_DIGITS))
        if size == len(self._held):
            self._wait()
        raised = self._held[:size]
        # A power stands behind a digit or a short symbol, a footnote behind a word or at the end of a sentence.
        follows = re.search(r"(?:[^\W\d_]{3}|[.,;:!?)\"”’])\Z", self._tail)
        found = self._passages.counted(superscript(raised)) if follows and not self._space else None
        if found is None:
            self._write(raised, drop=size)
        else:
            self._cite(found, drop=size)

    def _lenticular(self) -> None:
        end = self._held.find("】", 0, _LONGEST_PARENTHESIS)
        if end < 0 and len(self._held) < _LONGEST_PARENTHESIS:
            self._wait()
        if end < 0:
            self._literal()
            return
        inner = self._held[1:end]
        found = self._passages.counted(inner) or self._passages.titled(inner.partition("†")[0])
        self._cite(found, drop=end + 1)

    def _image(self) -> None:
        if len(self._held) < 2:
            self._wait()
        if self._held[1:2] != "[":
            self._literal()
            return
        end = after_bracket(self._held, 1, final=self._final)
        if end is None:
            self._held = self._held[1:]
            return
        self._leave_out(self._behind_target(end))

    def _behind_target(self, end: int) -> int:
        """Behind the address or the label that follows a bracket, if one does."""
        if end >= len(self._held):
            self._wait()
        after = {"(": after_destination, "[": after_bracket}.get(self._held[end : end + 1])
        return (after(self._held, end, final=self._final) if after else None) or end

    def _bracket(self) -> None:
        end = after_bracket(self._held, 0, final=self._final)
        if end is None:
            self._literal()
            return
        behind = self._behind_target(end)
        inner, target = self._held[1 : end - 1], self._held[end:behind]
        if target.startswith("("):
            self._link(inner, self._passages.at(_destination(target)), drop=behind)
        elif target and self._passages.counted(inner) is None:
            self._link(inner, self._passages.labelled(target[1:-1].lstrip("^")), drop=behind)
        else:
            self._label(inner, drop=end)

    def _link(self, inner: str, found: tuple[int, ...], *, drop: int) -> None:
        """A link: only its text stays, to be cleaned like any other, and the citation if it leads to a passage."""
        counted = self._passages.counted(inner)
        titled = self._passages.titled(inner)
        if counted is not None or titled or says_source(inner):
            self._cite(found or counted or titled, drop=drop)
        else:
            self._held = inner + "".join(map(mark, found)) + self._held[drop:]

    def _label(self, inner: str, *, drop: int) -> None:
        """Brackets without a link: a footnote, numbers, a title, or simply brackets."""
        counted = self._passages.counted(inner)
        if inner.startswith("^"):
            self._cite(self._passages.labelled(inner[1:]), drop=drop)
        elif counted is not None and not (inner.strip() == "0" and self._tail[-1:].isalnum() and not self._space):
            self._cite(counted, drop=drop)
        elif titled := self._passages.titled(inner):
            self._cite(titled, drop=drop)
        elif says_source(inner):
            self._leave_out(drop)
        else:
            self._literal()

    def _parenthesis(self) -> None:
        size = self._parenthesis_to_read()
        said = self._held[:size]
        if match := _BRACKETED.fullmatch(said.rstrip()) if said.endswith(")") else _BRACKETED.match(said):
            labels = re.findall(r"\[\^?([^\]]*)\]", match[1])
            self._cite([at for label in labels for at in self._passages.labelled(label)], drop=match.end())
            return
        match = _COUNTED.match(said)
        counted = self._passages.counted(match[1]) if match and not self._attached() else None
        if match and counted:
            self._cite(counted, drop=match.end())
            return
        match = _SOURCED.match(said)
        if match and (found := self._passages.named(match[1])):
            self._cite(found, drop=match.end())
        elif match and (
            says_source(match[1])
            or re.fullmatch(rf"\s*{markdown_scanner.ADDRESS.pattern}\S+\s*", match[1], re.IGNORECASE)
        ):
            self._leave_out(match.end())
        else:
            self._literal()

    def _parenthesis_to_read(self) -> int:
        """How much must be looked at: up to the first word behind the parenthesis, if it may cite at all."""
        inner = self._held[1:].lstrip().lower()
        if not inner or any(word.startswith(inner) for word in _MAY_CITE):
            self._wait()
        if not _PARENTHESIS.match(self._held):
            return 1
        within = self._held[:_LONGEST_PARENTHESIS]
        end = re.search(r"\)\s*[^\s)]|\)\s*\n|\n", within)
        if end is None and len(within) < _LONGEST_PARENTHESIS:
            self._wait()
        return end.end() if end else len(within)

    def _html(self) -> None:
        end = after_html(self._held, final=self._final)
        if end is None:
            self._literal()
            return
        tag = self._held[:end]
        if is_placeholder(tag):
            self._write(f"`{tag}`", drop=end)
        elif markdown_scanner.ADDRESS.match(tag, 1):
            self._cite(self._passages.at(tag[1:-1]), drop=end)
        elif cited := cited_by_tag(tag):
            found = self._passages.counted(cited)
            self._cite(found if found is not None else self._passages.named(cited), drop=end)
        else:
            href = re.search(r"href\s*=\s*[\"']?([^\"'\s>]+)", tag)
            self._cite(self._passages.at(href[1]) if href else (), drop=end)

    # Writing

    def _literal(self) -> None:
        self._write(self._held[0], drop=1)

    def _wait(self) -> None:
        """For what follows, unless nothing does."""
        if not self._final:
            raise More

    def _attached(self) -> bool:
        return not self._space and (self._tail[-1:].isalnum() or self._tail[-1:] == "_")

    def _cite(self, found: Iterable[int], *, drop: int = 0) -> None:
        marks = "".join(map(mark, dict.fromkeys(found)))
        if marks:
            self._write(marks, drop=drop)
        else:
            self._leave_out(drop)

    def _leave_out(self, drop: int) -> None:
        self._held = self._held[drop:]
        self._left_out = True

    def _write(self, text: str, *, drop: int = 0) -> None:
        """Let the text through, and never let two harmless pieces become a link together."""
        self._held = self._held[drop:]
        if self._left_out and text[:1] in _CLOSING and self._tail[-1:] in ".,;:!?\n":
            text = text.lstrip(".,;:")
        if not text:
            return
        closes = self._left_out and text[0] in _CLOSING
        space = "" if closes or (self._left_out and self._tail[-1:].isspace()) else self._space
        last = (self._tail + space)[-1]
        bracket = last == "]" or bool(positions(last))
        opens = text[0] in "([:" or bool(positions(text[0]))
        joins = (
            (last == text[0] == "`")
            or (bracket and opens)
            or (last == "!" and opens)
            or (last == "<" and (text[0].isalpha() or text[0] in "/!?"))
            # A backslash that escaped nothing would now take the edge off a backtick that keeps code code.
            or (last == "\\" and text[0] == "`" and _escapes(self._tail + space))
        )
        if self._angled and not space and not joins:
            text = text.replace("@", " @", 1)
        self._out.append(f"{space}{' ' if joins else ''}{text}")
        self._tail = (self._tail + self._out[-1])[-12:]
        self._angled = text == "<" or (self._angled and not re.search(r"[\s>]", self._out[-1]))
        self._space, self._left_out = "", False


def clean(text: str, passages: Passages) -> str:
    """The whole of a text, cleaned."""
    cleaner = Cleaner(passages)
    return cleaner.feed(text) + cleaner.end()


def _escapes(text: str) -> bool:
    """Whether a backslash at the end of the text escapes what follows, and is not itself escaped."""
    return (len(text) - len(text.rstrip("\\"))) % 2 == 1


def _destination(target: str) -> str:
    """The address in the parentheses of a link, without its title."""
    inner = target[1:-1].strip()
    return inner[1:].partition(">")[0] if inner.startswith("<") else (inner.split() or [""])[0]
