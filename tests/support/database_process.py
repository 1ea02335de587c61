"""A process that uses a conversation database beside the tests. It says what it has done, a line at a time.

python another_process.py URL open               opens the database
python another_process.py URL begin ID           begins a turn, and waits to be killed
python another_process.py URL talk ID TURNS      asks and answers so often, and says the number of each turn
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from bythebook.conversations import Message
from bythebook.conversations.store import open_conversations


def spawn(*arguments: str) -> subprocess.Popen[str]:
    """Another process with these arguments, which can be spoken to."""
    command = [sys.executable, str(Path(__file__)), *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def say(line: object) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def run(url: str, task: str, *rest: str) -> None:
    async with open_conversations(url) as conversations:
        say("open")
        if task == "begin":
            turn, _ = await conversations.begin_turn(rest[0], "What is ROS 2?", user_id="")
            say(turn.number)
            sys.stdin.read()
        for _ in range(int(rest[1]) if task == "talk" else 0):
            turn, _ = await conversations.begin_turn(rest[0], "What is ROS 2?", user_id="")
            done = turn.complete({"number": turn.number}, retrieval_results=(), duration_seconds=0.1)
            exchange = [Message("user", turn.question), Message("assistant", f"Answer {turn.number}.")]
            await conversations.finish_turn(done, exchange)
            say(turn.number)


if __name__ == "__main__":
    asyncio.run(run(*sys.argv[1:]))
