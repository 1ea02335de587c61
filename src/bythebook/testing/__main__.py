"""`python -m bythebook.testing`: the scripted server on its own."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from bythebook.testing import EVERYDAY_FAULTS, Fault, Faults, Quirk, Reply, ScriptedServer, obedient

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bythebook.testing import Request


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bythebook.testing", description="A model server that fails on demand."
    )
    parser.add_argument("--port", type=int, default=8181)
    parser.add_argument(
        "--fail", type=float, default=0.0, metavar="RATE", help="the share of requests that fail, 0 to 1"
    )
    parser.add_argument("--seed", type=int, default=0, help="the same seed fails the same way")
    parser.add_argument("--fault", action="append", type=Fault, choices=list(Fault), help="only these, may be repeated")
    parser.add_argument("--quirk", action="append", type=Quirk, choices=list(Quirk), default=[], help="may be repeated")
    parser.add_argument("--text", default="", help="always say this; otherwise answer from the passages in the prompt")
    parser.add_argument("--delay-first", type=float, default=0.0, metavar="S", help="seconds to the first word")
    parser.add_argument("--delay-token", type=float, default=0.0, metavar="S", help="seconds to each further word")
    parser.add_argument("--key", default="", help="the only API key to accept; any, unless given")
    return parser.parse_args(arguments)


async def serve(chosen: argparse.Namespace) -> None:
    def script(request: Request) -> Reply:
        reply = Reply(chosen.text) if chosen.text else obedient(request)
        return replace(reply, delay_first=chosen.delay_first, delay_token=chosen.delay_token)

    faults = Faults(chosen.fail, seed=chosen.seed, kinds=tuple(chosen.fault or EVERYDAY_FAULTS))
    server = ScriptedServer(script, faults=faults, quirks=chosen.quirk, key=chosen.key, port=chosen.port)
    async with server:
        sys.stderr.write(f"Listening on {server.base_url}, Ctrl-C to stop.\n")
        try:
            await _told_to_stop()
        finally:
            counts = ", ".join(f"{name} {count}" for name, count in server.counters.most_common())
            sys.stderr.write(f"\n{counts or 'Nobody came.'}\n")


async def _told_to_stop() -> None:
    stop = asyncio.Event()
    with suppress(NotImplementedError):  # Windows has no such signal; Ctrl-C works there all the same.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(serve(parse(sys.argv[1:])))
