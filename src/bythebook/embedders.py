"""The embedders of a book: the one that finds, and the local one that reads closely what was found."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from bythebook.errors import ConfigurationError
from bythebook.vectors import installed
from bythebook.vectors.local import local_embedder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AsyncExitStack
    from pathlib import Path

    from bythebook.vectors import Identity
    from bythebook.vectors.choice import Choice
    from bythebook.vectors.hosted import HostedEmbedder
    from bythebook.vectors.local import LocalEmbedder
    from bythebook.vectors.session import Begun


async def open_hosted(choice: Choice, made_with: Identity | None, stack: AsyncExitStack) -> HostedEmbedder | None:
    """The embedder that was chosen, open until `stack` closes; None where it is the local one."""
    if choice.is_local:
        return None
    from bythebook.vectors.opening import hosted_embedder

    return await stack.enter_async_context(hosted_embedder(choice, made_with=made_with))


@asynccontextmanager
async def open_local(folder: Path, *, say: Callable[[str], None], begun: Begun | None) -> AsyncIterator[LocalEmbedder]:
    """The embedding model in this folder, which is fetched if it was never used on this machine."""
    try:
        installed.find(folder)
    except ConfigurationError:
        from bythebook.vectors import weights

        await asyncio.to_thread(weights.download, folder, say=say)
    async with local_embedder(folder, begun=begun) as embedder:
        yield embedder
