"""Sanitizes a model's Markdown while it streams: resolves citations and removes every other link.

The text of a link stays and its target goes; images and raw HTML are removed; code is unchanged. Text is released only
when nothing that follows can change how it renders. The result therefore does not depend on how the text was split into
deltas, and shown text never has to be taken back. Complete answers go through the same `StreamSanitizer`.
"""

import re
from collections.abc import Iterable, Sequence

from bythebook.answers import markdown_scanner
from bythebook.answers.citation_markers import (
    SUPERSCRIPT_DIGITS,
    CitationResolver,
    citation_mark,
    find_positions,
    is_source_label,
    render_numbers,
    to_plain_digits,
)
from bythebook.answers.markdown_scanner import (
    LONGEST,
    Fence,
    NeedMoreInput,
    SourceListTracker,
    citation_in_tag,
    find_bracket_end,
    find_code_end,
    find_destination_end,
    find_html_end,
    is_link_definition,
    is_placeholder,
    may_be_special_line,
)
from bythebook.answers.prompt_leak import PromptLeakFilter
from bythebook.retrieval import RetrievalResult

# Our private-use citation marks, and invisible characters that could hide instructions.
_FORBIDDEN = re.compile(
    "[\U000f0000-\U000fffff\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]"
)
# A citation mark ends a word: the text after it is checked together with the text before it.
_WORD = re.compile(rf"[^\s\\`!\[(<【|{SUPERSCRIPT_DIGITS}\U000f0000-\U000fffff]+")
_RISKY = re.compile(r"[\[<]|://|www\.|@", re.IGNORECASE)
_PARENTHESIS = re.compile(r"\(\s*(?:\d|\[|see\b|sources?\b|from\b|cf\b|https?:|www\.)", re.IGNORECASE)
_MAY_CITE = ("see", "source", "sources", "from", "cf", "http:", "https:", "www.")
_COUNTED = re.compile(r"\(\s*(?:see\s+)?(?:sources?:?\s*)?(\d[\d\s,;–-]*)\)(?=[.,;:!?)]|\s*\Z|\s*\n)", re.IGNORECASE)
_BRACKETED = re.compile(r"\(\s*(?:see\s+|cf\.\s+|sources?:?\s*)?((?:\[\^?[\d\s,;–-]+\][\s,;]*)+)\)", re.IGNORECASE)
_SOURCED = re.compile(r"\(\s*((?:(?:sources?|see|from)\b|https?://|www\.)[^()\n]*)\)", re.IGNORECASE)
_LONGEST_PARENTHESIS = 200
_CLOSING = ".,;:!?)]}"


