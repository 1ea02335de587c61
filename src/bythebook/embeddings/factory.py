"""Opens the hosted embedder that was configured."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from bythebook.embeddings import EmbedderId
from bythebook.embeddings.remote import EmbeddingService, HostedEmbedder
from bythebook.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from bythebook.embeddings.config import EmbedderConfig


async def open_remote_embedder(
    config: EmbedderConfig, embedder_id: EmbedderId | None, stack: AsyncExitStack
) -> HostedEmbedder | None:
    """The configured hosted embedder, open until `stack` closes; None if the local one is configured."""
    if config.is_local:
        return None
    return await stack.enter_async_context(hosted_embedder(config, embedder_id=embedder_id))


@asynccontextmanager
async def hosted_embedder(config: EmbedderConfig, *, embedder_id: EmbedderId | None) -> AsyncIterator[HostedEmbedder]:
    """The configured hosted embedder.

    Its dimension comes from `embedder_id` (that of the existing index), from the table of known models, or from one
    request.
    """
    provider = config.provider
    if provider is None:
        raise ConfigurationError(f"{config.name!r} is not a hosted embedder.")
    if not config.api_key:
        raise ConfigurationError(f"{config.name!r} needs a key: set {provider.key_variable}.")
    # Importing the client takes a second. In a thread, everything else loads at the same time.
    service = await asyncio.to_thread(provider.build, config)
    try:
        dimension = config.known_model.dimension
        if embedder_id and embedder_id.model == config.name:
            dimension = embedder_id.dimension
        dimension = dimension or await _measure_dimension(service, config)
        embedder = HostedEmbedder(service, EmbedderId(config.name, dimension), config.limits)
        try:
            yield embedder
        finally:
            await embedder.close()
    finally:
        await service.close()


async def _measure_dimension(service: EmbeddingService, config: EmbedderConfig) -> int:
    embedder = HostedEmbedder(service, EmbedderId(config.name, 0), config.limits)
    try:
        return len(await embedder.embed_query("How many dimensions?"))
    finally:
        await embedder.close()
