"""A server for the tests of the web."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bythebook.testing import Script
from served import Served, Serving, serving, settings_for


@pytest.fixture
def served(shelved: Path, model_folder: Path, tmp_path: Path) -> Serving:
    """The small book on the network: `async with served(script, setting=value) as book`."""

    @asynccontextmanager
    async def serve(script: Script | None = None, **more: object) -> AsyncIterator[Served]:
        async with serving(settings_for(shelved, model_folder, tmp_path, **more), script=script) as found:
            yield found

    return serve
