"""A reply: one answer of a model, put together from the chunks it comes in."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any

from bythebook.answers.tool import FORMER_NAME, NAME


@dataclass(frozen=True, slots=True)
class ToolCallMade:
    """A tool call as the model made it, its arguments not looked at yet."""

    id: str
    name: str
    arguments: str


@dataclass(slots=True)
class Reply:
    """What has come of one answer so far."""

    text: str = ""
    calls: dict[int, dict[str, str]] = field(default_factory=dict)
    finish_reason: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def take(self, chunk: dict[str, Any]) -> str:
        """Add a chunk. Returns the text it brought."""
        usage = chunk.get("usage") or {}
        self.prompt_tokens = usage.get("prompt_tokens") or self.prompt_tokens
        self.completion_tokens = usage.get("completion_tokens") or self.completion_tokens
        choice = (chunk.get("choices") or [{}])[0]
        delta = choice.get("delta") or choice.get("message") or {}
        for position, call in enumerate(delta.get("tool_calls") or ()):
            self._take_call(call, position)
        self.finish_reason = choice.get("finish_reason") or self.finish_reason
        text: str = delta.get("content") or ""
        self.text += text
        return text

    def _take_call(self, call: dict[str, Any], position: int) -> None:
        known = self.calls.setdefault(call.get("index", position), {"id": "", "name": "", "arguments": ""})
        function = call.get("function") or {}
        known["id"] = known["id"] or call.get("id") or ""
        known["name"] += function.get("name") or ""
        known["arguments"] += function.get("arguments") or ""

    @property
    def tool_calls(self) -> list[ToolCallMade]:
        """The calls, each with an id, under the name the tool has here."""
        return [
            ToolCallMade(
                call["id"] or f"call_{uuid.uuid4().hex}",
                NAME if call["name"] == FORMER_NAME else call["name"],
                call["arguments"] or "{}",
            )
            for _, call in sorted(self.calls.items())
        ]
