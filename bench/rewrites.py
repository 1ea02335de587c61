"""Follow-up questions rewritten by a model to stand alone: python -m bench.rewrites COLLECTION --base-url URL

COLLECTION is a folder of conversations with a person's rewrite of each question, as CANARD or CAsT has them; `--model`
is what the server calls its model. The questions are drawn from those that have others before them. For each, the terms
of the question as it was put, of our rule's text and of the model's are compared with those of the person's rewrite.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import fmean, median
from time import perf_counter
from typing import Any

from bench.rewrite_terms import read_turns, term_overlap
from bythebook.conversations.followups.rules import make_standalone
from bythebook.evals import EvalRequest
from bythebook.evals.metrics import mean_intervals
from bythebook.index.terms import Bm25Terms
from bythebook.llm.client import ChatEndpoint
from bythebook.llm.generator import AnswerGenerator
from bythebook.settings import Settings
from bythebook.upstream.deadline import Deadline

ENOUGH_SECONDS = 600.0
THINKING_SECONDS = 0.2


async def measure(given: argparse.Namespace) -> dict[str, Any]:
    settings = Settings.load({"base_url": given.base_url, "model": given.model, "context_window": 4096})
    config, words = settings.agent_config(), Bm25Terms(100.0)
    if config.provider is None:
        raise SystemExit("a model needs --base-url")
    wanted = EvalRequest(given.collection, settings, lambda *_: None, limit=given.limit)
    asked = wanted.sample([turn for turn in read_turns(given.collection) if turn[2]])
    shared: dict[str, list[float]] = {"last turn": [], "rule": [], "model": []}
    times: list[float] = []
    async with AsyncExitStack() as stack:
        endpoint = ChatEndpoint(config.provider, temperature=0.0, max_tokens=200)
        stack.push_async_callback(endpoint.close)
        generator = AnswerGenerator(config, endpoint)
        for done, (question, rewrite, history) in enumerate(asked, start=1):
            # A pause as of a reader. Some servers close the connection after an answer.
            await asyncio.sleep(THINKING_SECONDS)
            before = perf_counter()
            deadline = Deadline.after(ENOUGH_SECONDS)
            rewritten, *_ = await generator.rewrite_question(question, history, deadline=deadline)
            times.append(perf_counter() - before)
            texts = {"last turn": question, "rule": make_standalone(question, history).text, "model": rewritten.text}
            for name, text in texts.items():
                shared[name].append(term_overlap(words.terms(text), words.terms(rewrite))[2])
            print(f"{done} of {len(asked)}: {question} -> {rewritten.text}", file=sys.stderr)
    told = {name: {"f1": fmean(values)} for name, values in shared.items()}
    return {"questions": len(asked), **told, "intervals": mean_intervals(shared, seed=1), "seconds": median(times)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collection", type=Path)
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--model", default="local")
    parser.add_argument("--limit", type=int, default=60)
    print(json.dumps(asyncio.run(measure(parser.parse_args())), indent=2))


if __name__ == "__main__":
    main()
