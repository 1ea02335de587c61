"""Settings: sources, precedence and validation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bythebook.errors import ConfigurationError
from bythebook.settings import FIELDS, PREFIX, TABLE, Settings


@pytest.fixture(autouse=True)
def only_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Removes the settings of this machine from the environment."""
    for name in FIELDS:
        monkeypatch.delenv(PREFIX + name.upper(), raising=False)


def load(folder: Path, *, toml: str = "", env: str = "", **arguments: Any) -> Settings:
    (folder / "bythebook.toml").write_text(toml, encoding="utf-8")
    (folder / ".env").write_text(env, encoding="utf-8")
    return Settings.load(arguments, folder=folder)


def test_defaults_apply_without_any_source(tmp_path: Path) -> None:
    settings = Settings.load(folder=tmp_path)
    assert settings == Settings()
    assert settings.origins == {}
    assert (settings.data_dir, settings.chunk_tokens, settings.retrieval_top_k) == (Path(".bythebook"), "auto", 5)
    assert (settings.retrieval_threshold, settings.site_style, settings.site_url) == ("auto", "auto", "")


@pytest.mark.parametrize(
    ("origins", "value"),
    [
        pytest.param([], 5, id="default"),
        pytest.param(["bythebook.toml"], 6, id="the file"),
        pytest.param(["bythebook.toml", ".env"], 7, id=".env wins over the file"),
        pytest.param(["bythebook.toml", ".env", "environment"], 8, id="the environment wins over .env"),
        pytest.param(["bythebook.toml", ".env", "environment", "argument"], 9, id="arguments win over all"),
        pytest.param(["bythebook.toml", "argument"], 9, id="whatever is between"),
    ],
)
def test_precedence_of_the_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, origins: list[str], value: int
) -> None:
    if "environment" in origins:
        monkeypatch.setenv("BYTHEBOOK_RETRIEVAL_TOP_K", "8")
    settings = load(
        tmp_path,
        toml="retrieval_top_k = 6" if "bythebook.toml" in origins else "",
        env="BYTHEBOOK_RETRIEVAL_TOP_K=7" if ".env" in origins else "",
        retrieval_top_k=9 if "argument" in origins else None,
    )
    assert settings.retrieval_top_k == value
    assert settings.origins == ({"retrieval_top_k": origins[-1]} if origins else {})


def test_a_table_prefixes_its_names(tmp_path: Path) -> None:
    settings = load(tmp_path, toml='data_dir = "~/here"\n[chunk]\ntokens = 100\noverlap = 10\n[site]\nstyle = "mkdocs"')
    assert (settings.chunk_tokens, settings.chunk_overlap, settings.site_style) == (100, 10, "mkdocs")
    assert settings.data_dir == Path.home() / "here"


@pytest.mark.parametrize(
    ("line", "value"),
    [
        pytest.param("BYTHEBOOK_BOOK_NAME=https://b.example/", "https://b.example/", id="plain"),
        pytest.param("BYTHEBOOK_BOOK_NAME = https://b.example/ ", "https://b.example/", id="spaces"),
        pytest.param("export BYTHEBOOK_BOOK_NAME=https://b.example/", "https://b.example/", id="export"),
        pytest.param("  export  BYTHEBOOK_BOOK_NAME=x", "x", id="export after spaces"),
        pytest.param("BYTHEBOOK_BOOK_NAME='a b'", "a b", id="single quotes"),
        pytest.param('BYTHEBOOK_BOOK_NAME="a b"', "a b", id="double quotes"),
        pytest.param("""BYTHEBOOK_BOOK_NAME="it's" """, "it's", id="a quote inside quotes"),
        pytest.param("BYTHEBOOK_BOOK_NAME=https://b.example/ # ours", "https://b.example/", id="a comment"),
        pytest.param("BYTHEBOOK_BOOK_NAME='x # y' # ours", "x # y", id="a comment after quotes"),
        pytest.param("BYTHEBOOK_BOOK_NAME=https://b.example/#top", "https://b.example/#top", id="a hash inside"),
        pytest.param("BYTHEBOOK_BOOK_NAME=a=b", "a=b", id="an equals sign"),
        pytest.param("BYTHEBOOK_BOOK_NAME=$HOME/`ls`", "$HOME/`ls`", id="nothing is expanded or run"),
        pytest.param("BYTHEBOOK_BOOK_NAME=", "", id="empty"),
        pytest.param("# BYTHEBOOK_BOOK_NAME=x", "", id="commented out"),
        pytest.param("\ufeffBYTHEBOOK_BOOK_NAME=x", "x", id="a byte order mark"),
        pytest.param("OTHER=1\r\nBYTHEBOOK_BOOK_NAME=x\r\nnot an assignment\r\n", "x", id="among others"),
    ],
)
def test_dotenv_syntax(tmp_path: Path, line: str, value: str) -> None:
    assert load(tmp_path, env=line).book_name == value


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        pytest.param("chunk_token = 100", "Did you mean 'chunk_tokens'?", id="a slip"),
        pytest.param("[retrieval]\ntopk = 3", "Did you mean 'retrieval_top_k'?", id="a slip in a table"),
        pytest.param("zebra = 1", "'bythebook config' lists all settings", id="nothing like it"),
        pytest.param("origins = 1", "there is no setting 'origins'", id="not a setting"),
        pytest.param("[chunk.more]\ntokens = 1", "there is no setting 'chunk_more'", id="a table in a table"),
        pytest.param("chunk_tokens = ", "bythebook.toml cannot be read", id="bad TOML"),
        pytest.param("chunk_tokens = 1\nchunk_tokens = 2", "bythebook.toml cannot be read", id="twice"),
        pytest.param("chunk_tokens = 31", "chunk_tokens must be from 32 to 4096, not 31", id="too small"),
        pytest.param("chunk_tokens = 4097", "from 32 to 4096", id="too large"),
        pytest.param("retrieval_top_k = 21", "from 1 to 20", id="too many"),
        pytest.param("retrieval_threshold = 1.01", "from 0.0 to 1.0", id="above one"),
        pytest.param("retrieval_threshold = nan", "from 0.0 to 1.0", id="not a number"),
        pytest.param('retrieval_threshold = "much"', "use a number", id="not auto either"),
        pytest.param("retrieval_threshold = [0.5]", "use a number", id="a list for a number"),
        pytest.param("chunk_tokens = 100.7", "use a whole number", id="a part of a token"),
        pytest.param("chunk_tokens = inf", "use a whole number", id="endless"),
        pytest.param("retrieval_top_k = true", "use a whole number", id="true is not one"),
        pytest.param('chunk_tokens = "many"', "use a whole number", id="words for a number"),
        pytest.param('traces = "yes"', "use one of on, true, off, false", id="an unknown switch"),
        pytest.param('site_style = "hugo"', "use one of auto, docusaurus, mkdocs", id="an unknown style"),
        pytest.param("site_url = 3", "use text in quotes", id="a number for text"),
        pytest.param('site_url = "my-book.example"', "as https://my-book.example/", id="an address without its scheme"),
        pytest.param('data_dir = ""', "name a folder", id="an empty folder"),
        pytest.param('rate_limit_key = "often"', "such as 60/minute", id="a limit that is none"),
        pytest.param('cors_origins = ["https://a.example/"]', "Use 'https://a.example'", id="an origin with a slash"),
        pytest.param("cors_origins = [1]", "use a list of texts", id="numbers in a list"),
        pytest.param("trusted_proxies = 10", "use a list of texts", id="a number for a list"),
    ],
)
def test_invalid_values_are_rejected(tmp_path: Path, toml: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, toml=toml)
    assert message in str(caught.value)
    assert "bythebook.toml" in str(caught.value)


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        pytest.param("BYTHEBOOK_DATADIR", "x", "Did you mean 'data_dir'?", id="a slip"),
        pytest.param("BYTHEBOOK_SERVICE_HOST", "10.0.0.1", "BYTHEBOOK_SERVICE_HOST is ignored", id="Kubernetes"),
        pytest.param("BYTHEBOOK_PORT", "tcp://10.0.0.1:80", "BYTHEBOOK_PORT is ignored", id="a port of Kubernetes"),
    ],
)
def test_an_unknown_variable_is_ignored_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, message: str
) -> None:
    monkeypatch.setenv(variable, value)
    settings = load(tmp_path)
    assert (settings.port, settings.data_dir) == (8000, Path(".bythebook"))
    (warning,) = settings.ignored
    assert message in warning


