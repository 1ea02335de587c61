"""`python -m bythebook.testing`: run a scripted server."""

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from bythebook import testing


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bythebook.testing", description="An OpenAI-compatible server that fails on demand."
    )
    parser.add_argument("--port", type=int, default=8181)
    parser.add_argument(
        "--fail", type=float, default=0.0, metavar="RATE", help="the fraction of requests that fail, 0 to 1"
    )
    parser.add_argument("--seed", type=int, default=0, help="the seed that determines the faults")
    faults = list(map(str, testing.Fault))
    parser.add_argument("--fault", action="append", choices=faults, help="inject only this fault; may be repeated")
    parser.add_argument(
        "--quirk", action="append", type=testing.Quirk, choices=list(testing.Quirk), default=[], help="may be repeated"
    )
    parser.add_argument(
        "--text", default="", help="a fixed answer; by default the server answers from the passages in the prompt"
    )
    parser.add_argument("--delay-first", type=float, default=0.0, metavar="S", help="seconds to the first word")
    parser.add_argument("--delay-token", type=float, default=0.0, metavar="S", help="seconds to each further word")
    parser.add_argument("--key", default="", help="the API key to accept; by default any")
    return parser.parse_args(arguments)


async def serve(chosen: argparse.Namespace) -> None:
    async with _make_server(chosen) as server:
        sys.stderr.write(f"Listening on {server.base_url}, Ctrl-C to stop.\n")
        sys.stderr.flush()
        try:
            await _wait_for_signal()
        finally:
            counts = ", ".join(f"{name} {count}" for name, count in server.counters.most_common())
            sys.stderr.write(f"\n{counts or 'No requests.'}\n")


def _make_server(chosen: argparse.Namespace) -> testing.ScriptedServer:
    def script(request: testing.CompletionRequest) -> testing.ScriptedReply:
        reply = testing.ScriptedReply(chosen.text) if chosen.text else testing.cooperative_model(request)
        return replace(reply, delay_first=chosen.delay_first, delay_token=chosen.delay_token)

    kinds = tuple(map(testing.Fault, chosen.fault)) if chosen.fault else testing.DEFAULT_FAULTS
    faults = testing.Faults(chosen.fail, seed=chosen.seed, kinds=kinds)
    return testing.ScriptedServer(script, faults=faults, quirks=chosen.quirk, key=chosen.key, port=chosen.port)


async def _wait_for_signal() -> None:
    stop = asyncio.Event()
    with suppress(NotImplementedError):  # Windows has no SIGTERM handler; Ctrl-C works there.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(serve(parse(sys.argv[1:])))
