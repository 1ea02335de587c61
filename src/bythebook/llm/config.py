"""The configuration of the agent. Names, defaults and bounds are those of the data model."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from bythebook.errors import ConfigurationError
from bythebook.llm.prompts import SYSTEM
from bythebook.llm.providers import Mode, Provider, detect_provider

Unsupported = Literal["remove", "mark"]
Followups = Literal["auto", "model", "rule"]

# The usual environment variables of these settings, in addition to our own.
ALIASES = {
    "OPENAI_MODEL": "model",
    "OPENAI_BASE_URL": "base_url",
    "AGENT_TOP_K": "retrieval_top_k",
    "AGENT_SCORE_THRESHOLD": "retrieval_threshold",
    "AGENT_MAX_TURNS": "max_conversation_turns",
    "COHERE_API_KEY": "cohere_api_key",
    "QDRANT_URL": "qdrant_url",
    "QDRANT_API_KEY": "qdrant_api_key",
    "OPENAI_API_KEY": "openai_api_key",
    "OPENROUTER_API_KEY": "openrouter_api_key",
    "GROQ_API_KEY": "groq_api_key",
}
_NUMBERS = {"retrieval_top_k": int, "retrieval_threshold": float, "max_conversation_turns": int}


def _number(default: float, *, least: float, most: float) -> Any:
    """A field with bounds. `BOUNDS` lists them all; the settings of the same names read them there."""
    return field(default=default, metadata={"least": least, "most": most})


def _key() -> Any:
    return field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """The options of the agent. Frozen: created once, with the agent."""

    model: str = ""
    base_url: str = ""
    api_key: str = _key()
    openai_api_key: str = _key()
    openrouter_api_key: str = _key()
    groq_api_key: str = _key()
    system_prompt: str = SYSTEM
    temperature: float = _number(0.7, least=0.0, most=2.0)
    max_tokens: int = _number(1000, least=1, most=4096)
    context_window: int = 8192
    retrieval_top_k: int = _number(5, least=1, most=20)
    retrieval_threshold: float | Literal["auto"] = "auto"
    retrieval_mode: Mode = "auto"
    max_history: int = _number(20, least=1, most=100)
    max_conversation_turns: int = 50
    excerpt_characters: int = _number(0, least=0, most=100_000)
    cohere_api_key: str = _key()
    qdrant_url: str = ""
    qdrant_api_key: str = _key()
    collection_name: str = "web_documents"
    unsupported: Unsupported = "remove"
    followups: Followups = "auto"
    first_token_seconds: float = _number(5.0, least=0.1, most=3600.0)
    answer_seconds: float = _number(30.0, least=0.1, most=3600.0)
    verbose: bool = False
    """Log everything to standard error."""

    def __post_init__(self) -> None:
        for flaw in self._flaws():
            raise ConfigurationError(flaw)

    def _flaws(self) -> Iterator[str]:
        for name in ("max_tokens", "context_window", "retrieval_top_k", "max_history", "max_conversation_turns"):
            if type(getattr(self, name)) is not int:
                yield f"{name} must be a whole number, not {getattr(self, name)!r}."
        for name, (least, most) in BOUNDS.items():
            if not least <= getattr(self, name) <= most:
                yield f"{name} must be from {least} to {most}, not {getattr(self, name)}."
        if self.max_tokens >= self.context_window:
            yield f"max_tokens ({self.max_tokens}) must be less than context_window ({self.context_window})."
        if self.retrieval_threshold != "auto" and not 0.0 <= self.retrieval_threshold <= 1.0:
            yield f"retrieval_threshold must be 'auto' or from 0 to 1, not {self.retrieval_threshold}."
        if self.max_conversation_turns < 1:
            yield f"max_conversation_turns must be positive, not {self.max_conversation_turns}."
        if self.followups == "model" and self.provider is None:
            yield "followups is 'model', but no model is set. Name one with base_url or a key, or use 'auto'."
        if not self.system_prompt.strip():
            yield "system_prompt is empty."

    @property
    def provider(self) -> Provider | None:
        """The provider of the model; None if none is configured. Raises ConfigurationError if an option is missing."""
        keys = {
            "OPENAI_API_KEY": self.openai_api_key,
            "OPENROUTER_API_KEY": self.openrouter_api_key,
            "GROQ_API_KEY": self.groq_api_key,
        }
        return detect_provider(keys, base_url=self.base_url, api_key=self.api_key, model=self.model)

    @classmethod
    def from_env(cls, environment: Mapping[str, str] = os.environ) -> "AgentConfig":
        """Read the environment variables that the data model names."""
        given: dict[str, Any] = {}
        for variable, name in ALIASES.items():
            if value := environment.get(variable, "").strip():
                try:
                    given[name] = _NUMBERS.get(name, str)(value)
                except ValueError as exc:
                    raise ConfigurationError(f"{variable} cannot be {value!r}: {exc}") from exc
        return cls(**given)


BOUNDS: Mapping[str, tuple[float, float]] = {
    known.name: (known.metadata["least"], known.metadata["most"])
    for known in fields(AgentConfig)
    if "least" in known.metadata
}
"""The least and the greatest value of each option that has bounds."""
