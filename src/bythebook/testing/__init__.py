"""Testing: what we test with, for you to test with too.

`ScriptedServer` is a real HTTP server on a real socket that speaks OpenAI's chat completions. It says what a script
tells it to, in any provider's dialect, and fails in every way a provider fails, as often as you like and the same way
each time. `python -m bythebook.testing` runs it on its own. `ScriptedEmbeddings` does the same for vectors, in the
words of Cohere and of OpenAI. The manual is `docs/testing.md`.
"""

from bythebook.testing.clock import SkippingLoop, StandingLoop, skipping_time, standing_time
from bythebook.testing.embeddings import (
    Allowance,
    EmbeddingFault,
    EmbeddingFaults,
    EmbeddingReply,
    EmbeddingRequest,
    ScriptedEmbeddings,
)
from bythebook.testing.faults import Faults
from bythebook.testing.replies import EVERYDAY_FAULTS, Fault, Quirk, Reply, Request, Script, ToolCall, Usage
from bythebook.testing.scripted_models import cooperative_model, injectable_model
from bythebook.testing.server import Exchange, ScriptedServer

__all__ = [
    "EVERYDAY_FAULTS",
    "Allowance",
    "EmbeddingFault",
    "EmbeddingFaults",
    "EmbeddingReply",
    "EmbeddingRequest",
    "Exchange",
    "Fault",
    "Faults",
    "Quirk",
    "Reply",
    "Request",
    "Script",
    "ScriptedEmbeddings",
    "ScriptedServer",
    "SkippingLoop",
    "StandingLoop",
    "ToolCall",
    "Usage",
    "cooperative_model",
    "injectable_model",
    "skipping_time",
    "standing_time",
]
