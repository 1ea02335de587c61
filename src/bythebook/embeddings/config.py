"""The choice of an embedder: by its name, with all it takes to call it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from bythebook.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

LOCAL, COHERE, OPENAI = "local", "cohere", "openai"
COHERE_BATCH = 96
"""The most texts Cohere takes in a request."""
HEADINGS = 34
"""What a chunk's heading path may take of the model's window, in tokens."""
_OWN_MARKS = 2


@dataclass(frozen=True, slots=True)
class Model:
    """What is known of a hosted model before it is asked."""

    dimension: int = 0
    """0: it is asked for one vector."""
    window: int = 8191
    """How many tokens of a text it reads."""


KNOWN: Mapping[str, Model] = {
    "cohere:embed-english-v3.0": Model(1024, 512),
    "cohere:embed-multilingual-v3.0": Model(1024, 512),
    "cohere:embed-english-light-v3.0": Model(384, 512),
    "cohere:embed-multilingual-light-v3.0": Model(384, 512),
    "cohere:embed-v4.0": Model(1536, 128_000),
}
_CHUNK, _OVERLAP = 512, 50
_LOCAL_CHUNK = 220


@dataclass(frozen=True, slots=True)
class Limits:
    """How a service is called."""

    batch: int = 96
    """Texts in a request."""
    at_once: int = 4
    """Requests under way at the same time."""
    per_minute: int = 0
    """Calls a minute; 0: as many as the service takes."""
    seconds: float = 60.0
    """How long one request may take."""
    question_seconds: float = 5.0
    """How long a reader's question may wait for its vector, all attempts together."""


@dataclass(frozen=True, slots=True)
class Choice:
    """An embedder by its name: `local`, `cohere:MODEL` or `openai:MODEL`."""

    name: str = LOCAL
    url: str = ""
    """Empty: the provider's own address."""
    api_key: str = field(default="", repr=False)
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        check(self.name)
        if self.url and urlsplit(self.url).scheme not in {"http", "https"}:
            raise ConfigurationError(f"embedder_url must be an http(s) address, not {self.url!r}.")

    @property
    def provider(self) -> str:
        return self.name.partition(":")[0]

    @property
    def model(self) -> str:
        return self.name.partition(":")[2]

    @property
    def is_local(self) -> bool:
        return self.name == LOCAL

    @property
    def known(self) -> Model:
        return KNOWN.get(self.name, Model())

    @property
    def chunk_tokens(self) -> int:
        """The largest chunk, such that the model reads all of it below its headings."""
        return _LOCAL_CHUNK if self.is_local else min(_CHUNK, self.known.window - HEADINGS - _OWN_MARKS)

    @property
    def chunk_overlap(self) -> int:
        return 0 if self.is_local else _OVERLAP


def check(name: str) -> None:
    """Raises ConfigurationError unless it names an embedder."""
    provider, colon, model = name.partition(":")
    if name != LOCAL and not (provider in {COHERE, OPENAI} and colon and model.strip()):
        raise ConfigurationError(
            f"{name!r} is no embedder. Use local, cohere:MODEL or openai:MODEL, for instance cohere:embed-english-v3.0."
        )
