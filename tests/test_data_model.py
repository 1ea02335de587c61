"""The tables of docs/data-model.md have exactly the fields of the types."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from bythebook import answers, conversations, retrieval
from bythebook.chunking import Chunk
from bythebook.llm.config import AgentConfig
from bythebook.llm.search_tool import RetrievalToolResponse

MANUAL = (Path(__file__).parent.parent / "docs" / "data-model.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "kind",
    [
        *(Chunk, retrieval.RetrievalResult, retrieval.RetrievalContext, retrieval.Citation),
        *(answers.AgentRequest, answers.AgentResponse, answers.ResponseMetadata),
        *(AgentConfig, conversations.Message, conversations.Conversation, conversations.ConversationTurn),
        RetrievalToolResponse,
    ],
    ids=lambda kind: kind.__name__,
)
def test_the_manual_has_the_fields_of_a_type(kind: Any) -> None:
    section = re.split(r"^## ", MANUAL, flags=re.MULTILINE)
    (text,) = [part for part in section if part.startswith(f"{kind.__name__}:")]
    table = re.search(r"\| our field \|.*?\n\n", text + "\n", re.DOTALL)
    assert table
    cells = "".join(line.split("|")[1] for line in table[0].splitlines()[2:] if line)
    properties = {name for name, member in vars(kind).items() if isinstance(member, property)}
    known = {field.name for field in fields(kind)} | properties - {"provider", "last_assistant_message"}
    assert set(re.findall(r"`(\w+)`", cells)) == known
