"""Servers for the tests of the web: one that all share, and others with settings of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from bythebook.testing import CompletionRequest, CompletionScript, ScriptedReply
from tests.support.server import ServeBook, ServedBook, serve_book, settings_for

HORN = "The horn gives two blasts of three seconds every ninety seconds."


@pytest.fixture
def served(shelved: Path, model_folder: Path, tmp_path: Path) -> ServeBook:
    """The small book on the network: `async with served(script, setting=value) as book`."""

    @asynccontextmanager
    async def serve(script: CompletionScript | None = None, **more: object) -> AsyncIterator[ServedBook]:
        async with serve_book(settings_for(shelved, model_folder, tmp_path, **more), script=script) as found:
            yield found

    return serve


@dataclass(slots=True)
class Part:
    """What the model of the shared server says; a test may give it other words."""

    reply: ScriptedReply

    def __call__(self, _request: CompletionRequest) -> ScriptedReply:
        return self.reply


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def shared(
    shelved: Path, model_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[ServedBook, Part]]:
    folder = tmp_path_factory.mktemp("shared")
    part = Part(ScriptedReply(f"{HORN} [1]"))
    settings = settings_for(shelved, model_folder, folder, retrieval_mode="prefetch", heartbeat_seconds=0.2)
    async with serve_book(settings, script=part) as found:
        yield found, part


@pytest.fixture
def house(shared: tuple[ServedBook, Part]) -> ServedBook:
    """The book on the network, with a model that answers well. Mark the module with `loop_scope="session"`."""
    served, part = shared
    part.reply = ScriptedReply(f"{HORN} [1]")
    return served


@pytest.fixture
def part(shared: tuple[ServedBook, Part]) -> Part:
    return shared[1]
