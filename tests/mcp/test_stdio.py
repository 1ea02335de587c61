"""`bythebook mcp`, started by the official client as a program would start it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from mcp import Client, StdioServerParameters

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_client_starts_the_server_and_asks_it(shelved: Path, model_folder: Path, tmp_path: Path) -> None:
    started = StdioServerParameters(
        command=sys.executable,
        args=["-m", "bythebook", "mcp", "--data-dir", str(shelved)],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "BYTHEBOOK_MODEL_FOLDER": str(model_folder)}
        | {"BYTHEBOOK_DATABASE_URL": f"sqlite:///{tmp_path}/kept.db"},
        cwd=tmp_path,
    )
    async with Client(started) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["search_book", "ask_book"]
        result = await client.call_tool("ask_book", {"query": "How often does the horn sound in fog?"})
        assert result.structured_content["outcome"] == "answered"
        assert len((await client.list_resources()).resources) == 5


def test_without_an_index_only_a_message_is_printed(model_folder: Path, tmp_path: Path) -> None:
    """It starts all the same: a book may be read in while a program waits. Standard output has the protocol only."""
    ask = '{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", '
    ask += '"capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}\n'
    done = subprocess.run(
        [sys.executable, "-m", "bythebook", "mcp"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "BYTHEBOOK_MODEL_FOLDER": str(model_folder)},
        input=ask,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stdout.count("\n")) == (0, 1)
    assert '"serverInfo":{"name":"bythebook"' in done.stdout
