"""Providers of models: which one to use, by the configured keys and addresses."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from bythebook.errors import ConfigurationError

Mode = Literal["auto", "tool", "prefetch"]

OPENAI_URL = "https://api.openai.com/v1"
OPENROUTER_URL = "https://openrouter.ai/api/v1"
GROQ_URL = "https://api.groq.com/openai/v1"

# In order of priority: the environment variable of the key, the provider, its address and its default model.
_BY_KEY = (
    ("OPENAI_API_KEY", "OpenAI", OPENAI_URL, "gpt-4o-mini"),
    ("OPENROUTER_API_KEY", "OpenRouter", OPENROUTER_URL, "meta-llama/llama-3.2-3b-instruct:free"),
    ("GROQ_API_KEY", "Groq", GROQ_URL, "llama-3.3-70b-versatile"),
)
NO_KEY_NEEDED = "none"


@dataclass(frozen=True, slots=True)
class Provider:
    """An OpenAI-compatible endpoint and the model to use there."""

    name: str
    base_url: str
    api_key: str
    model: str

    def __repr__(self) -> str:
        return f"Provider({self.name!r}, {self.base_url!r}, model={self.model!r})"

    @property
    def calls_tools(self) -> bool:
        """Whether its models are expected to support tools. Small local models mostly do not."""
        return self.name in {"OpenAI", "OpenRouter", "Groq"}


def detect_provider(
    keys: Mapping[str, str], *, base_url: str = "", api_key: str = "", model: str = ""
) -> Provider | None:
    """The provider to use. None if nothing is configured: answers are then extractive.

    An address has priority; without one, the first key that is set decides.
    """
    if base_url:
        return _provider_at(keys, base_url, api_key=api_key, model=model)
    for variable, name, url, default in _BY_KEY:
        if found := (api_key if name == "OpenAI" and api_key else keys.get(variable, "").strip()):
            return Provider(name, url, found, model or default)
    if model:
        names = ", ".join(variable for variable, *_ in _BY_KEY)
        raise ConfigurationError(
            f"the model {model!r} needs a provider: set one of {names}, or base_url for a model of your own."
        )
    return None


def _provider_at(keys: Mapping[str, str], base_url: str, *, api_key: str, model: str) -> Provider:
    if urlsplit(base_url).scheme not in {"http", "https"}:
        raise ConfigurationError(f"base_url must be an http(s) address, not {base_url!r}.")
    for variable, name, url, default in _BY_KEY:
        if urlsplit(url).hostname == urlsplit(base_url).hostname:
            key = api_key or keys.get(variable, "").strip()
            if not key:
                raise ConfigurationError(f"{name} needs a key: set {variable}.")
            return Provider(name, base_url, key, model or default)
    key = api_key or keys.get("OPENAI_API_KEY", "").strip() or NO_KEY_NEEDED
    # The name and password that an address may contain are not part of the provider's name.
    return Provider(urlsplit(base_url).netloc.rpartition("@")[2], base_url, key, model or "default")
