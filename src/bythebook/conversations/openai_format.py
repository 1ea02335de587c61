"""Tool calls in both dialects of the OpenAI chat API: `tools`, and the older `functions`.

A function call has no id: its result is the next message under the same name. One id for each name pairs calls and
results equally well, so no other module needs to know about the two dialects.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypedDict

from bythebook.errors import InputError

if TYPE_CHECKING:
    from bythebook.conversations.models import Message


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call of the model. `arguments` is JSON as the model wrote it and may be invalid."""

    id: str
    name: str
    arguments: str = "{}"

    def __post_init__(self) -> None:
        if not self.id or not self.name:
            raise InputError("a tool call needs an id and the name of the tool.")


class _MessageFields(TypedDict):
    role: str
    content: str
    name: str | None
    tool_calls: tuple[ToolCall, ...]
    tool_call_id: str | None


def call_id(name: str) -> str:
    """The id for a call in the dialect without ids."""
    return f"call_{name}"


def write_tools(message: Message) -> dict[str, Any]:
    written: dict[str, Any] = {"role": message.role, "content": message.content or None}
    if message.name is not None:
        written["name"] = message.name
    if message.tool_calls:
        written["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        written["tool_call_id"] = message.tool_call_id
    return written


def write_functions(message: Message) -> dict[str, Any]:
    if len(message.tool_calls) > 1:
        raise InputError("the functions dialect has room for one call in a message. Write the whole conversation.")
    if message.role == "tool" and not message.name:
        raise InputError("a tool message needs the name of its tool in the functions dialect.")
    written = write_tools(message)
    for newer in ("tool_calls", "tool_call_id"):
        written.pop(newer, None)
    if message.role == "tool":
        written["role"] = "function"
    for call in message.tool_calls:
        written["function_call"] = {"name": call.name, "arguments": call.arguments}
    return written


def split_tool_calls(messages: Iterable[Message]) -> Iterator[Message]:
    """The same messages with sequential calls, each followed by its result under the tool's name."""
    rest = deque(messages)
    while rest:
        message = rest.popleft()
        answers: dict[str | None, Message] = {}
        while message.tool_calls and rest and rest[0].role == "tool":
            answer = rest.popleft()
            answers[answer.tool_call_id] = answer
        if not message.tool_calls:
            yield message
        for number, call in enumerate(message.tool_calls):
            yield replace(message, content="" if number else message.content, tool_calls=(call,))
            if call.id in answers:
                yield replace(answers[call.id], name=call.name)


def parse_message(data: Mapping[str, Any]) -> _MessageFields:
    """Parse the fields of a message in either dialect. Unknown fields are ignored."""
    role = data.get("role")
    if not isinstance(role, str):
        raise InputError("a message needs a role.")
    return {
        # The newest models call the system role "developer"; it is otherwise the same.
        "role": "system" if role == "developer" else role,
        "content": _text(data.get("content")),
        "name": data.get("name"),
        "tool_calls": tuple(_calls(data)),
        "tool_call_id": data.get("tool_call_id"),
    }


def _text(content: object) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    parts = content if isinstance(content, Sequence) else [content]
    texts = [part.get("text") for part in parts if isinstance(part, Mapping) and part.get("type") == "text"]
    if len(texts) < len(parts) or not all(isinstance(text, str) for text in texts):
        raise InputError("only text is read in a message's content: no images, sounds or files.")
    return "".join(map(str, texts))


def _calls(data: Mapping[str, Any]) -> Iterator[ToolCall]:
    if function := data.get("function_call"):
        yield _call(call_id(_field(function, "name")), function)
    for call in data.get("tool_calls") or ():
        yield _call(_field(call, "id"), _field(call, "function"))


def _call(identity: str, function: Mapping[str, Any]) -> ToolCall:
    arguments = _field(function, "arguments")
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return ToolCall(identity, _field(function, "name"), text)


def _field(value: Any, name: str) -> Any:
    if not isinstance(value, Mapping) or value.get(name) is None:
        raise InputError(f"a tool call in a message has no {name!r}.")
    return value[name]
