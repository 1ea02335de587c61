"""Settings, read once at the entry point.

Precedence: arguments, environment, `.env`, `bythebook.toml`, defaults. Every value is validated: its type, its bounds,
and the check in `_CHECKS` if it has one.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_type_hints
from urllib.parse import parse_qsl, unquote, urlsplit

from bythebook.embeddings.config import (
    LOCAL,
    EmbedderConfig,
    EmbedderLimits,
    EmbeddingProvider,
    check_embedder_name,
    find_provider,
)
from bythebook.errors import ConfigurationError, InputError
from bythebook.llm.config import ALIASES, BOUNDS, AgentConfig, Followups, Unsupported
from bythebook.llm.prompts import SYSTEM
from bythebook.llm.providers import NO_KEY_NEEDED, Mode
from bythebook.serialization import to_json

if TYPE_CHECKING:
    from bythebook.index.backends import IndexConfig
    from bythebook.sources.factory import SourceOptions

logger = logging.getLogger(__name__)

PREFIX = "BYTHEBOOK_"
FILE = "bythebook.toml"
DOTENV = ".env"

_SERVICE_ADDRESS = re.compile(r"(?:tcp|udp|sctp)://")
"""Kubernetes sets the variable of the port of a service to its address."""

_ASSIGNMENT = re.compile(
    r"""\s*(?:export\s+)?(?P<name>\w+)\s*=\s*(?:(?P<mark>["'])(?P<quoted>.*)(?P=mark)|(?P<plain>.*?))\s*(?:(?<=\s)\#.*)?"""
)

_SWITCHES = {"on": True, "true": True, "off": False, "false": False}

LogLevel = Literal["debug", "info", "warning", "error"]
EngineName = Literal["local", "ray"]
LogFormat = Literal["json", "text"]
SiteStyle = Literal["auto", "docusaurus", "mkdocs", "sphinx", "mdbook", "plain"]
SphinxBuilder = Literal["auto", "html", "dirhtml"]


def _default_model_folder() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "bythebook" / "models"


def _setting(
    default: Any, help_text: str, *, minimum: float | None = None, maximum: float | None = None, secret: bool = False
) -> Any:
    metadata = {"help": help_text, "minimum": minimum, "maximum": maximum, "secret": secret}
    if callable(default):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata, repr=not secret)


_AGENT_DEFAULTS = {option.name: option.default for option in fields(AgentConfig)}


def _agent_option(name: str, help_text: str) -> Any:
    """A setting with the default and the bounds of the option of `AgentConfig` with this name."""
    minimum, maximum = BOUNDS[name]
    return _setting(_AGENT_DEFAULTS[name], help_text, minimum=minimum, maximum=maximum)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings. A table in `bythebook.toml` is a prefix: `[chunk] tokens` is `chunk_tokens`."""

    data_dir: Path = _setting(Path(".bythebook"), "The folder for all files of this book.")
    model_folder: Path = _setting(_default_model_folder, "The folder of the local models, shared between books.")
    book_name: str = _setting("", "The name that readers see. Empty: the title of the first page.")
    page_token: str = _setting("", "The site token of the server's own chat page. Needed if the server requires keys.")
    site_url: str = _setting("", "The base URL of the published pages. Empty: links open the source files.")
    site_style: SiteStyle = _setting(
        "auto", "The site generator whose URL and anchor rules the published pages follow."
    )
    allow_private: bool = _setting(False, "Allow a named site on a private network.")
    site_pages: int = _setting(5000, "The maximum number of pages requested from a site.", minimum=1, maximum=1_000_000)
    site_depth: int = _setting(
        20, "The maximum link depth from the first page of a site without a sitemap.", minimum=0, maximum=1000
    )
    site_megabytes: int = _setting(
        1000, "The maximum size read from a site, in megabytes.", minimum=1, maximum=1_000_000
    )
    site_minutes: float = _setting(
        60.0, "The maximum time to crawl a site, in minutes.", minimum=0.05, maximum=10_000.0
    )
    site_delay: float = _setting(
        0.1, "The minimum delay between two requests to a site, in seconds.", minimum=0.0, maximum=120.0
    )
    site_version: str = _setting("", "The version of a Docusaurus site to read. Empty: its default version.")
    site_locale: str = _setting("", "The locale of a Docusaurus site to read. Empty: its default locale.")
    site_builder: SphinxBuilder = _setting("auto", "The builder that publishes a Sphinx project.")
    site_include: tuple[str, ...] = _setting(
        (), "Content outside of the documentation that is read too: blog, pages, starter and others."
    )
    engine: EngineName = _setting(
        "local", "Where pages are parsed, chunked and embedded: this process or a Ray cluster."
    )
    ray_address: str = _setting("", "The address of the Ray cluster. Empty: RAY_ADDRESS, or a local cluster.")
    ray_workers: int = _setting(0, "The number of Ray workers. 0: one for each core.", minimum=0, maximum=10_000)
    embedder: str = _setting(
        "", "The embedder: local, cohere:MODEL or openai:MODEL. Empty: that of the existing index, or local."
    )
    embedder_url: str = _setting(
        "", "The URL of the embedder. Empty: the default URL of the provider; for openai also base_url."
    )
    embedder_api_key: str = _setting("", "The API key for embedder_url. Empty: the key of the provider.", secret=True)
    embedder_per_minute: int = _setting(
        0, "The maximum number of embedding requests per minute. 0: adapt to the provider.", minimum=0, maximum=100_000
    )
    embedder_batch: int = _setting(96, "The number of texts in an embedding request.", minimum=1, maximum=2048)
    embedder_concurrency: int = _setting(
        4, "The maximum number of concurrent embedding requests.", minimum=1, maximum=64
    )
    embedder_seconds: float = _setting(
        60.0, "The timeout of an embedding request, in seconds.", minimum=0.1, maximum=3600.0
    )
    cohere_api_key: str = _setting("", "The API key for Cohere, also read from COHERE_API_KEY.", secret=True)
    chunk_tokens: int | Literal["auto"] = _setting(
        "auto",
        "The maximum chunk size in tokens of the embedder. auto: 220 for the local embedder, else 512.",
        minimum=32,
        maximum=4096,
    )
    chunk_overlap: int | Literal["auto"] = _setting(
        "auto",
        "The overlap of consecutive chunks in tokens. auto: 0 for the local embedder, else 50.",
        minimum=0,
        maximum=512,
    )
    retrieval_top_k: int = _agent_option("retrieval_top_k", "The number of passages retrieved for a question.")
    retrieval_threshold: float | Literal["auto"] = _setting(
        "auto",
        "The confidence needed to answer. auto: the calibrated rule; a number: a minimum cosine.",
        minimum=0.0,
        maximum=1.0,
    )
    excerpt_characters: int = _agent_option(
        "excerpt_characters", "The maximum characters of a passage in a tool's result. 0: only the token budget."
    )
    retrieval_mode: Mode = _setting("auto", "Whether the model calls a search tool or gets the passages in its prompt.")
    model: str = _setting(
        "", "The model. Empty: the default model of the provider; without a provider no model is used."
    )
    base_url: str = _setting("", "An OpenAI-compatible URL: Ollama, llama.cpp, vLLM or another provider.")
    api_key: str = _setting("", "The API key for base_url.", secret=True)
    openai_api_key: str = _setting("", "The API key for OpenAI, also read from OPENAI_API_KEY.", secret=True)
    openrouter_api_key: str = _setting(
        "", "The API key for OpenRouter, also read from OPENROUTER_API_KEY.", secret=True
    )
    groq_api_key: str = _setting("", "The API key for Groq, also read from GROQ_API_KEY.", secret=True)
    system_prompt: str = _setting(
        "", "Instructions for the model on tone, persona, language and scope. They are added to the rules of proof."
    )
    temperature: float = _agent_option("temperature", "The sampling temperature of the model.")
    max_tokens: int = _agent_option("max_tokens", "The maximum length of a model's answer, in tokens.")
    context_window: int = _setting(
        8192, "The context window of the model, in tokens.", minimum=1024, maximum=10_000_000
    )
    max_history: int = _agent_option("max_history", "The maximum number of conversation messages in the prompt.")
    max_conversation_turns: int = _setting(
        50, "The maximum number of questions in a conversation.", minimum=1, maximum=100_000
    )
    unsupported: Unsupported = _setting(
        "remove", "What to do with a sentence that no passage supports: remove or mark it."
    )
    followups: Followups = _setting(
        "auto", "Who rewrites follow-up questions. auto: the model if there is one, else a rule."
    )
    first_token_seconds: float = _agent_option("first_token_seconds", "The maximum time to the first word, in seconds.")
    answer_seconds: float = _agent_option("answer_seconds", "The maximum time for the complete answer, in seconds.")
    database_url: str = _setting(
        "", "The URL of the database for conversations. Empty: a SQLite file in the data folder.", secret=True
    )
    log_unanswered: bool = _setting(
        True, "Log questions, so that 'bythebook gaps' can report what the book does not answer."
    )
    qdrant_url: str = _setting(
        "", "The URL of a Qdrant server for the index, also read from QDRANT_URL. Empty: a local index."
    )
    qdrant_api_key: str = _setting("", "The API key for the Qdrant server, also read from QDRANT_API_KEY.", secret=True)
    collection_name: str = _setting("web_documents", "The name of the collection on the Qdrant server.")
    qdrant_shards: int = _setting(1, "The number of shards of the collection.", minimum=1, maximum=1000)
    qdrant_replicas: int = _setting(1, "The number of replicas of each shard.", minimum=1, maximum=100)
    qdrant_on_disk: bool = _setting(False, "Keep the vectors on the disk of the Qdrant server instead of in memory.")
    qdrant_exact: bool = _setting(False, "Let the Qdrant server compare all vectors instead of using its index.")
    rate_limit_key: str = _setting("600/minute", "The rate limit of an API key.")
    rate_limit_address: str = _setting("60/minute", "The rate limit of a client address without a key.")
    site_budget: int = _setting(1000, "The daily quota of questions of a site.", minimum=1, maximum=1_000_000_000)
    require_keys: bool = _setting(False, "Require a key even before one was created.")
    cors_origins: tuple[str, ...] = _setting((), "Allowed CORS origins in addition to those of the sites.")
    allowed_hosts: tuple[str, ...] = _setting(
        (), "Allowed values of the Host header. Empty: any; on 127.0.0.1 only the names of this machine."
    )
    trusted_proxies: tuple[str, ...] = _setting((), "The proxies whose X-Forwarded-For header is trusted.")
    max_concurrent_requests: int = _setting(
        50, "The maximum number of concurrent questions of a server process.", minimum=1, maximum=10_000
    )
    heartbeat_seconds: float = _setting(
        15.0, "The interval of comments in an idle event stream, in seconds.", minimum=0.05, maximum=3600.0
    )
    store_sessions: bool = _setting(
        True,
        "Begin a session for a question without one, so that it can be followed up. off: store only named sessions.",
    )
    session_days: float = _setting(
        30.0, "The number of idle days after which a session is deleted. 0: never.", minimum=0, maximum=36500
    )
    host: str = _setting("127.0.0.1", "The address the server listens on. 0.0.0.0: all interfaces.")
    port: int = _setting(8000, "The port the server listens on. 0: any free port.", minimum=0, maximum=65535)
    root_path: str = _setting("", "The path of the server behind a reverse proxy, such as /book.")
    workers: int = _setting(1, "The number of server processes.", minimum=1, maximum=64)
    shutdown_seconds: float = _setting(
        8.0, "How long a shutdown waits for running answers, in seconds.", minimum=0.0, maximum=600.0
    )
    log_level: LogLevel = _setting("info", "The minimum level of logged events. debug: also outside of a server.")
    log_format: LogFormat = _setting("json", "The log format: one JSON object per line, or text.")
    log_content: bool = _setting(False, "Include questions and answers in the log.")
    traces: bool = _setting(False, "Export traces to the endpoint of the OTEL_ variables.")

    origins: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    """The origin of each value that is not a default."""
    ignored: tuple[str, ...] = field(default=(), repr=False, compare=False)
    """Warnings about environment variables that were ignored."""

    def __post_init__(self) -> None:
        for name, entry in FIELDS.items():
            value = getattr(self, name)
            if value != entry.default or type(value) is not type(entry.default):
                object.__setattr__(self, name, _validate(name, value, self.origins.get(name, "argument")))
        self.agent_config()

    @classmethod
    def load(cls, arguments: Mapping[str, Any] | None = None, *, folder: Path | None = None) -> Settings:
        """Read and validate the settings. `arguments` have the highest precedence; None means not given.

        Raises ConfigurationError, with the origin, for an unknown name and for an invalid value. An unknown environment
        variable is ignored with a warning: Kubernetes sets some for a service called bythebook.
        """
        here = folder or Path.cwd()
        values: dict[str, Any] = {}
        origins: dict[str, str] = {}
        ignored: list[str] = []
        for origin, found in (
            (FILE, _read_toml(here / FILE)),
            (DOTENV, _read_environment(_read_dotenv(here / DOTENV))),
            ("environment", _read_environment(os.environ)),
            ("argument", {name: value for name, value in (arguments or {}).items() if value is not None}),
        ):
            for name, value in found.items():
                if origin == "environment" and (name not in FIELDS or _SERVICE_ADDRESS.match(value)):
                    reason = "It is the address of a service." if name in FIELDS else _suggest(name)
                    ignored.append(f"the environment variable {PREFIX}{name.upper()} is ignored. {reason}")
                    logger.warning(ignored[-1])
                    continue
                if name not in FIELDS:
                    raise ConfigurationError(f"there is no setting {name!r} (from {origin}). {_suggest(name)}")
                values[name], origins[name] = value, origin
        return cls(**values, origins=origins, ignored=tuple(ignored))

    @classmethod
    def from_agent_config(cls, config: AgentConfig) -> Settings:
        """The settings with the options of the agent."""
        values = {name: getattr(config, name) for name in _AGENT_DEFAULTS if name in FIELDS}
        prompt = "" if config.system_prompt == SYSTEM else config.system_prompt
        return cls(**values | {"system_prompt": prompt, "log_level": "debug" if config.verbose else "info"})

    @property
    def database_address(self) -> str:
        """The URL of the database: `database_url`, or a SQLite file in the data folder."""
        return self.database_url or f"sqlite:///{self.data_dir / 'conversations.db'}"

    @property
    def metrics_folder(self) -> Path:
        """The folder in which the worker processes share their metrics."""
        return self.data_dir / "metrics"

    def secrets(self) -> frozenset[str]:
        """The values that must never be printed: keys, and passwords in URLs."""
        texts = {name: value for name in FIELDS if isinstance(value := getattr(self, name), str) and value}
        hidden = {value for name, value in texts.items() if FIELDS[name].metadata["secret"]}
        return frozenset(hidden.union(*map(_find_passwords, texts.values())))

    def agent_config(self) -> AgentConfig:
        """The settings of the agent."""
        names = [entry.name for entry in fields(AgentConfig) if entry.name in FIELDS]
        if not self.system_prompt.strip():
            names.remove("system_prompt")
        return AgentConfig(**{name: getattr(self, name) for name in names})

    def embedder_config(self, embedder_id: str) -> EmbedderConfig:
        """The embedder to use. `embedder_id` is the embedder of the existing index, or empty."""
        name = self.embedder or (embedder_id if ":" in embedder_id else LOCAL)
        provider = find_provider(name)
        limits = EmbedderLimits(
            batch=min(self.embedder_batch, provider.max_batch) if provider else self.embedder_batch,
            concurrency=self.embedder_concurrency,
            per_minute=self.embedder_per_minute,
            seconds=self.embedder_seconds,
            question_seconds=self.first_token_seconds,
        )
        url = self.embedder_url or (self.base_url if provider and provider.shares_llm_endpoint else "")
        return EmbedderConfig(name, url=url, api_key=self._embedder_key(provider), limits=limits)

    def index_config(self) -> IndexConfig:
        """The location of the index and the options of the Qdrant server."""
        from bythebook.index.backends import IndexConfig

        return IndexConfig(
            data_dir=self.data_dir,
            url=self.qdrant_url,
            api_key=self.qdrant_api_key,
            collection=self.collection_name,
            shards=self.qdrant_shards,
            replicas=self.qdrant_replicas,
            on_disk=self.qdrant_on_disk,
            exact=self.qdrant_exact,
            # The remaining time to the first word is needed to report that the server did not answer.
            read_timeout=0.8 * self.first_token_seconds,
            retire_after=2 * self.answer_seconds,
        )

    def source_options(self) -> SourceOptions:
        """The options for reading sources."""
        from bythebook.sources.factory import SourceOptions
        from bythebook.sources.website import CrawlLimits as SiteLimits

        limits = SiteLimits(
            pages=self.site_pages,
            depth=self.site_depth,
            megabytes=self.site_megabytes,
            minutes=self.site_minutes,
            delay=self.site_delay,
            private=self.allow_private,
        )
        return SourceOptions(
            cache_folder=self.data_dir / "sites",
            site_url=self.site_url,
            style=self.site_style,
            include=self.site_include,
            version=self.site_version,
            locale=self.site_locale,
            builder=self.site_builder,
            limits=limits,
        )

    def _embedder_key(self, provider: EmbeddingProvider | None) -> str:
        """The API key for the URL of the embedder. A key is never sent to the URL of another service."""
        if provider is None:
            return ""
        key: str = self.embedder_api_key or getattr(self, provider.key_setting)
        if provider.shares_llm_endpoint:
            own = "" if self.embedder_url else self.api_key
            elsewhere = NO_KEY_NEEDED if self.embedder_url or self.base_url else ""
            key = self.embedder_api_key or own or key or elsewhere
        return key

    def to_arguments(self) -> dict[str, Any]:
        """Every value as JSON types, so that another process can `load` the same settings."""
        return {name: to_json(getattr(self, name)) for name in FIELDS}

    def describe(self) -> list[tuple[str, str, str, str]]:
        """Name, value, origin and purpose of each setting."""
        return [
            (name, _format(entry, getattr(self, name)), self.origins.get(name, "default"), entry.metadata["help"])
            for name, entry in FIELDS.items()
        ]


def _format(entry: Field[Any], value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return " ".join(value)
    return "********" if entry.metadata["secret"] and value else str(value)


def _find_passwords(text: str) -> set[str]:
    """The passwords in a URL, both encoded and decoded."""
    if "://" not in text:
        return set()
    try:
        url = urlsplit(text)
    except ValueError:
        return set()
    parameters = [value for name, value in parse_qsl(url.query) if name.lower() in ("password", "sslpassword")]
    raw = url.netloc.rpartition("@")[0].partition(":")[2]
    return {*parameters, raw, unquote(raw)} - {""}


FIELDS = {entry.name: entry for entry in fields(Settings) if entry.name not in ("origins", "ignored")}
_TYPES = get_type_hints(Settings)


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8-sig")
        # Imported only if the file exists: every import delays the first answer.
        import tomllib

        data = tomllib.loads(text)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as exc:
        raise ConfigurationError(f"{path} cannot be read: {exc}") from exc
    flat: dict[str, Any] = {}
    for name, value in data.items():
        if isinstance(value, dict):
            flat.update({f"{name}_{inner}": inner_value for inner, inner_value in value.items()})
        else:
            flat[name] = value
    return flat


def _read_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables with our prefix and the usual ones for keys and models. Ours have precedence."""
    aliases = {name: variables[alias] for alias, name in ALIASES.items() if variables.get(alias) and name in FIELDS}
    prefixed = {name[len(PREFIX) :].lower(): value for name, value in variables.items() if name.startswith(PREFIX)}
    return aliases | prefixed


def _read_dotenv(path: Path) -> dict[str, str]:
    """Read the assignments of a `.env` file. Quotes and comments are removed; nothing is expanded or executed."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigurationError(f"{path} cannot be read: {exc}") from exc
    found = (_ASSIGNMENT.fullmatch(line) for line in lines)
    return {match["name"]: match["quoted"] or match["plain"] or "" for match in found if match}


def _suggest(name: str) -> str:
    """What may be meant by an unknown name."""
    import difflib

    near = difflib.get_close_matches(name, FIELDS, n=1)
    return f"Did you mean {near[0]!r}?" if near else "'bythebook config' lists all settings."


def _validate(name: str, value: Any, origin: str) -> Any:
    """Convert the value to the type of its setting and check its bounds."""
    try:
        converted = _convert(_TYPES[name], value)
        if name in _CHECKS:
            _CHECKS[name](converted)
    except (ValueError, InputError, ConfigurationError) as exc:
        shown = "the given value" if FIELDS[name].metadata["secret"] else repr(value)
        raise ConfigurationError(f"{name} cannot be {shown} (from {origin}): {exc}") from exc
    minimum, maximum = FIELDS[name].metadata["minimum"], FIELDS[name].metadata["maximum"]
    if minimum is not None and not isinstance(converted, str) and not minimum <= converted <= maximum:
        raise ConfigurationError(f"{name} must be from {minimum} to {maximum}, not {value!r} (from {origin}).")
    return converted


def _convert(kind: Any, value: Any) -> Any:
    if kind is bool:
        return _parse_switch(value)
    choices = [choice for choice in get_args(kind) if isinstance(choice, str)]
    literal = next((get_args(part) for part in get_args(kind) if get_args(part)), ())
    if value in (*choices, *literal):
        return value
    if choices:
        raise ValueError(f"use one of {', '.join(choices)}")
    if kind in (Path, str):
        return _parse_text(kind, value)
    if kind == tuple[str, ...]:
        return _parse_list(value)
    return _parse_number(kind, value)


def _parse_switch(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in _SWITCHES:
        return _SWITCHES[value.lower()]
    raise ValueError(f"use one of {', '.join(_SWITCHES)}")


def _parse_text(kind: Any, value: Any) -> Any:
    if not isinstance(value, str | Path):
        raise ValueError("use text in quotes")
    if kind is str:
        return str(value)
    if not str(value).strip():
        raise ValueError("name a folder")
    return Path(value).expanduser()


def _parse_list(value: Any) -> tuple[str, ...]:
    """Parse a list, or text with spaces or commas between the values, as in the environment."""
    listed = value.replace(",", " ").split() if isinstance(value, str) else value
    if not isinstance(listed, list | tuple) or not all(isinstance(each, str) for each in listed):
        raise ValueError("use a list of texts")
    return tuple(listed)


def _parse_number(kind: Any, value: Any) -> float:
    """Parse an int or a float. Text is accepted because environment variables are text."""
    whole = kind is int or int in get_args(kind)
    try:
        if isinstance(value, bool) or (whole and isinstance(value, float)):
            raise TypeError
        return int(value) if whole else float(value)
    except (TypeError, ValueError):
        raise ValueError("use a whole number" if whole else "use a number") from None


def _check_embedder(name: str) -> None:
    if name:
        check_embedder_name(name)


def _check_rate_limit(text: str) -> None:
    from bythebook.access import RateLimit

    RateLimit.parse(text)


def _check_url(url: str, *, like: str) -> None:
    if url and not re.fullmatch(r"https?://[^/\s]+(/\S*)?", url, re.I):
        raise ValueError(f"use a URL such as {like}")


def _check_collection(name: str) -> None:
    if not name.strip() or len(name) > 200 or re.search(r'[<>:"/\\|?*\x00-\x1f]', name):
        raise ValueError("use a name of up to 200 letters, digits, - and _")


def _check_origins(listed: tuple[str, ...]) -> None:
    from bythebook.access.site_tokens import validate_origin

    for each in listed:
        validate_origin(each)


def _check_site_include(listed: tuple[str, ...]) -> None:
    from bythebook.sources.projects import NonContent

    known = [*(str(aside) for aside in NonContent), "all"]
    if wrong := [each for each in listed if each not in known]:
        raise ValueError(f"{wrong[0]!r} is none of {', '.join(known)}")


# Each raises ValueError, InputError or ConfigurationError, with what is expected, for an invalid value.
_CHECKS: Mapping[str, Callable[[Any], None]] = {
    "embedder": _check_embedder,
    "rate_limit_key": _check_rate_limit,
    "rate_limit_address": _check_rate_limit,
    "cors_origins": _check_origins,
    "site_include": _check_site_include,
    "site_url": partial(_check_url, like="https://my-book.example/"),
    "qdrant_url": partial(_check_url, like="http://localhost:6333"),
    "collection_name": _check_collection,
}
