"""Opening a hosted embedder: its client, and how many dimensions its vectors have."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from bythebook.errors import ConfigurationError
from bythebook.vectors import Identity
from bythebook.vectors.choice import COHERE
from bythebook.vectors.hosted import HostedEmbedder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from bythebook.vectors.choice import Choice
    from bythebook.vectors.hosted import Service


@asynccontextmanager
async def hosted_embedder(choice: Choice, *, made_with: Identity | None) -> AsyncIterator[HostedEmbedder]:
    """The embedder that was chosen. Where neither we nor the book know its dimensions, it is asked for one vector."""
    if not choice.api_key:
        raise ConfigurationError(
            f"{choice.name!r} needs a key: set {'COHERE_API_KEY' if choice.provider == COHERE else 'OPENAI_API_KEY'}."
        )
    # Its libraries take a second to import, during which everything else loads.
    service = await asyncio.to_thread(_service, choice)
    try:
        dimension = choice.known.dimension
        if made_with and made_with.model == choice.name:
            dimension = made_with.dimension
        embedder = HostedEmbedder(
            service, Identity(choice.name, dimension or await _measured(service, choice)), choice.limits
        )
        try:
            yield embedder
        finally:
            await embedder.close()
    finally:
        await service.close()


def _service(choice: Choice) -> Service:
    if choice.provider == COHERE:
        from bythebook.vectors.cohere import CohereService

        return CohereService(choice)
    from bythebook.vectors.openai import OpenAIService

    return OpenAIService(choice)


async def _measured(service: Service, choice: Choice) -> int:
    trial = HostedEmbedder(service, Identity(choice.name, 0), choice.limits)
    try:
        return len(await trial.query("How many dimensions?"))
    finally:
        await trial.close()
