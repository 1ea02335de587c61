"""A process that asks beside others: it waits for a word, sends all its requests at once, and says how many passed.

python another_process.py URL REQUESTS MOST
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from bythebook.access import RateLimit
from bythebook.access.rate_limiter import RateLimiter
from bythebook.database.engine import open_database
from bythebook.errors import RateLimited


def spawn(url: str, requests: int, most: int) -> subprocess.Popen[str]:
    command = [sys.executable, str(Path(__file__)), url, str(requests), str(most)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


async def passes(rates: RateLimiter, requests: int, most: int) -> int:
    """How many of so many requests at once pass a limit of so many an hour."""

    async def try_once() -> bool:
        try:
            await rates.hit("address:192.0.2.1", RateLimit(most, 3600))
        except RateLimited:
            return False
        return True

    return sum(await asyncio.gather(*(try_once() for _ in range(requests))))


async def run(url: str, requests: int, most: int) -> None:
    async with open_database(url) as database:
        sys.stdout.write("open\n")
        sys.stdout.flush()
        sys.stdin.readline()
        sys.stdout.write(f"{await passes(RateLimiter(database), requests, most)}\n")


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
