"""The model in onnxruntime. All threads of a process share one session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bythebook.errors import ConfigurationError
from bythebook.vectors import installed

if TYPE_CHECKING:
    from concurrent.futures import Future
    from pathlib import Path

    Begun = Future[Any]
    """A session that a thread is already loading."""

_ERRORS_ONLY = 3


def begin(cache: Path) -> Begun | None:
    """Begin to load the weights in `cache`, for a process that waits for little else. None where there are none yet.

    The import keeps the interpreter busy and comes first. Loading leaves it free, so whatever else is imported is
    imported meanwhile.
    """
    try:
        files = installed.find(cache)
    except ConfigurationError:
        return None
    from concurrent.futures import ThreadPoolExecutor

    import onnxruntime  # type: ignore[import-untyped]  # noqa: F401 - for whoever loads

    return ThreadPoolExecutor(1, thread_name_prefix="model").submit(load, files)


def load(files: installed.Installed) -> Any:
    """The session for these weights. Raises ConfigurationError where they cannot be used."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    # The graph was written in its final form and every text has its own length: there is nothing to gain from
    # looking for improvements, from planning memory ahead, or from keeping memory for the longest text seen.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.enable_mem_pattern = options.enable_cpu_mem_arena = False
    options.log_severity_level = _ERRORS_ONLY
    try:
        return onnxruntime.InferenceSession(files.folder / installed.GRAPH, options, providers=["CPUExecutionProvider"])
    except Exception as exc:  # onnxruntime has a dozen unrelated classes for a file it cannot use
        raise installed.damaged(files.folder) from exc