def test_an_unknown_name_in_dotenv_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"'datadir' \(from .env\). Did you mean 'data_dir'"):
        load(tmp_path, env="BYTHEBOOK_DATADIR=x")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        pytest.param({"retrieval_top_k": 21}, "from 1 to 20", id="a bound"),
        pytest.param({"workers": True}, "whole number", id="a type"),
        pytest.param({"max_tokens": 900.5}, "whole number", id="000: max_tokens is an integer"),
        pytest.param({"max_tokens": 2000, "context_window": 1500}, "less than context_window", id="001: two values"),
        pytest.param({"site_url": "book"}, "use a URL", id="a check"),
    ],
)
def test_settings_made_directly_keep_the_rules(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Settings(**values)


@pytest.mark.parametrize("name", ["bythebook.toml", ".env"])
def test_a_binary_file_is_an_error_with_its_name(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigurationError, match=f"{name} cannot be read"):
        Settings.load(folder=tmp_path)


@pytest.mark.parametrize(("value", "threshold"), [("auto", "auto"), ("0", 0.0), ("1", 1.0), ("0.35", 0.35)], ids=str)
def test_a_threshold_is_auto_or_a_number(tmp_path: Path, value: str, threshold: float | str) -> None:
    assert load(tmp_path, retrieval_threshold=value).retrieval_threshold == threshold


@pytest.mark.parametrize(
    ("toml", "name", "bound"),
    [
        (f"{name} = {known[edge]}", name, known[edge])
        for name, known in TABLE.items()
        for edge in ("minimum", "maximum")
        if edge in known
    ],
    ids=str,
)
def test_the_bounds_are_inclusive(tmp_path: Path, toml: str, name: str, bound: float) -> None:
    assert getattr(load(tmp_path, toml=toml), name) == bound


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"toml": 'cors_origins = ["https://a.example", "http://b.example:81"]'}, id="a list"),
        pytest.param({"env": "BYTHEBOOK_CORS_ORIGINS=https://a.example,http://b.example:81"}, id="commas"),
        pytest.param({"env": "BYTHEBOOK_CORS_ORIGINS='https://a.example http://b.example:81'"}, id="spaces"),
        pytest.param({"cors_origins": ("https://a.example", "http://b.example:81")}, id="from Python"),
    ],
)
def test_lists_of_values(tmp_path: Path, given: dict[str, Any]) -> None:
    settings = load(tmp_path, **given)
    assert settings.cors_origins == ("https://a.example", "http://b.example:81")
    assert "https://a.example http://b.example:81" in [value for _, value, *_ in settings.describe()]


@pytest.mark.parametrize(
    ("toml", "shown"),
    [("traces = true", "on"), ('traces = "on"', "on"), ('traces = "True"', "on"), ("traces = false", "off")],
)
def test_a_switch_is_a_bool_and_accepts_on_off_true_and_false(tmp_path: Path, toml: str, shown: str) -> None:
    settings = load(tmp_path, toml=toml)
    assert settings.traces is (shown == "on")
    assert ("traces", shown) in [(name, value) for name, value, *_ in settings.describe()]
    assert Settings.load(settings.to_arguments(), folder=tmp_path / "elsewhere") == settings


def test_models_are_in_the_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert Settings.load(folder=tmp_path).model_folder == tmp_path / "cache" / "bythebook" / "models"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert Settings.load(folder=tmp_path).model_folder == Path.home() / ".cache" / "bythebook" / "models"


def test_describe_lists_value_origin_and_purpose(tmp_path: Path) -> None:
    shown = load(tmp_path, toml="chunk_tokens = 100").describe()
    assert [name for name, *_ in shown] == list(FIELDS)
    assert all(purpose.endswith(".") for *_, purpose in shown)
    assert {(name, value, origin) for name, value, origin, _ in shown} >= {
        ("chunk_tokens", "100", "bythebook.toml"),
        ("retrieval_top_k", "5", "default"),
    }
