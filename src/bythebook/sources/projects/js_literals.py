"""A parser for the literals in a JavaScript or TypeScript configuration. Nothing is executed.

A value that would have to be computed is UNKNOWN. The values around it are still parsed.
"""

import re
from dataclasses import dataclass, field
from typing import Any, Final

_MAX_DEPTH = 60
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

    def __repr__(self) -> str:
        return "UNKNOWN"

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
            if self._depth > _MAX_DEPTH:
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
        shape = {"'": self._string, '"': self._string, "`": self._string, "{": self._object, "[": self._array}.get(char)
        if shape:
            return shape(start)
        function = _FUNCTION.match(self.text, start)
        if function:
            return self._function(function)
        if char == "(":
            value, end = self.value(start + 1)
            return value, end + 1 if self.text.startswith(")", end) else self._past_bracket(start)
        for pattern, read in ((_NUMBER, _parse_number), (_WORD, self._name), (_REGEX, _parse_unknown)):
            match = pattern.match(self.text, start)
            if match:
                return read(match)
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
            position = self._member(position, found)
            position = self._past_space(position)
            if self.text.startswith(",", position):
                position = self._past_space(position + 1)
        return found, position + 1

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

    def _array(self, start: int) -> tuple[list[Any], int]:
        found: list[Any] = []
        position = self._past_space(start + 1)
        while position < len(self.text) and self.text[position] != "]":
            spread = self.text.startswith("...", position)
            value, end = self.value(position + 3 if spread else position)
            if spread:
                found.extend(value if isinstance(value, list) and len(found) + len(value) < _MAX_LENGTH else [])
            else:
                found.append(value)
            position = self._past_space(max(end, position + 1))
            if self.text.startswith(",", position):
                position = self._past_space(position + 1)
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
        arguments, position = [], self._past_space(start + 1)
        while position < len(self.text) and self.text[position] != ")":
            value, end = self.value(position)
            arguments.append(value)
            position = self._past_space(max(end, position + 1))
            if self.text.startswith(",", position):
                position = self._past_space(position + 1)
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
            return self._look_up_function(first) if not inner else UNKNOWN
        value = self.value(declared.end())[0]
        for key in inner:
            value = value.get(key, UNKNOWN) if isinstance(value, dict) else UNKNOWN
        return value

    def _look_up_function(self, name: str) -> Any:
        declared = re.search(rf"(?:async\s+)?function\s+{re.escape(name)}\s*\(", self.text)
        return self.value(declared.start())[0] if declared else UNKNOWN

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


def _parse_unknown(match: re.Match[str]) -> tuple[Any, int]:
    return UNKNOWN, match.end()


def _unescape(match: re.Match[str]) -> str:
    escape = match[1]
    if escape[0] in "ux" and len(escape) > 1:
        code = int(escape[1:].strip("{}"), 16)
        return chr(code) if code < 0x110000 else ""
    return "" if escape.endswith("\n") else _ESCAPES.get(escape, escape)
