"""Opens installed models: their sessions in onnxruntime and their tokenizers."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from bythebook.errors import BookError, ConfigurationError
from bythebook.models import ModelSpec, install

PendingSession: TypeAlias = Future[Any]
"""A session that a thread is loading."""
_LOG_ERRORS_ONLY = 3
_CACHED_WORDS = 1 << 14
# White space belongs to the word behind it: so every part is split into tokens independently of the others.
_PART = re.compile(r"\s*\S+|\s+$")


def available_cores() -> int:
    """The cores that this process may use. In a container these are often fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def load_session(graph: Path, damaged: Callable[[], BookError]) -> Any:
    """The onnxruntime session of a graph. Raises what `damaged` returns if the file cannot be used."""
    import onnxruntime  # type: ignore[import-untyped]

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    # The graph is written in its final form and every text has its own length. Graph optimisation, memory planning
    # and a memory arena sized for the longest text have no benefit.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.enable_mem_pattern = options.enable_cpu_mem_arena = False
    options.log_severity_level = _LOG_ERRORS_ONLY
    try:
        return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    except Exception as exc:  # onnxruntime raises a dozen unrelated classes for an invalid file
        raise damaged() from exc


def open_session(model: install.InstalledModel) -> Any:
    """The session of an installed model."""
    return load_session(model.folder / install.GRAPH, lambda: install.damage_error(model.spec, model.folder))


def start_loading(cache: Path, spec: ModelSpec) -> PendingSession | None:
    """Start loading the model in `cache` in a thread, for commands that need it at once. None if there is no model.

    Importing onnxruntime holds the interpreter lock and comes first. Loading the session releases it, so other
    modules are imported at the same time.
    """
    try:
        model = install.find(cache, spec)
    except ConfigurationError:
        return None
    import onnxruntime  # noqa: F401 - imported here for load_session

    return ThreadPoolExecutor(1, thread_name_prefix="model").submit(open_session, model)


class BytePairTokenizer:
    """Splits text as the `tokenizer.json` of a RoBERTa model does."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._count_part = lru_cache(_CACHED_WORDS)(lambda part: len(self(part)))

    def __call__(self, text: str) -> list[int]:
        """The token ids of a text, in order."""
        # The tokenizer rejects a text with a lone surrogate.
        valid = text.encode("utf-8", "replace").decode("utf-8")
        return list(self._tokenizer.encode(valid, add_special_tokens=False).ids)

    def count(self, text: str) -> int:
        """The number of tokens. It is cheap, because most words are in the cache."""
        return sum(map(self._count_part, _PART.findall(text)))

    @cached_property
    def _tokenizer(self) -> Any:
        return load_tokenizer(self._file)


def load_tokenizer(file: Path) -> Any:
    """The tokenizer in this file, without padding and truncation."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer
