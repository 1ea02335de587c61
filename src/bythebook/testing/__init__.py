"""A scripted model server for tests. The manual is `docs/testing.md`.

`ScriptedServer` is a real HTTP server on a local socket with the API of OpenAI's chat completions. Its replies are
scripted, it imitates the quirks of other providers, and it injects faults reproducibly.
`python -m bythebook.testing` runs it.
"""

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
from bythebook.testing.scripted_models import cooperative_model, injectable_model

__all__ = [
    "DEFAULT_FAULTS",
    "CompletionRequest",
    "CompletionScript",
    "Fault",
    "Faults",
    "Quirk",
    "RecordedExchange",
    "ScriptedReply",
    "ScriptedServer",
    "ScriptedToolCall",
    "ScriptedUsage",
    "cooperative_model",
    "injectable_model",
]
