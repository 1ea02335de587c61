"""The command line. Answers go to standard output, everything else to standard error.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 finished with some pages skipped, 130 interrupted.
"""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING

from bythebook.cli import ask
from bythebook.cli.console import FAILED, USAGE_ERROR, exit_now, report_error, say
from bythebook.errors import BookError, ConfigurationError, InputError

if TYPE_CHECKING:
    from typer import Typer


def main() -> None:
    """Run the command line; a failure becomes a message and an exit code."""
    # A process can be started with closed streams. Its output is discarded then.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115, PTH123 - open until the process ends
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115, PTH123
    try:
        _run()
    except BookError as error:
        report_error(error, as_object="--json" in sys.argv)
        sys.exit(USAGE_ERROR if isinstance(error, ConfigurationError | InputError) else FAILED)
    except BrokenPipeError:
        _discard_stdout()  # The reading process has closed the pipe.
        sys.exit(FAILED)
    except OSError as error:
        if error.filename is None:
            _discard_stdout()
            say(f"error: the output could not be written: {error.strerror or error}.")
            sys.exit(FAILED)
        reason = ConfigurationError(f"{str(error.filename)!r} cannot be used: {error.strerror}. Check the path.")
        report_error(reason, as_object="--json" in sys.argv)
        sys.exit(USAGE_ERROR)


def _discard_stdout() -> None:
    """Redirect standard output to the null device, else Python reports the error again when it closes the stream."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run_app(app: Typer) -> None:
    """Run the typer application. With `--json`, its usage errors are JSON like all others."""
    from typer import BadParameter

    if "--json" not in sys.argv:
        app()
    usage_error: type[Exception] = BadParameter.__base__  # type: ignore[assignment] # typer does not export it
    try:
        sys.exit(app(standalone_mode=False))
    except usage_error as error:
        raise InputError(getattr(error, "format_message", error.__str__)()) from error


def _run() -> None:
    if arguments := ask.parse_arguments(sys.argv[1:]):
        # The process ends after one answer, so garbage collection is not worth its time.
        gc.disable()
        # The model, the index and the modules are loaded in parallel threads. A short switch interval lets all advance.
        sys.setswitchinterval(0.0005)
        # No large matrices are multiplied, so the threads of OpenBLAS would only cost their start.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        ask.answer(arguments, then=exit_now)
    else:
        from bythebook.cli.app import app

        _run_app(app)
