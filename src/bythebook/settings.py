"""Settings, read once at the entry point.

Precedence: arguments, environment, `.env`, `bythebook.toml`, defaults. Every value is validated: its type, its bounds,
and the check in `_CHECKS` if it has one.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
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


_AGENT = AgentConfig()
"""The defaults of the options that `AgentConfig` has too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings. A table in `bythebook.toml` is a prefix: `[chunk] tokens` is `chunk_tokens`."""

    data_dir: Path = Path(".bythebook")
    model_folder: Path = field(default_factory=_default_model_folder)
    book_name: str = ""
    page_token: str = ""
    site_url: str = ""
    site_style: SiteStyle = "auto"
    allow_private: bool = False
    site_pages: int = 5000
    site_depth: int = 20
    site_megabytes: int = 1000
    site_minutes: float = 60.0
    site_delay: float = 0.1
    site_version: str = ""
    site_locale: str = ""
    site_builder: SphinxBuilder = "auto"
    site_include: tuple[str, ...] = ()
    engine: EngineName = "local"
    ray_address: str = ""
    ray_workers: int = 0
    embedder: str = ""
    embedder_url: str = ""
    embedder_api_key: str = field(default="", repr=False)
    embedder_per_minute: int = 0
    embedder_batch: int = 96
    embedder_concurrency: int = 4
    embedder_seconds: float = 60.0
    cohere_api_key: str = field(default="", repr=False)
    chunk_tokens: int | Literal["auto"] = "auto"
    chunk_overlap: int | Literal["auto"] = "auto"
    retrieval_top_k: int = _AGENT.retrieval_top_k
    retrieval_threshold: float | Literal["auto"] = "auto"
    excerpt_characters: int = _AGENT.excerpt_characters
    retrieval_mode: Mode = "auto"
    model: str = ""
    base_url: str = ""
    api_key: str = field(default="", repr=False)
    openai_api_key: str = field(default="", repr=False)
    openrouter_api_key: str = field(default="", repr=False)
    groq_api_key: str = field(default="", repr=False)
    system_prompt: str = ""
    temperature: float = _AGENT.temperature
    max_tokens: int = _AGENT.max_tokens
    context_window: int = 8192
    max_history: int = _AGENT.max_history
    max_conversation_turns: int = 50
    unsupported: Unsupported = "remove"
    followups: Followups = "auto"
    first_token_seconds: float = _AGENT.first_token_seconds
    answer_seconds: float = _AGENT.answer_seconds
    database_url: str = field(default="", repr=False)
    log_unanswered: bool = True
    qdrant_url: str = ""
    qdrant_api_key: str = field(default="", repr=False)
    collection_name: str = "web_documents"
    qdrant_shards: int = 1
    qdrant_replicas: int = 1
    qdrant_on_disk: bool = False
    qdrant_exact: bool = False
    rate_limit_key: str = "600/minute"
    rate_limit_address: str = "60/minute"
    site_budget: int = 1000
    require_keys: bool = False
    cors_origins: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    trusted_proxies: tuple[str, ...] = ()
    max_concurrent_requests: int = 50
    heartbeat_seconds: float = 15.0
    store_sessions: bool = True
    session_days: float = 30.0
    host: str = "127.0.0.1"
    port: int = 8000
    root_path: str = ""
    workers: int = 1
    shutdown_seconds: float = 8.0
    log_level: LogLevel = "info"
    log_format: LogFormat = "json"
    log_content: bool = False
    traces: bool = False

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
        values = {name: getattr(config, name) for name in (option.name for option in fields(config)) if name in FIELDS}
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
        hidden = {value for name, value in texts.items() if _is_secret(name)}
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
            (name, _format(name, getattr(self, name)), self.origins.get(name, "default"), TABLE[name]["help"])
            for name in FIELDS
        ]


def _format(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return " ".join(value)
    return "********" if _is_secret(name) and value else str(value)


def _is_secret(name: str) -> bool:
    return bool(TABLE[name].get("secret"))


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


TABLE: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_suffix(".json").read_bytes())
"""The purpose of each setting, its bounds, and whether it is a secret. The bounds of an agent's options are its own."""
for _name, (_least, _most) in BOUNDS.items():
    TABLE.get(_name, {}).update(minimum=_least, maximum=_most)
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
        shown = "the given value" if _is_secret(name) else repr(value)
        raise ConfigurationError(f"{name} cannot be {shown} (from {origin}): {exc}") from exc
    minimum, maximum = (TABLE[name].get(edge) for edge in ("minimum", "maximum"))
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
