"""The command line. Answers go to standard output, everything else to standard error.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 finished with some pages skipped, 130 interrupted.
"""

from __future__ import annotations

import gc
import os
import sys

from bythebook.cli import ask
from bythebook.cli.console import FAILED, WRONG, complain, leave, say
from bythebook.errors import BookError, ConfigurationError, InputError


def main() -> None:
    """Run the command line; a failure becomes a message and an exit code."""
    # A process can be started with its streams closed: what it says then goes nowhere.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115, PTH123 - open until the process ends
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115, PTH123
    try:
        _run()
    except BookError as error:
        complain(error, as_object="--json" in sys.argv)
        sys.exit(WRONG if isinstance(error, ConfigurationError | InputError) else FAILED)
    except BrokenPipeError:
        _say_no_more()  # Whoever was reading has left.
        sys.exit(FAILED)
    except OSError as error:
        if error.filename is None:
            _say_no_more()
            say(f"error: it could not be written down: {error.strerror or error}.")
            sys.exit(FAILED)
        reason = ConfigurationError(f"{str(error.filename)!r} cannot be used: {error.strerror}. Check the path.")
        complain(reason, as_object="--json" in sys.argv)
        sys.exit(WRONG)


def _say_no_more() -> None:
    """Let go of standard output: Python would complain once more when it closes the stream."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run() -> None:
    if asked := ask.read(sys.argv[1:]):
        # One answer and the process is gone: what little garbage it makes need not be looked for.
        gc.disable()
        # The model, the index and the imports load side by side; whoever waits for its turn must not wait long.
        sys.setswitchinterval(0.0005)
        # No large matrix is ever multiplied: threads for that would only have to be started.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        ask.answer(asked, then=leave)
    else:
        from bythebook.cli.app import app

        app()
