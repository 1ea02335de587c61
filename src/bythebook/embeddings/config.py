"""The configuration of an embedder, and the table of providers of hosted embedders.

A new provider needs a module with an `EmbeddingService`, a row in `PROVIDERS` and a setting for its key.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from bythebook.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bythebook.embeddings.remote import EmbeddingService

LOCAL = "local"
MAX_HEADING_TOKENS = 34
"""Tokens of the model's context window that are reserved for a chunk's heading path."""
_SPECIAL_TOKENS = 2


@dataclass(frozen=True, slots=True)
class HostedModel:
    """The properties of a hosted model that are known before the first request."""

    dimension: int = 0
    """0: unknown, so it is measured with one request."""
    window: int = 8191
    """The context window in tokens."""


@dataclass(frozen=True, slots=True)
class EmbeddingProvider:
    """A provider of hosted embedding models: `NAME:MODEL` selects one."""

    name: str
    service: str
    """The class that implements `EmbeddingService`, as `module:Class`. It is imported when it is first used."""
    key_setting: str
    """The setting that holds the API key. Its environment variable has the same name in upper case."""
    max_batch: int
    """The most texts that the provider accepts in one request."""
    models: Mapping[str, HostedModel] = field(default_factory=dict)
    """Models whose dimension or context window differs from the defaults of `HostedModel`."""
    shares_llm_endpoint: bool = False
    """True if the provider's API is also the API of the language model: `base_url` and `api_key` apply to both."""

    @property
    def key_variable(self) -> str:
        return self.key_setting.upper()

    def build(self, config: EmbedderConfig) -> EmbeddingService:
        """Import the client library, which takes up to a second, and create the service."""
        module, _, name = self.service.partition(":")
        service: EmbeddingService = getattr(import_module(module), name)(config)
        return service


PROVIDERS: Mapping[str, EmbeddingProvider] = {
    provider.name: provider
    for provider in (
        EmbeddingProvider(
            "cohere",
            service="bythebook.embeddings.cohere:CohereService",
            key_setting="cohere_api_key",
            max_batch=96,
            models={
                "embed-english-v3.0": HostedModel(1024, 512),
                "embed-multilingual-v3.0": HostedModel(1024, 512),
                "embed-english-light-v3.0": HostedModel(384, 512),
                "embed-multilingual-light-v3.0": HostedModel(384, 512),
                "embed-v4.0": HostedModel(1536, 128_000),
            },
        ),
        EmbeddingProvider(
            "openai",
            service="bythebook.embeddings.openai:OpenAIService",
            key_setting="openai_api_key",
            max_batch=2048,
            shares_llm_endpoint=True,
        ),
    )
}
_CHUNK_TOKENS, _CHUNK_OVERLAP = 512, 50
_LOCAL_CHUNK_TOKENS = 220


@dataclass(frozen=True, slots=True)
class EmbedderLimits:
    """Batch size, concurrency, rate limit and timeouts of requests to an embedding service."""

    batch: int = 96
    """Texts in one request."""
    concurrency: int = 4
    """Requests in flight at the same time."""
    per_minute: int = 0
    """Requests per minute; 0: adapt to the provider."""
    seconds: float = 60.0
    """The timeout of one request."""
    question_seconds: float = 5.0
    """The timeout of a question's vector, all attempts together."""


@dataclass(frozen=True, slots=True)
class EmbedderConfig:
    """An embedder by its name: `local` or `PROVIDER:MODEL`."""

    name: str = LOCAL
    url: str = ""
    """Empty: the provider's own URL."""
    api_key: str = field(default="", repr=False)
    limits: EmbedderLimits = field(default_factory=EmbedderLimits)

    def __post_init__(self) -> None:
        check_embedder_name(self.name)
        if self.url and urlsplit(self.url).scheme not in {"http", "https"}:
            raise ConfigurationError(f"embedder_url must be an http(s) URL, not {self.url!r}.")

    @property
    def provider(self) -> EmbeddingProvider | None:
        """The provider of a hosted embedder, None for the local one."""
        return find_provider(self.name)

    @property
    def model(self) -> str:
        return self.name.partition(":")[2]

    @property
    def is_local(self) -> bool:
        return self.name == LOCAL

    @property
    def known_model(self) -> HostedModel:
        return self.provider.models.get(self.model, HostedModel()) if self.provider else HostedModel()

    @property
    def chunk_tokens(self) -> int:
        """The largest chunk that fits into the model's context window together with its headings."""
        if self.is_local:
            return _LOCAL_CHUNK_TOKENS
        return min(_CHUNK_TOKENS, self.known_model.window - MAX_HEADING_TOKENS - _SPECIAL_TOKENS)

    @property
    def chunk_overlap(self) -> int:
        return 0 if self.is_local else _CHUNK_OVERLAP


def find_provider(name: str) -> EmbeddingProvider | None:
    """The provider of the embedder with this name, None if it is not a hosted one."""
    return PROVIDERS.get(name.partition(":")[0])


def check_embedder_name(name: str) -> None:
    """Raises ConfigurationError unless the name is `local` or `PROVIDER:MODEL` with a known provider."""
    model = name.partition(":")[2]
    if name != LOCAL and not (find_provider(name) and model.strip()):
        hosted = " or ".join(f"{provider}:MODEL" for provider in PROVIDERS)
        raise ConfigurationError(
            f"{name!r} is not an embedder. Use local, {hosted}, for instance cohere:embed-english-v3.0."
        )
