"""Loading golden questions from YAML. Errors name the line."""

from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from bythebook.answers import LONGEST_QUERY, Outcome
from bythebook.errors import InputError
from bythebook.evals.golden import OUTCOMES, Expectation, GoldenConversation, GoldenQuestion

_QUESTION_FIELDS = ("question", "page", "section", "words", "expect")
_ANSWER_FIELDS = ("page", "section", "words")


def load_questions(path: Path) -> list[GoldenConversation]:
    """Load the questions of a file."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"there is no {str(path)!r}. 'bythebook eval suggest --out {path}' drafts one.") from None
    except (OSError, UnicodeDecodeError) as exc:
        raise InputError(f"{path} cannot be read: {exc}.") from None
    return _YamlParser(path).parse(text)


class _YamlParser:
    """Parses the file and reports errors with their lines."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._asked: dict[str, int] = {}

    def parse(self, text: str) -> list[GoldenConversation]:
        root = self._compose(text)
        if root is None:
            self._fail(1, "there is no question in it")
        items = self._list(root, "the file must be a list of questions, each beginning with '- question:'")
        return [self._parse_item(item) for item in items]

    def _compose(self, text: str) -> Node | None:
        try:
            node: Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as exc:
            mark, start = exc.problem_mark or exc.context_mark, exc.context_mark
            began = f" {exc.context} that begins on line {start.line + 1}" if exc.context and start else ""
            self._fail(mark.line + 1 if mark else 1, f"this is not YAML: {exc.problem}{began}")
        except (yaml.YAMLError, RecursionError) as exc:
            self._fail(1, f"this is not YAML: {exc}")
        return node

    def _parse_item(self, node: Node) -> GoldenConversation:
        fields = self._parse_fields(node, (*_QUESTION_FIELDS, "conversation"))
        if "conversation" not in fields:
            golden = self._parse_question(node, fields, is_single=True)
            if (first := self._asked.setdefault(golden.question, golden.line)) != golden.line:
                self._fail(golden.line, f"the question of line {first} is asked again")
            return (golden,)
        if others := fields.keys() - {"conversation"}:
            self._fail(_line(node), f"{min(others)!r} belongs to a question inside of the conversation")
        turns = self._list(fields["conversation"], "a conversation is a list of questions")
        return tuple(
            self._parse_question(turn, self._parse_fields(turn, _QUESTION_FIELDS), is_single=False) for turn in turns
        )

    def _parse_question(self, node: Node, fields: dict[str, Node], *, is_single: bool) -> GoldenQuestion:
        if "question" not in fields:
            self._fail(_line(node), "there is no 'question'")
        question = self._text(fields["question"], "question")
        if len(question) > LONGEST_QUERY:
            self._fail(_line(node), f"the question has {len(question)} characters; at most {LONGEST_QUERY} are allowed")
        only_context = not is_single and len(fields) == 1
        return GoldenQuestion(question, None if only_context else self._parse_expectation(fields), _line(node))

    def _parse_expectation(self, fields: dict[str, Node]) -> Expectation:
        outcome = Outcome.ANSWERED
        if "expect" in fields:
            text = self._text(fields["expect"], "expect")
            if text not in OUTCOMES:
                self._fail(_line(fields["expect"]), f"expect must be {_join_with_or(OUTCOMES)}, not {text!r}")
            outcome = OUTCOMES[text]
        given = {name: fields[name] for name in _ANSWER_FIELDS if name in fields}
        if outcome is not Outcome.ANSWERED and given:
            self._fail(_line(next(iter(given.values()))), f"{next(iter(given))!r} is expected of an answer only")
        return Expectation(
            outcome,
            page=self._text(given["page"], "page") if "page" in given else "",
            section=self._text(given["section"], "section").strip("#").strip() if "section" in given else "",
            words=self._texts(given["words"]) if "words" in given else (),
        )

    def _parse_fields(self, node: Node, known: tuple[str, ...]) -> dict[str, Node]:
        if not isinstance(node, MappingNode):
            self._fail(_line(node), "a question is written as 'question: ...', with what is expected below it")
        fields: dict[str, Node] = {}
        for key, value in node.value:
            name = str(key.value)
            if name in fields:
                self._fail(_line(key), f"{name!r} is given twice")
            if name not in known:
                self._fail(_line(key), f"{name!r} is not known. {_suggest_field(name, known)}")
            fields[name] = value
        return fields

    def _texts(self, node: Node) -> tuple[str, ...]:
        if isinstance(node, SequenceNode):
            return tuple(self._text(inner, "words") for inner in self._list(node, ""))
        return (self._text(node, "words"),)

    def _text(self, node: Node, name: str) -> str:
        text = " ".join(node.value.split()) if isinstance(node, ScalarNode) else ""
        if not text or node.tag == "tag:yaml.org,2002:null":
            self._fail(_line(node), f"{name!r} needs a text")
        return text

    def _list(self, node: Node, message: str) -> list[Node]:
        if not isinstance(node, SequenceNode) or not node.value:
            self._fail(_line(node), message or "this list is empty")
        return list(node.value)

    def _fail(self, line: int, what: str) -> NoReturn:
        raise InputError(f"{self._path}, line {line}: {what}{'' if what.endswith('?') else '.'}")


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1


def _join_with_or(names: dict[str, Outcome]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}"


def _suggest_field(name: str, known: tuple[str, ...]) -> str:
    if name in OUTCOMES:
        return f"Write 'expect: {name}'"
    close = get_close_matches(name, known, n=1)
    return f"Is {close[0]!r} meant?" if close else f"Use one of {', '.join(known)}"