class StreamSanitizer:
    """Takes text as it arrives and returns the text that is safe to show."""

    def __init__(self, resolver: CitationResolver) -> None:
        self._resolver = resolver
        self._held = ""
        self._line_starts = True
        self._fence: Fence | None = None
        self._sources = SourceListTracker(resolver)
        self._barred = False
        """True if this line has a pipe inside code."""
        self._angled = False
        """True if an angle bracket is open and everything since could be part of a URL."""
        self._space = ""
        self._left_out = False
        self._tail = "\n"
        self._out: list[str] = []
        self._final = False

    def feed(self, text: str) -> str:
        """Add text and return what can be shown."""
        return self._take(_FORBIDDEN.sub("", text))

    def end(self) -> str:
        """Return the rest, after the end of the answer."""
        self._final = True
        return self._take("")

    def resanitize(self, text: str) -> str:
        """Sanitize a complete text assembled from sanitized parts, keeping its citation marks."""
        self._final = True
        return self._take(text)

    def _take(self, text: str) -> str:
        self._held += text
        try:
            while self._held:
                self._step()
        except NeedMoreInput:
            pass
        shown = "".join(self._out)
        self._out.clear()
        return shown

    def _step(self) -> None:
        """Process the construct at the start of the buffer."""
        if self._line_starts:
            self._line()
            return
        char = self._held[0]
        if char == "\n":
            self._space, self._line_starts, self._barred = "", True, False
            self._write("\n", drop=1)
        elif char.isspace():
            # Where text was removed, one of the two surrounding spaces is enough.
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
        """Process lines that are removed or kept as a whole: code, definitions and source lists."""
        end = self._held.find("\n") + 1
        whole = bool(end) or self._final
        line = self._held[: end or len(self._held)]
        if self._fence is not None or (whole and (opened := Fence.parse(line))):
            self._code_line(line, self._fence or opened, whole=whole)
        elif not whole and (self._sources.listing or may_be_special_line(line)):
            raise NeedMoreInput
        elif whole and is_link_definition(line):
            self._held = self._held[len(line) :]
        elif whole and (found := self._sources.read(line)) is not None:
            self._cite(found, drop=len(line))
            if found:
                self._write("\n")
        else:
            if heading := self._sources.take_heading():
                self._write(heading)
            self._line_starts = False

    def _code_line(self, line: str, fence: Fence | None, *, whole: bool) -> None:
        if not whole or fence is None:
            raise NeedMoreInput
        placed = fence.reindent(line)
        # A pipe beside the opening fence could turn the line into a table header.
        self._write(placed if self._fence is not None else placed.replace("|", ""), drop=len(line))
        self._fence = None if self._fence is not None and fence.is_closed_by(line) else fence

    # Inline constructs

    def _word(self) -> None:
        match = _WORD.match(self._held, 0, LONGEST)
        word = match[0] if match else self._held[0]
        beside = "" if self._space else self._tail[-1]
        # The text directly in front, if it may be the beginning of the same word.
        before = "" if self._left_out else beside
        if len(word) == len(self._held) < LONGEST and not markdown_scanner.cannot_become_url(word, before):
            self._wait()
        if address := markdown_scanner.URL_START.search(before + word, len(before)):
            start = address.start() - len(before)
            self._write(word[:start], drop=start)
            self._address()
            return
        if len(word) == LONGEST:
            # The rest may begin with the end of a URL or an email address.
            word = word[: max(word.rfind("@", LONGEST // 2), LONGEST // 2)]
        if markdown_scanner.EMAIL.search(beside + word):
            said = markdown_scanner.EMAIL.sub(lambda found: f"`{found[0]}`", beside + word)
            self._write(said[len(beside) :], drop=len(word))
        else:
            self._write(word.replace("]:", "] :"), drop=len(word))

    def _address(self) -> None:
        """A bare URL becomes a citation or is removed. Only a loopback URL stays, as code."""
        end = markdown_scanner.URL_END.search(self._held, 0, LONGEST)
        if end is None and len(self._held) < LONGEST:
            self._wait()
        bare = markdown_scanner.strip_trailing_punctuation(self._held[: end.start() if end else LONGEST])
        if markdown_scanner.LOOPBACK.match(bare):
            self._write(f"`{bare}`", drop=len(bare))
        else:
            self._cite(self._resolver.at(bare), drop=len(bare))

    def _escape(self) -> None:
        if len(self._held) < 2:
            self._wait()
        punctuation = self._held[1:2] and not self._held[1].isalnum() and not self._held[1].isspace()
        size = 2 if punctuation else 1
        self._write(self._held[:size], drop=size)

    def _code(self) -> None:
        """Keep code unchanged. Remove unpaired backticks, because they would pair with later ones.

        A pipe may end a table cell, after which the code spans of the line pair up differently. Code that contains a
        possible link is therefore removed once the line has a pipe in code.
        """
        run = len(self._held) - len(self._held.lstrip("`"))
        end = find_code_end(self._held, 0, final=self._final)
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
        # An exponent follows a digit or a short symbol; a footnote follows a word or ends a sentence.
        follows = re.search(r"(?:[^\W\d_]{3}|[.,;:!?)\"”’])\Z", self._tail)
        found = self._resolver.by_number(to_plain_digits(raised)) if follows and not self._space else None
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
        found = self._resolver.by_number(inner) or self._resolver.by_title(inner.partition("†")[0])
        self._cite(found, drop=end + 1)

    def _image(self) -> None:
        if len(self._held) < 2:
            self._wait()
        if self._held[1:2] != "[":
            self._literal()
            return
        end = find_bracket_end(self._held, 1, final=self._final)
        if end is None:
            self._held = self._held[1:]
            return
        self._leave_out(self._behind_target(end))

    def _behind_target(self, end: int) -> int:
        """Index after the destination or the label that follows a bracket, if there is one."""
        if end >= len(self._held):
            self._wait()
        after = {"(": find_destination_end, "[": find_bracket_end}.get(self._held[end : end + 1])
        return (after(self._held, end, final=self._final) if after else None) or end

    def _bracket(self) -> None:
        end = find_bracket_end(self._held, 0, final=self._final)
        if end is None:
            self._literal()
            return
        behind = self._behind_target(end)
        inner, target = self._held[1 : end - 1], self._held[end:behind]
        if target.startswith("("):
            self._link(inner, self._resolver.at(_destination(target)), drop=behind)
        elif target and self._resolver.by_number(inner) is None:
            self._link(inner, self._resolver.by_label(target[1:-1].lstrip("^")), drop=behind)
        else:
            self._label(inner, drop=end)

    def _link(self, inner: str, found: tuple[int, ...], *, drop: int) -> None:
        """Replace a link by its text, which is sanitized in turn, and by a citation if it points to a passage."""
        counted = self._resolver.by_number(inner)
        titled = self._resolver.by_title(inner)
        if counted is not None or titled or is_source_label(inner):
            self._cite(found or counted or titled, drop=drop)
        else:
            self._held = inner + "".join(map(citation_mark, found)) + self._held[drop:]

    def _label(self, inner: str, *, drop: int) -> None:
        """Brackets that are not a link: a footnote, citation numbers, a title or plain brackets."""
        counted = self._resolver.by_number(inner)
        if inner.startswith("^"):
            self._cite(self._resolver.by_label(inner[1:]), drop=drop)
        elif counted is not None and not (inner.strip() == "0" and self._tail[-1:].isalnum() and not self._space):
            self._cite(counted, drop=drop)
        elif titled := self._resolver.by_title(inner):
            self._cite(titled, drop=drop)
        elif is_source_label(inner):
            self._leave_out(drop)
        else:
            self._literal()

    def _parenthesis(self) -> None:
        size = self._parenthesis_to_read()
        said = self._held[:size]
        if match := _BRACKETED.fullmatch(said.rstrip()) if said.endswith(")") else _BRACKETED.match(said):
            labels = re.findall(r"\[\^?([^\]]*)\]", match[1])
            self._cite([at for label in labels for at in self._resolver.by_label(label)], drop=match.end())
            return
        match = _COUNTED.match(said)
        counted = self._resolver.by_number(match[1]) if match and not self._follows_a_word() else None
        if match and counted:
            self._cite(counted, drop=match.end())
            return
        match = _SOURCED.match(said)
        if match and (found := self._resolver.by_line(match[1])):
            self._cite(found, drop=match.end())
        elif match and (
            is_source_label(match[1])
            or re.fullmatch(rf"\s*{markdown_scanner.URL_START.pattern}\S+\s*", match[1], re.IGNORECASE)
        ):
            self._leave_out(match.end())
        else:
            self._literal()

    def _parenthesis_to_read(self) -> int:
        """Length of the parenthesis to examine: up to the first word after it, if it may be a citation."""
        inner = self._held[1:_LONGEST_PARENTHESIS].lstrip().lower()
        short = len(self._held) < _LONGEST_PARENTHESIS
        if short and any(word.startswith(inner) for word in _MAY_CITE):
            self._wait()
        if not _PARENTHESIS.match(self._held):
            return 1
        within = self._held[:_LONGEST_PARENTHESIS]
        end = re.search(r"\)\s*[^\s)]|\)\s*\n|\n", within)
        if end is None and len(within) < _LONGEST_PARENTHESIS:
            self._wait()
        return end.end() if end else len(within)

    def _html(self) -> None:
        end = find_html_end(self._held, final=self._final)
        if end is None:
            self._literal()
            return
        tag = self._held[:end]
        if is_placeholder(tag):
            self._write(f"`{tag}`", drop=end)
        elif markdown_scanner.URL_START.match(tag, 1):
            self._cite(self._resolver.at(tag[1:-1]), drop=end)
        elif cited := citation_in_tag(tag):
            found = self._resolver.by_number(cited)
            self._cite(found if found is not None else self._resolver.by_line(cited), drop=end)
        else:
            href = re.search(r"href\s*=\s*[\"']?([^\"'\s>]+)", tag)
            self._cite(self._resolver.at(href[1]) if href else (), drop=end)

    # Output

    def _literal(self) -> None:
        self._write(self._held[0], drop=1)

    def _wait(self) -> None:
        """Wait for more input, unless the text is complete."""
        if not self._final:
            raise NeedMoreInput

    def _follows_a_word(self) -> bool:
        return not self._space and (self._tail[-1:].isalnum() or self._tail[-1:] == "_")

    def _cite(self, found: Iterable[int], *, drop: int = 0) -> None:
        marks = "".join(map(citation_mark, dict.fromkeys(found)))
        if marks:
            self._write(marks, drop=drop)
        else:
            self._leave_out(drop)

    def _leave_out(self, drop: int) -> None:
        self._held = self._held[drop:]
        self._left_out = True

    def _write(self, text: str, *, drop: int = 0) -> None:
        """Append the text, and keep two harmless pieces from forming a link together."""
        self._held = self._held[drop:]
        if self._left_out and text[:1] in _CLOSING and self._tail[-1:] in ".,;:!?\n":
            text = text.lstrip(".,;:")
        if not text:
            return
        closes = self._left_out and text[0] in _CLOSING
        space = "" if closes or (self._left_out and self._tail[-1:].isspace()) else self._space
        last = (self._tail + space)[-1]
        bracket = last == "]" or bool(find_positions(last))
        opens = text[0] in "([:" or bool(find_positions(text[0]))
        joins = (
            (last == text[0] == "`")
            or (bracket and opens)
            or (last == "!" and opens)
            or (last == "<" and (text[0].isalpha() or text[0] in "/!?"))
            # A backslash that escaped nothing would now escape the backtick of a code span.
            or (last == "\\" and text[0] == "`" and _escapes(self._tail + space))
        )
        if self._angled and not space and not joins:
            text = text.replace("@", " @", 1)
        self._out.append(f"{space}{' ' if joins else ''}{text}")
        self._tail = (self._tail + self._out[-1])[-12:]
        self._angled = text == "<" or (self._angled and not re.search(r"[\s>]", self._out[-1]))
        self._space, self._left_out = "", False


def sanitize(text: str, resolver: CitationResolver) -> str:
    """Sanitize a complete text."""
    cleaner = StreamSanitizer(resolver)
    # A step copies what is left: the time of a long text would grow with its square.
    parts = [cleaner.feed(text[start : start + LONGEST]) for start in range(0, len(text), LONGEST)]
    return "".join(parts) + cleaner.end()


def _escapes(text: str) -> bool:
    """True if the text ends in a backslash that escapes the next character."""
    return (len(text) - len(text.rstrip("\\"))) % 2 == 1


def _destination(target: str) -> str:
    """The URL inside the parentheses of a link, without the title."""
    inner = target[1:-1].strip()
    return inner[1:].partition(">")[0] if inner.startswith("<") else (inner.split() or [""])[0]


class AnswerPreview:
    """The answer as it is generated: sanitized, not yet verified.

    Citation numbers are the positions of the retrieved passages. The verified answer that replaces the preview numbers
    its quotes from 1.
    """

    def __init__(self, results: Sequence[RetrievalResult], *, instructions: str = "") -> None:
        """`instructions` is the system prompt, which must not reach the reader."""
        self._secret = PromptLeakFilter(instructions, [result.text for result in results])
        self._cleaner = StreamSanitizer(CitationResolver(results))

    def feed(self, delta: str) -> str:
        """The text that is safe to show now. Empty while a marker, link or tag is incomplete."""
        return render_numbers(self._cleaner.feed(self._secret.feed(delta)))

    def end(self) -> str:
        """The rest of the text, after the model has finished."""
        return render_numbers(self._cleaner.feed(self._secret.end()) + self._cleaner.end())
