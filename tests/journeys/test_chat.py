"""`bythebook chat` at a pseudo-terminal: input, output, and the keys that stop it."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from bythebook.testing import ScriptedReply, ScriptedServer

PATIENCE = 60.0
PROMPT = re.compile(rb"\n(?:\x1b\[\?2004h)?> ")
CTRL_C, CTRL_D = b"\x03", b"\x04"
HORN = "The horn gives two blasts of three seconds every ninety seconds."

Chat = Callable[..., "Terminal"]


class Terminal:
    """A pseudo-terminal that runs a program."""

    def __init__(self, process: subprocess.Popen[bytes], screen: int) -> None:
        self._process = process
        self._screen = screen
        self._shown = b""

    def type(self, text: str) -> None:
        os.write(self._screen, text.encode() + b"\r")

    def press(self, key: bytes) -> None:
        os.write(self._screen, key)

    def until(self, text: str | re.Pattern[bytes]) -> None:
        """Read until this text appears after the previous match."""
        wanted = re.compile(re.escape(text.encode())) if isinstance(text, str) else text
        end = time.monotonic() + PATIENCE
        while not (found := wanted.search(self._shown)):
            assert time.monotonic() < end, f"never shown: {text!r}. Shown was {self._shown!r}"
            self._read()
        self._shown = self._shown[found.end() :]

    def left_by(self, key: bytes) -> int:
        """Press this key until the program ends, and return its exit code."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with suppress(OSError):  # the program is exiting and has closed the terminal
                self.press(key)
            with suppress(subprocess.TimeoutExpired):
                return self._process.wait(5.0)
            self._read()
        raise AssertionError(f"it goes on. Shown was {self._shown!r}")

    def _read(self) -> None:
        if select.select([self._screen], [], [], 1.0)[0]:
            try:
                self._shown += os.read(self._screen, 65536)
            except OSError:
                self._process.wait(PATIENCE)


@contextmanager
def running(command: list[str], *, folder: Path, environment: dict[str, str]) -> Iterator[Terminal]:
    """Start the program at a new pseudo-terminal with SIGINT ignored, like a background process."""
    screen, keyboard = pty.openpty()

    def take_the_terminal() -> None:
        fcntl.ioctl(keyboard, termios.TIOCSCTTY, 0)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=keyboard,
        stdout=keyboard,
        stderr=keyboard,
        start_new_session=True,
        preexec_fn=take_the_terminal,  # noqa: PLW1509
    ) as process:
        os.close(keyboard)
        try:
            yield Terminal(process, screen)
        finally:
            process.kill()
            os.close(screen)


@pytest.fixture
def chat(shelved: Path, model_folder: Path, tmp_path: Path) -> Iterator[Chat]:
    """`bythebook chat` with the small book and further arguments."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "TERM": "xterm",
        "BYTHEBOOK_MODEL_FOLDER": str(model_folder),
        "BYTHEBOOK_DATABASE_URL": f"sqlite:///{tmp_path / 'talks.db'}",
        "BYTHEBOOK_FIRST_TOKEN_SECONDS": "60",
        "BYTHEBOOK_ANSWER_SECONDS": "120",
    }

    with ExitStack() as stack:

        def start(*arguments: str) -> Terminal:
            command = [sys.executable, "-m", "bythebook", "chat", "--data-dir", str(shelved), *arguments]
            return stack.enter_context(running(command, folder=tmp_path, environment=environment))

        yield start


@pytest.mark.parametrize(
    ("key", "code"), [pytest.param(CTRL_C, 130, id="Ctrl-C"), pytest.param(CTRL_D, 0, id="Ctrl-D")]
)
def test_a_key_at_the_prompt_exits(chat: Chat, key: bytes, code: int) -> None:
    terminal = chat()
    terminal.until(PROMPT)
    assert terminal.left_by(key) == code


async def test_ctrl_c_stops_an_answer_but_not_the_conversation(chat: Chat) -> None:
    slow = ScriptedReply("Slowly the mantle " + "burns " * 500, delay_token=0.2)
    async with ScriptedServer([ScriptedReply(f"{HORN} [1]"), slow]) as server:
        terminal = chat("--base-url", server.base_url, "--model", "scripted")

        def talk() -> int:
            terminal.until(PROMPT)
            terminal.type("How often does the fog horn sound?")
            terminal.until("every ninety seconds")
            terminal.until(PROMPT)
            terminal.type("How long does a mantle last?")
            terminal.until("Slowly")
            terminal.press(CTRL_C)
            terminal.until("Stopped. The conversation continues.")
            terminal.until(PROMPT)
            terminal.type("/history")
            terminal.until("**Book:** The horn gives two blasts")
            terminal.until(PROMPT)
            return terminal.left_by(CTRL_D)

        assert await asyncio.to_thread(talk) == 0
