"""The embedders of a book: the one that finds, and the local one that reads closely what was found.

Opening a hosted embedder: its client, and how many dimensions its vectors have.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from bythebook.embeddings import Identity
from bythebook.embeddings.config import COHERE
from bythebook.embeddings.minilm import download
from bythebook.embeddings.minilm.embedder import local_embedder
from bythebook.embeddings.remote import HostedEmbedder
from bythebook.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AsyncExitStack
    from pathlib import Path

    from bythebook.embeddings.config import Choice
    from bythebook.embeddings.minilm.embedder import Begun, LocalEmbedder
    from bythebook.embeddings.remote import Service


async def open_hosted(choice: Choice, made_with: Identity | None, stack: AsyncExitStack) -> HostedEmbedder | None:
    """The embedder that was chosen, open until `stack` closes; None where it is the local one."""
    if choice.is_local:
        return None

    return await stack.enter_async_context(hosted_embedder(choice, made_with=made_with))


@asynccontextmanager
async def open_local(folder: Path, *, say: Callable[[str], None], begun: Begun | None) -> AsyncIterator[LocalEmbedder]:
    """The embedding model in this folder, which is fetched if it was never used on this machine."""
    try:
        download.find(folder)
    except ConfigurationError:
        await asyncio.to_thread(download.download, folder, say=say)
    async with local_embedder(folder, begun=begun) as embedder:
        yield embedder


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
        from bythebook.embeddings.cohere import CohereService

        return CohereService(choice)
    from bythebook.embeddings.openai import OpenAIService

    return OpenAIService(choice)


async def _measured(service: Service, choice: Choice) -> int:
    trial = HostedEmbedder(service, Identity(choice.name, 0), choice.limits)
    try:
        return len(await trial.query("How many dimensions?"))
    finally:
        await trial.close()
