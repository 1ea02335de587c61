"""Scripted servers and virtual clocks for tests. The manual is `docs/testing.md`.

`ScriptedServer` is a real HTTP server on a local socket with the API of OpenAI's chat completions. Its replies are
scripted, it imitates the quirks of other providers, and it injects faults reproducibly. `ScriptedEmbeddings` does the
same for the embedding APIs of Cohere and OpenAI. `python -m bythebook.testing` runs a server.
"""

from bythebook.testing.clock import AutojumpLoop, ManualClockLoop, autojump_clock, manual_clock
from bythebook.testing.completions import (
    DEFAULT_FAULTS,
    CompletionRequest,
    CompletionScript,
    Fault,
    Faults,
    Quirk,
    RecordedExchange,
    ScriptedReply,
    ScriptedServer,
    ScriptedToolCall,
    ScriptedUsage,
)
from bythebook.testing.embeddings import (
    EmbeddingFault,
    EmbeddingFaults,
    EmbeddingReply,
    EmbeddingRequest,
    RequestQuota,
    ScriptedEmbeddings,
)
from bythebook.testing.scripted_models import cooperative_model, injectable_model

__all__ = [
    "DEFAULT_FAULTS",
    "AutojumpLoop",
    "CompletionRequest",
    "CompletionScript",
    "EmbeddingFault",
    "EmbeddingFaults",
    "EmbeddingReply",
    "EmbeddingRequest",
    "Fault",
    "Faults",
    "ManualClockLoop",
    "Quirk",
    "RecordedExchange",
    "RequestQuota",
    "ScriptedEmbeddings",
    "ScriptedReply",
    "ScriptedServer",
    "ScriptedToolCall",
    "ScriptedUsage",
    "autojump_clock",
    "cooperative_model",
    "injectable_model",
    "manual_clock",
]
