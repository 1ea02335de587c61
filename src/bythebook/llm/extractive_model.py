"""The extractive answer as a `Model` of the Agents SDK, for an agent of your own without a provider or a key.

The book does not use this module for its own answers: they are the same, and importing the SDK takes two seconds.
"""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Any, TypeAlias

from agents import Model, ModelResponse, Usage
from agents.items import TResponseInputItem, TResponseStreamEvent
from agents.models.chatcmpl_converter import Converter
from openai.types.responses import ResponseOutputMessage
from openai.types.responses.response_output_text import AnnotationURLCitation

from bythebook.answers import AgentResponse
from bythebook.answers.extractive import MODEL
from bythebook.conversations.followups import Exchange
from bythebook.errors import InputError
from bythebook.llm import agents_sdk
from bythebook.llm.prompts import build_history

Extract: TypeAlias = Callable[[str, Sequence[Exchange]], Awaitable[AgentResponse]]
"""Returns the extractive answer to a question after these exchanges."""


class ExtractiveModel(Model):
    """Answers the last question of its input with the book's own sentences, or with a refusal.

    It searches the book itself and calls no tools. It ignores instructions and model settings. Citations are
    annotations of the text, each at the position of its number.
    """

    def __init__(self, extract: Extract) -> None:
        self._extract = extract

    async def get_response(
        self,
        system_instructions: str | None,  # noqa: ARG002 - the SDK's signature
        input: str | list[TResponseInputItem],  # noqa: A002 - the SDK's name
        *_: Any,
        **__: Any,
    ) -> ModelResponse:
        message = (await self._answer(input))[0]
        return ModelResponse(output=[message], usage=Usage(requests=1), response_id=None)

    async def stream_response(
        self,
        system_instructions: str | None,  # noqa: ARG002 - the SDK's signature
        input: str | list[TResponseInputItem],  # noqa: A002 - the SDK's name
        *_: Any,
        **__: Any,
    ) -> AsyncIterator[TResponseStreamEvent]:
        """Yield the answer in one piece: it is not generated word by word."""
        message, answer = await self._answer(input)
        yield agents_sdk.make_text_delta(answer, item=message.id, number=0)
        yield agents_sdk.make_completed_event([message], model=MODEL, number=1)

    async def _answer(self, given: str | list[TResponseInputItem]) -> tuple[ResponseOutputMessage, str]:
        """The answer as a message of the SDK, and its text."""
        messages = [(message["role"], _text(message.get("content"))) for message in Converter.items_to_messages(given)]
        last = max((place for place, (role, _) in enumerate(messages) if role == "user"), default=-1)
        answered = any(role == "assistant" and text for role, text in messages[last + 1 :])
        if last < 0 or not messages[last][1] or answered:
            raise InputError("the input has no question: its last message must be a user's.")
        history = build_history((role, text, ()) for role, text in messages[:last])
        response = await self._extract(messages[last][1], history)
        item, annotations = agents_sdk.new_item_id(), [*_annotations(response)]
        return agents_sdk.make_output_message(response.answer, item=item, annotations=annotations), response.answer


def _text(content: Any) -> str:
    """The text of a message, whose content is a string or a list of parts."""
    parts = [{"text": content}] if isinstance(content, str) else content or ()
    return "\n".join(str(part.get("text") or "") for part in parts).strip()


def _annotations(response: AgentResponse) -> Iterator[AnnotationURLCitation]:
    for citation in response.citations:
        place = re.search(rf"\[{citation.number}\]", response.answer)
        if place:
            yield AnnotationURLCitation(
                start_index=place.start(),
                end_index=place.end(),
                title=citation.title,
                url=citation.url,
                type="url_citation",
            )
