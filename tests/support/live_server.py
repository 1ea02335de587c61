"""The book behind a server in a process of its own, as a person starts it: for tests that starve, stop or kill it."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import httpx

import bythebook

PATIENCE = 60.0
"""How long anything may take before a test gives up on it: no test measures time by it."""

UNLIMITED = "1000000/second"

_NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Reading those of the machine takes longer than most tests, and nothing here leaves it."""


@dataclass
class Live:
    """A server that runs, and what there is to know about it from outside."""

    process: subprocess.Popen[str]
    url: str
    log: IO[str]

    @property
    def pid(self) -> int:
        return self.process.pid

    def said(self) -> str:
        """What it has written for the person at the terminal."""
        self.log.seek(0)
        return self.log.read()

    def tell(self, number: int) -> None:
        self.process.send_signal(number)

    def ended(self) -> int:
        """Its exit code, once it has ended."""
        return self.process.wait(PATIENCE)

    def files(self) -> int:
        """How many file handles it has open, connections among them."""
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    def memory(self) -> int:
        """How many bytes it really uses."""
        lines = Path(f"/proc/{self.pid}/smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss_Anon:"))

    def children(self) -> list[int]:
        """The processes it has started."""
        return [int(pid) for pid in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()]


@contextmanager
def live(folder: Path, *arguments: str | Path, **settings: object) -> Iterator[Live]:
    """A server started in this folder with these settings, killed at the end if it still runs."""
    with tempfile.TemporaryFile("w+") as log:
        process = start(folder, *arguments, log=log, **settings)
        if process.stdout is None:
            raise AssertionError("its output is a pipe")
        try:
            line = process.stdout.readline()
            log.seek(0)
            assert line, f"the server did not start: {log.read()}"
            yield Live(process, json.loads(line)["url"], log)
        finally:
            process.kill()
            process.communicate()


def start(folder: Path, *arguments: str | Path, log: IO[str], **settings: object) -> subprocess.Popen[str]:
    chosen = {"port": 0, "rate_limit_address": UNLIMITED, "rate_limit_key": UNLIMITED, "log_level": "warning"}
    variables = {f"BYTHEBOOK_{name.upper()}": str(value) for name, value in (chosen | settings).items()}
    source = str(Path(bythebook.__file__).parents[1])
    return subprocess.Popen(
        [sys.executable, "-m", "bythebook", "serve", "--json", *map(str, arguments)],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": source, **variables},
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
    )


@asynccontextmanager
async def reading(url: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client for any number of readers."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(
        base_url=url, timeout=PATIENCE, limits=limits, trust_env=False, verify=_NO_CERTIFICATES
    ) as client:
        yield client


async def session(client: httpx.AsyncClient) -> str:
    """The id of a new session."""
    response = await client.post("/v1/sessions")
    assert response.status_code == 201, response.text
    return str(response.json()["id"])


async def ask(client: httpx.AsyncClient, query: str, **more: Any) -> httpx.Response:
    return await client.post("/v1/ask", json={"query": query, **more})


@dataclass(frozen=True, slots=True)
class Told:
    """What a reader was told, and how it ended: `answer`, `error`, or `cut` where it did not end as it should."""

    end: str
    data: Any
    text: str

    @property
    def code(self) -> str:
        return str(self.data["error"]) if self.end == "error" else ""


async def stream(client: httpx.AsyncClient, query: str, **more: Any) -> Told:
    """Ask and listen to the end, whatever it is."""
    told: list[str] = []
    name = ""
    try:
        async with client.stream("POST", "/v1/ask", json={"query": query, "stream": True, **more}) as response:
            if response.status_code != 200:
                return Told("error", json.loads(await response.aread()), "")
            async for line in response.aiter_lines():
                field, _, value = line.partition(": ")
                if field == "event":
                    name = value
                elif field == "data" and name == "delta":
                    told.append(json.loads(value)["text"])
                elif field == "data" and name in ("answer", "error"):
                    return Told(name, json.loads(value), "".join(told))
    except httpx.TransportError as error:
        return Told("cut", repr(error), "".join(told))
    return Told("cut", None, "".join(told))


async def eventually(condition: Callable[[], Awaitable[bool] | bool], what: str) -> None:
    """Wait until it is so, however slow the machine is."""
    loop = asyncio.get_running_loop()
    until = loop.time() + PATIENCE
    while loop.time() < until:
        with suppress(httpx.TransportError):
            found = condition()
            if found if isinstance(found, bool) else await found:
                return
        await asyncio.sleep(0.05)
    raise AssertionError(f"never: {what}")


async def is_ready(client: httpx.AsyncClient) -> bool:
    return (await client.get("/health/ready")).status_code == 200
