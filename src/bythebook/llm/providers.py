"""Providers: who runs the model, known from the keys and addresses at hand, and what each can and cannot do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from bythebook.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

Mode = Literal["auto", "tool", "prefetch"]

OPENAI_URL = "https://api.openai.com/v1"
OPENROUTER_URL = "https://openrouter.ai/api/v1"
GROQ_URL = "https://api.groq.com/openai/v1"

# In the order they are looked for: the name a key has in the environment, whose it is, and what is asked for there.
_BY_KEY = (
    ("OPENAI_API_KEY", "OpenAI", OPENAI_URL, "gpt-4o-mini"),
    ("OPENROUTER_API_KEY", "OpenRouter", OPENROUTER_URL, "meta-llama/llama-3.2-3b-instruct:free"),
    ("GROQ_API_KEY", "Groq", GROQ_URL, "llama-3.3-70b-versatile"),
)
NO_KEY_NEEDED = "none"


@dataclass(frozen=True, slots=True)
class Provider:
    """An OpenAI-compatible endpoint and the model that is asked for there."""

    name: str
    base_url: str
    api_key: str
    model: str

    def __repr__(self) -> str:
        return f"Provider({self.name!r}, {self.base_url!r}, model={self.model!r})"

    @property
    def calls_tools(self) -> bool:
        """Whether its models can be expected to call tools. Small local ones mostly cannot."""
        return self.name in {"OpenAI", "OpenRouter", "Groq"}


def detect(keys: Mapping[str, str], *, base_url: str = "", api_key: str = "", model: str = "") -> Provider | None:
    """The provider to use, None when nothing points to one: then the book answers by itself.

    An address decides by itself; without one, the first key that is set does.
    """
    if base_url:
        return _at(keys, base_url, api_key=api_key, model=model)
    for variable, name, url, usual in _BY_KEY:
        if found := (api_key if name == "OpenAI" and api_key else keys.get(variable, "").strip()):
            return Provider(name, url, found, model or usual)
    if model:
        names = ", ".join(variable for variable, *_ in _BY_KEY)
        raise ConfigurationError(
            f"the model {model!r} needs a provider: set one of {names}, or base_url for a model of your own."
        )
    return None


def _at(keys: Mapping[str, str], base_url: str, *, api_key: str, model: str) -> Provider:
    if urlsplit(base_url).scheme not in {"http", "https"}:
        raise ConfigurationError(f"base_url must be an http(s) address, not {base_url!r}.")
    for variable, name, url, usual in _BY_KEY:
        if urlsplit(url).hostname == urlsplit(base_url).hostname:
            key = api_key or keys.get(variable, "").strip()
            if not key:
                raise ConfigurationError(f"{name} needs a key: set {variable}.")
            return Provider(name, base_url, key, model or usual)
    key = api_key or keys.get("OPENAI_API_KEY", "").strip() or NO_KEY_NEEDED
    # Without the name and password an address may begin with.
    return Provider(urlsplit(base_url).netloc.rpartition("@")[2], base_url, key, model or "default")
