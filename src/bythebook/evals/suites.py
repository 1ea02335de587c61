"""The table of suites."""

import time
from dataclasses import replace
from importlib import import_module

from bythebook.errors import InputError
from bythebook.evals import EvalRequest, EvalResult

# The key is also the module, which is imported when the suite runs: the command line must start fast.
SUITES = {
    "retrieval": "Measure retrieval, and BM25 and vectors on their own for comparison.",
    "followups": "Measure how well follow-up questions are rewritten without a model.",
    "refusal": "Measure how well questions are refused that the documents do not answer.",
    "answers": "Measure how often the sentences of an answer contain the marked answer.",
    "proof": "Measure how well supported claims are separated from others.",
}


async def run_suite(name: str, request: EvalRequest) -> EvalResult:
    """Run a suite. The result includes the seed and the seconds."""
    for path in (request.path, request.foreign):
        if path and not path.exists():
            raise InputError(f"there is no {str(path)!r}. docs/quality.md names the sources of the datasets.")
    started = time.perf_counter()
    result: EvalResult = await import_module(f"bythebook.evals.{name}").measure(request)
    run = {"seed": request.seed, "seconds": round(time.perf_counter() - started, 1)}
    return replace(result, metrics={**result.metrics, **run})
