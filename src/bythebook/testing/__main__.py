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
    faults = list(dict.fromkeys([*map(str, testing.Fault), *map(str, testing.EmbeddingFault)]))
    parser.add_argument("--fault", action="append", choices=faults, help="inject only this fault; may be repeated")
    parser.add_argument(
        "--quirk", action="append", type=testing.Quirk, choices=list(testing.Quirk), default=[], help="may be repeated"
    )
    parser.add_argument(
        "--text", default="", help="a fixed answer; by default the server answers from the passages in the prompt"
    )
    parser.add_argument("--delay-first", type=float, default=0.0, metavar="S", help="seconds to the first word")
    parser.add_argument("--delay-token", type=float, default=0.0, metavar="S", help="seconds to each further word")
    parser.add_argument(
        "--embeddings", action="store_true", help="serve embeddings instead, with the APIs of Cohere and OpenAI"
    )
    parser.add_argument("--dimension", type=int, default=1024, metavar="N", help="the dimension of the vectors")
    parser.add_argument(
        "--per-minute",
        type=int,
        default=0,
        metavar="N",
        help="the maximum number of embedding requests per minute, as for a trial key",
    )
    parser.add_argument("--key", default="", help="the API key to accept; by default any")
    return parser.parse_args(arguments)


async def serve(chosen: argparse.Namespace) -> None:
    async with (_embeddings if chosen.embeddings else _completions)(chosen) as server:
        address = server.cohere_url if isinstance(server, testing.ScriptedEmbeddings) else server.base_url
        sys.stderr.write(f"Listening on {address}, Ctrl-C to stop.\n")
        sys.stderr.flush()
        try:
            await _wait_for_signal()
        finally:
            counts = ", ".join(f"{name} {count}" for name, count in server.counters.most_common())
            sys.stderr.write(f"\n{counts or 'No requests.'}\n")


def _embeddings(chosen: argparse.Namespace) -> testing.ScriptedEmbeddings:
    reply = testing.EmbeddingReply(delay=chosen.delay_first, retry_after="0")
    kinds = tuple(map(testing.EmbeddingFault, chosen.fault)) if chosen.fault else tuple(testing.EmbeddingFault)
    return testing.ScriptedEmbeddings(
        testing.EmbeddingFaults(chosen.fail, seed=chosen.seed, kinds=kinds, otherwise=reply),
        dimension=chosen.dimension,
        key=chosen.key,
        quota=testing.RequestQuota(chosen.per_minute) if chosen.per_minute else None,
        port=chosen.port,
    )


def _completions(chosen: argparse.Namespace) -> testing.ScriptedServer:
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
