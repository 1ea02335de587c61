"""`python -m bythebook.testing`, as a user runs it."""

from __future__ import annotations

import asyncio
import re
import sys

import openai
from openai import AsyncOpenAI

import bythebook.testing

MESSAGES = [{"role": "user", "content": "Hello?"}]


async def outcomes(client: AsyncOpenAI, count: int) -> list[str]:
    said = []
    for _ in range(count):
        try:
            answer = await client.chat.completions.create(model="m", messages=MESSAGES)  # type: ignore[arg-type]
            said.append(answer.choices[0].message.content or "")
        except openai.APIStatusError as exc:
            said.append(str(exc.status_code))
    return said


async def test_the_command_runs_a_server_with_reproducible_faults() -> None:
    command = [
        "-m",
        "bythebook.testing",
        "--port",
        "0",
        "--fail",
        "0.5",
        "--seed",
        "7",
        "--fault",
        "500",
        "--text",
        "Yes.",
    ]
    runs = []
    for _ in range(2):
        server = await asyncio.create_subprocess_exec(sys.executable, *command, stderr=asyncio.subprocess.PIPE)
        assert server.stderr
        heard = await server.stderr.readline()
        address = re.search(r"http://\S+/v1", heard.decode())
        assert address
        async with AsyncOpenAI(base_url=address.group(), api_key="any", max_retries=0) as client:
            runs.append(await outcomes(client, 12))
        server.terminate()
        rest = await server.stderr.read()
        assert await server.wait() == 0
        assert f"500 {runs[-1].count('500')}".encode() in rest
    assert runs[0] == runs[1]
    assert set(runs[0]) == {"Yes.", "500"}


async def test_an_unknown_fault_is_a_usage_error() -> None:
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bythebook.testing", "--fault", "flood", stderr=asyncio.subprocess.PIPE
    )
    _, heard = await server.communicate()
    assert server.returncode == 2
    assert b"half-close" in heard


def test_every_public_name_exists() -> None:
    assert all(hasattr(bythebook.testing, name) for name in bythebook.testing.__all__)
