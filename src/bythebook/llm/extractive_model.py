"""The extractive answer as a `Model` of the Agents SDK: an agent of yours can run on it, with no provider and no key.

The book itself does without this module: importing the SDK takes two seconds, and the answer is the same.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from agents import Model, ModelResponse, Usage
from agents.models.chatcmpl_converter import Converter
from openai.types.responses.response_output_text import AnnotationURLCitation

from bythebook.answers import AgentResponse
from bythebook.answers.extractive import MODEL
from bythebook.conversations.followups import Exchange
from bythebook.errors import InputError
from bythebook.llm import agents_sdk

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from agents.items import TResponseInputItem, TResponseStreamEvent

Extract: TypeAlias = Callable[[str, Sequence[Exchange]], Awaitable[AgentResponse]]
"""The book's own answer to a question after these exchanges."""


class ExtractiveModel(Model):
    """Answers the last question of its input with the book's own sentences, or refuses as the book does.

    It looks things up by itself and calls no tools; instructions and settings for a model that talks mean nothing to
    it. Citations come as the annotations of the text, each where its number stands.
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
        response = await self._answer(input)
        said = agents_sdk.message(response.answer, item=agents_sdk.new_item(), annotations=[*_annotations(response)])
        return ModelResponse(output=[said], usage=Usage(requests=1), response_id=None)

    async def stream_response(
        self,
        system_instructions: str | None,  # noqa: ARG002 - the SDK's signature
        input: str | list[TResponseInputItem],  # noqa: A002 - the SDK's name
        *_: Any,
        **__: Any,
    ) -> AsyncIterator[TResponseStreamEvent]:
        """The answer in one piece: it is there at once."""
        response = await self._answer(input)
        item = agents_sdk.new_item()
        said = agents_sdk.message(response.answer, item=item, annotations=[*_annotations(response)])
        yield agents_sdk.delta(response.answer, item=item, number=0)
        yield agents_sdk.completed([said], model=MODEL, number=1)

    async def _answer(self, given: str | list[TResponseInputItem]) -> AgentResponse:
        exchanges: list[Exchange] = []
        asked = ""
        for message in Converter.items_to_messages(given):
            text = _text(message.get("content"))
            if message["role"] == "user":
                asked = text
            elif message["role"] == "assistant" and asked and text:
                exchanges.append(Exchange(asked, text))
                asked = ""
        if not asked:
            raise InputError("the input has no question: its last message must be a user's.")
        return await self._extract(asked, exchanges)


def _text(content: Any) -> str:
    """The text of a message, also where it comes in parts."""
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
