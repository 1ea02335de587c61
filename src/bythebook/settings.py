"""Settings: read once, at the door. Arguments win over the environment, `.env`, `bythebook.toml` and defaults.

Checks: what may stand in a setting beyond what its type says.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_type_hints
from urllib.parse import parse_qsl, unquote, urlsplit

from bythebook.embeddings.config import COHERE, COHERE_BATCH, LOCAL, Choice, Limits
from bythebook.errors import ConfigurationError, InputError
from bythebook.llm.config import ALIASES, AgentConfig, Followups, Unsupported
from bythebook.llm.providers import NO_KEY_NEEDED, Mode
from bythebook.serialization import as_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bythebook.index.backends import IndexConfig
    from bythebook.sources.factory import SourceOptions


PREFIX = "BYTHEBOOK_"
FILE = "bythebook.toml"
DOTENV = ".env"

_ASSIGNMENT = re.compile(
    r"""\s*(?:export\s+)?(?P<name>\w+)\s*=\s*(?:(?P<mark>["'])(?P<quoted>.*)(?P=mark)|(?P<plain>.*?))\s*(?:(?<=\s)\#.*)?"""
)

Switch = Literal["on", "off"]
LogLevel = Literal["debug", "info", "warning", "error"]
Engine = Literal["local", "ray"]
LogFormat = Literal["json", "text"]
Style = Literal["auto", "docusaurus", "mkdocs", "sphinx", "mdbook", "plain"]

Builder = Literal["auto", "html", "dirhtml"]


def _default_model_folder() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "bythebook" / "models"


def _setting(
    default: Any, help_text: str, *, least: float | None = None, most: float | None = None, secret: bool = False
) -> Any:
    metadata = {"help": help_text, "least": least, "most": most, "secret": secret}
    if callable(default):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata, repr=not secret)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every setting there is. A table in `bythebook.toml` prefixes its names: `[chunk] tokens` is `chunk_tokens`."""

    data_dir: Path = _setting(Path(".bythebook"), "The folder that holds everything this book keeps on disk.")
    model_folder: Path = _setting(_default_model_folder, "Where embedding models are kept, shared between books.")
    book_name: str = _setting("", "What readers see the book called. Empty: the title of its first page.")
    page_token: str = _setting("", "The site token the server's own chat page asks with, where keys are needed.")
    site_url: str = _setting("", "The address the pages are published under. Empty: links open the files themselves.")
    site_style: Style = _setting("auto", "Whose anchors and addresses the published pages have.")
    allow_private: Switch = _setting("off", "Whether a site that is named may be on a private network.")
    site_pages: int = _setting(5000, "How many pages of a site are asked for.", least=1, most=1_000_000)
    site_depth: int = _setting(
        20, "How many links from its first page a site is followed, without a sitemap.", least=0, most=1000
    )
    site_megabytes: int = _setting(1000, "How much of a site is read, in megabytes.", least=1, most=1_000_000)
    site_minutes: float = _setting(60.0, "How long a site is read from, in minutes.", least=0.05, most=10_000.0)
    site_delay: float = _setting(0.1, "The least seconds between two requests to a site.", least=0.0, most=120.0)
    site_version: str = _setting("", "Which version of a Docusaurus site is read. Empty: the one readers see first.")
    site_locale: str = _setting("", "Which language of a Docusaurus site is read. Empty: the site's own.")
    site_builder: Builder = _setting("auto", "Which builder publishes a Sphinx project.")
    site_include: tuple[str, ...] = _setting((), "What a project has besides its book, and is read all the same.")
    engine: Engine = _setting(
        "local", "Who reads, cuts and embeds the pages of an ingest: this process, or a Ray cluster."
    )
    ray_address: str = _setting("", "The Ray cluster to join. Empty: that of RAY_ADDRESS, or one on this machine.")
    ray_workers: int = _setting(
        0, "How many workers of the cluster to use. 0: one for each core.", least=0, most=10_000
    )
    embedder: str = _setting(
        "", "What makes vectors: local, cohere:MODEL or openai:MODEL. Empty: as the book was made, or local."
    )
    embedder_url: str = _setting("", "The embedder's address. Empty: the provider's own, for openai also base_url.")
    embedder_api_key: str = _setting("", "The key for embedder_url, if it is not the provider's.", secret=True)
    embedder_per_minute: int = _setting(
        0, "How often the embedder is called in a minute. 0: as often as it bears.", least=0, most=100_000
    )
    embedder_batch: int = _setting(96, "How many texts a request to the embedder has.", least=1, most=2048)
    embedder_at_once: int = _setting(4, "How many requests to the embedder are under way at once.", least=1, most=64)
    embedder_seconds: float = _setting(60.0, "How long a request to the embedder may take.", least=0.1, most=3600.0)
    cohere_api_key: str = _setting("", "The key for Cohere, also read from COHERE_API_KEY.", secret=True)
    chunk_tokens: int | Literal["auto"] = _setting(
        "auto", "The largest chunk, in the embedder's tokens: 220 for the local one, 512.", least=32, most=4096
    )
    chunk_overlap: int | Literal["auto"] = _setting(
        "auto", "How much of a chunk may be repeated in the next: 0 for the local embedder, 50.", least=0, most=512
    )
    retrieval_top_k: int = _setting(5, "How many passages are found for a question.", least=1, most=20)
    retrieval_threshold: float | Literal["auto"] = _setting(
        "auto", "When the book covers a question: the calibrated rule, or a least cosine.", least=0.0, most=1.0
    )
    retrieval_mode: Mode = _setting("auto", "Whether the model searches by itself or is handed the passages.")
    model: str = _setting("", "The model to ask. Empty: the provider's usual one, or none at all without a provider.")
    base_url: str = _setting("", "An OpenAI-compatible address: Ollama, llama.cpp, vLLM or another provider.")
    api_key: str = _setting("", "The key for base_url.", secret=True)
    openai_api_key: str = _setting("", "The key for OpenAI, also read from OPENAI_API_KEY.", secret=True)
    openrouter_api_key: str = _setting("", "The key for OpenRouter, also read from OPENROUTER_API_KEY.", secret=True)
    groq_api_key: str = _setting("", "The key for Groq, also read from GROQ_API_KEY.", secret=True)
    temperature: float = _setting(0.7, "How freely the model speaks.", least=0.0, most=2.0)
    max_tokens: int = _setting(1000, "The longest answer of a model, in tokens.", least=1, most=4096)
    context_window: int = _setting(8192, "How much the model reads at once, in tokens.", least=1024, most=10_000_000)
    max_history: int = _setting(20, "How many messages of a conversation the model is shown.", least=1, most=100)
    max_conversation_turns: int = _setting(50, "How many questions a conversation may have.", least=1, most=100_000)
    unsupported: Unsupported = _setting("remove", "What becomes of a model's sentence that no passage supports.")
    followups: Followups = _setting(
        "auto", "Who makes a follow-up stand alone: the model where there is one, or a rule."
    )
    first_token_seconds: float = _setting(5.0, "How long the first word may take.", least=0.1, most=3600.0)
    answer_seconds: float = _setting(30.0, "How long the whole answer may take.", least=0.1, most=3600.0)
    database_url: str = _setting("", "Where conversations are kept. Empty: a file in the data folder.", secret=True)
    keep_gaps: Switch = _setting("on", "Whether questions are written down, to find what the book lacks.")
    qdrant_url: str = _setting(
        "", "A Qdrant server or cluster to keep the book on, also read from QDRANT_URL. Empty: on this disk."
    )
    qdrant_api_key: str = _setting("", "The key for the Qdrant server, also read from QDRANT_API_KEY.", secret=True)
    collection_name: str = _setting("web_documents", "What the book is called on the Qdrant server.")
    qdrant_shards: int = _setting(1, "Into how many shards the server splits the book.", least=1, most=1000)
    qdrant_replicas: int = _setting(1, "On how many machines of a cluster each shard is kept.", least=1, most=100)
    qdrant_on_disk: Switch = _setting("off", "Whether the server keeps vectors on its disk rather than in memory.")
    qdrant_exact: Switch = _setting("off", "Whether the server compares every vector rather than use its index.")
    rate_limit_key: str = _setting("600/minute", "How often a key may be used.")
    rate_limit_address: str = _setting("60/minute", "How often callers without a key may come from one address.")
    site_budget: int = _setting(1000, "How many questions a day a site may ask.", least=1, most=1_000_000_000)
    cors_origins: tuple[str, ...] = _setting((), "The origins whose pages may call the server, besides the sites'.")
    allowed_hosts: tuple[str, ...] = _setting(
        (), "The names a server answers under. None: any, but on 127.0.0.1 its own."
    )
    trusted_proxies: tuple[str, ...] = _setting((), "The proxies whose X-Forwarded-For is believed.")
    max_readers: int = _setting(50, "How many questions a server process answers at once.", least=1, most=10_000)
    heartbeat_seconds: float = _setting(15.0, "How long a stream of events may be silent.", least=0.05, most=3600.0)
    session_days: float = _setting(
        0.0, "After how many idle days a session is forgotten. 0: never.", least=0, most=36500
    )
    host: str = _setting("127.0.0.1", "The address the server listens on; 0.0.0.0 is every one the machine has.")
    port: int = _setting(8000, "The port the server listens on; 0 is any that is free.", least=0, most=65535)
    workers: int = _setting(1, "How many processes answer readers.", least=1, most=64)
    shutdown_seconds: float = _setting(8.0, "How long a server that stops lets answers finish.", least=0.0, most=600.0)
    log_level: LogLevel = _setting("info", "How much the server logs: everything from this level on.")
    log_format: LogFormat = _setting("json", "How the server logs: one JSON object to a line, or text for a person.")
    log_content: Switch = _setting("off", "Whether questions and answers may stand in the log.")
    traces: Switch = _setting("off", "Whether the server sends traces to where the OTEL_ variables point.")

    origins: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    """Where each value came from, for those that are not defaults."""

    @classmethod
    def load(cls, arguments: Mapping[str, Any] | None = None, *, folder: Path | None = None) -> Settings:
        """Collect the settings. `arguments` win over everything; None among them means not given.

        Raises ConfigurationError for a name nobody knows and for a value that cannot be used, naming its origin.
        """
        here = folder or Path.cwd()
        values: dict[str, Any] = {}
        origins: dict[str, str] = {}
        for origin, found in (
            (FILE, _from_toml(here / FILE)),
            (DOTENV, _from_environment(_dotenv(here / DOTENV))),
            ("environment", _from_environment(os.environ)),
            ("argument", {name: value for name, value in (arguments or {}).items() if value is not None}),
        ):
            for name, value in found.items():
                values[name] = _checked(name, value, origin)
                origins[name] = origin
        return cls(**values, origins=origins)

    @property
    def database_address(self) -> str:
        """The URL of the database: the one that was set, or a file in the data folder."""
        return self.database_url or f"sqlite:///{self.data_dir / 'conversations.db'}"

    @property
    def metrics_folder(self) -> Path:
        """Where the workers of a crew add up their figures."""
        return self.data_dir / "metrics"

    def secrets(self) -> frozenset[str]:
        """Whatever must never be printed: keys, and the passwords inside of addresses."""
        texts = {name: value for name in KNOWN if isinstance(value := getattr(self, name), str) and value}
        hidden = {value for name, value in texts.items() if KNOWN[name].metadata["secret"]}
        return frozenset(hidden.union(*map(_passwords, texts.values())))

    def agent_config(self) -> AgentConfig:
        """What of the settings concerns the agent."""
        names = [known.name for known in fields(AgentConfig) if known.name in KNOWN]
        return AgentConfig(**{name: getattr(self, name) for name in names})

    def embedding(self, made_with: str) -> Choice:
        """The embedder to use, for a book that was `made_with` this one."""
        name = self.embedder or (made_with if ":" in made_with else LOCAL)
        cohere = name.startswith(f"{COHERE}:")
        limits = Limits(
            batch=min(self.embedder_batch, COHERE_BATCH) if cohere else self.embedder_batch,
            at_once=self.embedder_at_once,
            per_minute=self.embedder_per_minute,
            seconds=self.embedder_seconds,
            question_seconds=self.first_token_seconds,
        )
        url = self.embedder_url or ("" if cohere else self.base_url)
        return Choice(name, url=url, api_key=self._embedder_key(cohere=cohere), limits=limits)

    def index_config(self) -> IndexConfig:
        """Where the index is kept, and how a Qdrant server is used."""
        from bythebook.index.backends import IndexConfig

        return IndexConfig(
            data_dir=self.data_dir,
            url=self.qdrant_url,
            api_key=self.qdrant_api_key,
            collection=self.collection_name,
            shards=self.qdrant_shards,
            replicas=self.qdrant_replicas,
            on_disk=self.qdrant_on_disk == "on",
            exact=self.qdrant_exact == "on",
            # The rest of the time to the first word is for saying that the server did not answer.
            read_timeout=0.8 * self.first_token_seconds,
            retire_after=2 * self.answer_seconds,
        )

    def source_options(self) -> SourceOptions:
        """How sources are read."""
        from bythebook.sources.factory import SourceOptions
        from bythebook.sources.website import Limits as SiteLimits

        limits = SiteLimits(
            pages=self.site_pages,
            depth=self.site_depth,
            megabytes=self.site_megabytes,
            minutes=self.site_minutes,
            delay=self.site_delay,
            private=self.allow_private == "on",
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

    def _embedder_key(self, *, cohere: bool) -> str:
        """The key for the embedder's address. That of another address is not shown to it."""
        if cohere:
            return self.embedder_api_key or self.cohere_api_key
        own = "" if self.embedder_url else self.api_key
        elsewhere = NO_KEY_NEEDED if self.embedder_url or self.base_url else ""
        return self.embedder_api_key or own or self.openai_api_key or elsewhere

    def as_arguments(self) -> dict[str, Any]:
        """Every value in JSON's own types, with which another process can `load` the same settings."""
        return {name: as_json(getattr(self, name)) for name in KNOWN}

    def shown(self) -> list[tuple[str, str, str, str]]:
        """Each setting: name, value, origin, and what it is for."""
        return [
            (name, _shown(known, getattr(self, name)), self.origins.get(name, "default"), known.metadata["help"])
            for name, known in KNOWN.items()
        ]


def _shown(known: Field[Any], value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(value)
    return "********" if known.metadata["secret"] and value else str(value)


def _passwords(text: str) -> set[str]:
    """The passwords in an address, as they stand there and as they are meant."""
    if "://" not in text:
        return set()
    try:
        address = urlsplit(text)
    except ValueError:
        return set()
    said = [value for name, value in parse_qsl(address.query) if name.lower() in ("password", "sslpassword")]
    raw = address.netloc.rpartition("@")[0].partition(":")[2]
    return {*said, raw, unquote(raw)} - {""}


KNOWN = {known.name: known for known in fields(Settings) if known.name != "origins"}
_TYPES = get_type_hints(Settings)


def _from_toml(path: Path) -> dict[str, Any]:
    try:
        data = _parsed(path.read_text(encoding="utf-8-sig"))
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


def _parsed(toml: str) -> dict[str, Any]:
    # Imported only where there is a file: a first answer waits for every import.
    import tomllib

    return tomllib.loads(toml)


def _from_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Our own names, and the ones that are usual for keys and models. Of the two, our own wins."""
    usual = {name: variables[alias] for alias, name in ALIASES.items() if variables.get(alias) and name in KNOWN}
    own = {name[len(PREFIX) :].lower(): value for name, value in variables.items() if name.startswith(PREFIX)}
    return usual | own


def _dotenv(path: Path) -> dict[str, str]:
    """The assignments in a `.env` file. Quotes and comments are removed; nothing is expanded or run."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigurationError(f"{path} cannot be read: {exc}") from exc
    found = (_ASSIGNMENT.fullmatch(line) for line in lines)
    return {match["name"]: match["quoted"] or match["plain"] or "" for match in found if match}


def _checked(name: str, value: Any, origin: str) -> Any:
    """The value in its setting's own type, within its bounds."""
    if name not in KNOWN:
        import difflib

        near = difflib.get_close_matches(name, KNOWN, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else " 'bythebook config' lists them all."
        raise ConfigurationError(f"there is no setting {name!r} (from {origin}).{hint}")
    try:
        converted = _converted(_TYPES[name], value)
        check(name, converted)
    except (ValueError, InputError, ConfigurationError) as exc:
        shown = "what it is" if KNOWN[name].metadata["secret"] else repr(value)
        raise ConfigurationError(f"{name} cannot be {shown} (from {origin}): {exc}") from exc
    least, most = KNOWN[name].metadata["least"], KNOWN[name].metadata["most"]
    if least is not None and not isinstance(converted, str) and not least <= converted <= most:
        raise ConfigurationError(f"{name} must be from {least} to {most}, not {value!r} (from {origin}).")
    return converted


def _converted(kind: Any, value: Any) -> Any:
    choices = [choice for choice in get_args(kind) if isinstance(choice, str)]
    literal = next((get_args(part) for part in get_args(kind) if get_args(part)), ())
    if value in (*choices, *literal):
        return value
    if choices:
        raise ValueError(f"use one of {', '.join(choices)}")
    if kind in (Path, str):
        return _text(kind, value)
    if kind == tuple[str, ...]:
        return _several(value)
    return _number(kind, value)


def _text(kind: Any, value: Any) -> Any:
    if not isinstance(value, str | Path):
        raise ValueError("use text in quotes")
    if kind is str:
        return str(value)
    if not str(value).strip():
        raise ValueError("name a folder")
    return Path(value).expanduser()


def _several(value: Any) -> tuple[str, ...]:
    """The values of a list, or of text that has spaces or commas between them, as in the environment."""
    listed = value.replace(",", " ").split() if isinstance(value, str) else value
    if not isinstance(listed, list | tuple) or not all(isinstance(each, str) for each in listed):
        raise ValueError("use a list of texts")
    return tuple(listed)


def _number(kind: Any, value: Any) -> float:
    """The value as a whole number, or as any number. Text is read as one, because the environment has nothing else."""
    whole = kind is int or int in get_args(kind)
    try:
        if isinstance(value, bool) or (whole and isinstance(value, float)):
            raise TypeError
        return int(value) if whole else float(value)
    except (TypeError, ValueError):
        raise ValueError("use a whole number" if whole else "use a number") from None


def check(name: str, value: Any) -> None:
    """Raises ValueError, InputError or ConfigurationError, with what is expected, for a value that is not fine."""
    if name in _CHECKS:
        _CHECKS[name](value)


def _is_embedder(name: str) -> None:
    from bythebook.embeddings.config import check as check_embedder

    if name:
        check_embedder(name)


def _is_limit(text: str) -> None:
    from bythebook.access import Limit

    Limit.parse(text)


def _is_server(url: str) -> None:
    _is_address(url, like="http://localhost:6333")


def _is_site(url: str) -> None:
    _is_address(url, like="https://my-book.example/")


def _is_address(url: str, *, like: str) -> None:
    if url and not re.fullmatch(r"https?://[^/\s]+(/\S*)?", url, re.I):
        raise ValueError(f"use an address, as {like}")


def _is_collection(name: str) -> None:
    if not name.strip() or len(name) > 200 or re.search(r'[<>:"/\\|?*\x00-\x1f]', name):
        raise ValueError("use a name of up to 200 letters, digits, - and _")


def _are_origins(listed: tuple[str, ...]) -> None:
    from bythebook.access.site_tokens import checked_origin

    for each in listed:
        checked_origin(each)


def _are_asides(listed: tuple[str, ...]) -> None:
    from bythebook.sources.projects import Aside

    known = [*(str(aside) for aside in Aside), "all"]
    if wrong := [each for each in listed if each not in known]:
        raise ValueError(f"{wrong[0]!r} is none of {', '.join(known)}")


_CHECKS: Mapping[str, Callable[[Any], None]] = {
    "embedder": _is_embedder,
    "rate_limit_key": _is_limit,
    "rate_limit_address": _is_limit,
    "cors_origins": _are_origins,
    "site_include": _are_asides,
    "site_url": _is_site,
    "qdrant_url": _is_server,
    "collection_name": _is_collection,
}
