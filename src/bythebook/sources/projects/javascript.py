"""The value that a JavaScript or TypeScript module exports, as far as it is literal.

The module is parsed and nothing is executed. A value that would have to be computed is None; the values around it are
evaluated.
"""

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tree_sitter import Node

_MAX_SOURCE = 500_000
"""The maximum characters of a module. Text that is not JavaScript takes long to parse."""
_MAX_LENGTH = 100_000
"""The maximum characters of a string and elements of a list. Spread and templates could otherwise multiply them."""
_CODE_POINT = re.compile(r"\\[ux]\{?([\da-fA-F]+)\}?")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}
_NEUTRAL_METHODS = frozenset(["filter", "flat", "concat", "freeze", "trim"])
"""Methods whose result is taken for the value that they are called on."""
_PATH_FUNCTIONS = frozenset(["require", "resolve", "join", "fileURLToPath"])


def parse_export(source: str) -> Any:
    """The value that a module exports. None if there is none."""
    # Imported here: most books are not made with Docusaurus.
    import tree_sitter_typescript
    from tree_sitter import Language, Parser

    if len(source) > _MAX_SOURCE:
        return None
    # TSX contains TypeScript and JavaScript, except for casts in angle brackets.
    root = Parser(Language(tree_sitter_typescript.language_tsx())).parse(source.encode()).root_node
    exported = next(filter(None, map(_find_export, root.named_children)), None)
    try:
        return _Evaluator(root).evaluate(exported)
    except RecursionError:
        return None


def _find_export(statement: "Node") -> "Node | None":
    """The expression in `export default ...`, `export = ...` or `module.exports = ...`."""
    if statement.type == "export_statement" and any(child.type in ("default", "=") for child in statement.children):
        return _inner(statement)
    assignment = _inner(statement) if statement.type == "expression_statement" else None
    is_export = assignment and _text(assignment.child_by_field_name("left")) == "module.exports"
    return assignment.child_by_field_name("right") if assignment and is_export else None


class _Evaluator:
    """Evaluates the expressions of a module. Its methods have the names of the nodes that they evaluate."""

    def __init__(self, root: "Node") -> None:
        self._values: dict[str, Any] = {}
        self._declared: dict[str, Node | None] = {}
        for node in _walk(root):
            if node.type in ("variable_declarator", "function_declaration"):
                name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
                self._declared.setdefault(_text(name), value or node)

    def evaluate(self, node: "Node | None") -> Any:
        evaluate = getattr(self, f"_{node.type}", None) if node else None
        return evaluate(node) if evaluate else None

    def _parenthesized_expression(self, node: "Node") -> Any:
        return self.evaluate(_inner(node))

    _as_expression = _satisfies_expression = _non_null_expression = _parenthesized_expression

    def _true(self, node: "Node") -> bool:
        return node.type == "true"

    _false = _true

    def _number(self, node: "Node") -> Any:
        try:
            return ast.literal_eval(_text(node)[:100])  # The numbers of Python are written alike.
        except (SyntaxError, ValueError):
            return None

    _unary_expression = _number

    def _string(self, node: "Node") -> str | None:
        """A string, or a template literal whose placeholders are constants."""
        texts: list[str] = []
        for part in node.named_children:
            value = self.evaluate(_inner(part)) if part.type == "template_substitution" else _unescape(_text(part))
            if not isinstance(value, str | int) or sum(map(len, texts)) > _MAX_LENGTH:
                return None
            texts.append(str(value))
        return "".join(texts)

    _template_string = _string

    def _array(self, node: "Node") -> list[Any]:
        found: list[Any] = []
        for child in node.named_children:
            if child.type == "spread_element":
                value = self.evaluate(_inner(child))
                found.extend(value if isinstance(value, list) and len(found) + len(value) < _MAX_LENGTH else [])
            elif child.type != "comment":
                found.append(self.evaluate(child))
        return found

    _arguments = _array

    def _object(self, node: "Node") -> dict[str, Any]:
        found: dict[str, Any] = {}
        for member in node.named_children:
            key = member.child_by_field_name("key")
            if member.type == "spread_element":
                spread = self.evaluate(_inner(member))
                found.update(spread if isinstance(spread, dict) else {})
            elif member.type == "shorthand_property_identifier":
                found[_text(member)] = self._identifier(member)
            elif key and key.type != "computed_property_name":
                name = self._string(key) if key.type == "string" else _text(key)
                found[name or ""] = self.evaluate(member.child_by_field_name("value"))
        return found

    def _identifier(self, node: "Node") -> Any:
        """The value of a constant or function of the module."""
        name = _text(node)
        if name not in self._values:
            self._values[name] = None  # While it is evaluated: a constant may refer to itself.
            self._values[name] = self.evaluate(self._declared.get(name))
        return self._values[name]

    def _member_expression(self, node: "Node") -> Any:
        owner = self.evaluate(node.child_by_field_name("object"))
        return owner.get(_text(node.child_by_field_name("property"))) if isinstance(owner, dict) else None

    def _binary_expression(self, node: "Node") -> Any:
        """A fallback, or texts joined by `+`."""
        left, right = (self.evaluate(node.child_by_field_name(side)) for side in ("left", "right"))
        operator = _text(node.child_by_field_name("operator"))
        if operator in ("||", "??"):
            return left or right
        texts = isinstance(left, str) and isinstance(right, str) and len(left) + len(right) < _MAX_LENGTH
        return left + right if texts and operator == "+" else None

    def _call_expression(self, node: "Node") -> Any:
        """The argument of `defineConfig`, the path in `require.resolve`, the list that is filtered."""
        called = node.child_by_field_name("function")
        name = _text(called).rpartition(".")[2]
        owner = self.evaluate(called.child_by_field_name("object")) if called and name in _NEUTRAL_METHODS else None
        given = self.evaluate(node.child_by_field_name("arguments")) or ()
        words = [argument for argument in given if isinstance(argument, str)]
        if name in _PATH_FUNCTIONS and words:
            return "/".join(words)
        return owner or next((argument for argument in given if isinstance(argument, dict)), None)

    def _arrow_function(self, node: "Node") -> Any:
        """The value of an arrow, or of the first `return` of a function."""
        body = node.child_by_field_name("body")
        if body is None or body.type != "statement_block":
            return self.evaluate(body)
        return next((self.evaluate(_inner(inner)) for inner in _walk(body) if inner.type == "return_statement"), None)

    _function_declaration = _function_expression = _arrow_function


def _walk(root: "Node") -> "Iterator[Node]":
    """The nodes below `root` in their order."""
    pending = [root]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(node.named_children))


def _inner(node: "Node") -> "Node | None":
    """The expression inside a node that only surrounds it."""
    return next((child for child in node.named_children if child.type != "comment"), None)


def _text(node: "Node | None") -> str:
    return (node.text or b"").decode() if node else ""


def _unescape(part: str) -> str:
    """The text of a part of a string: an escape sequence or plain text."""
    if not part.startswith("\\"):
        return part
    code = _CODE_POINT.fullmatch(part)
    return chr(int(code[1], 16) % 0x110000) if code else _ESCAPES.get(part[1:], part[1:].strip("\r\n"))
