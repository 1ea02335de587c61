"""AgentConfig: its bounds, its environment variables and the provider it selects."""

from __future__ import annotations

from typing import Any

import pytest

from bythebook.errors import ConfigurationError
from bythebook.llm.config import AgentConfig
from bythebook.llm.providers import GROQ_URL, OPENAI_URL, OPENROUTER_URL

OLLAMA = "http://localhost:11434/v1"


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"temperature": -0.1}, id="000: temperature is at least 0"),
        pytest.param({"temperature": 2.1}, id="000: temperature is at most 2"),
        pytest.param({"max_tokens": 0}, id="000, 001: max_tokens is positive"),
        pytest.param({"max_tokens": 4097}, id="000: max_tokens is at most 4096"),
        pytest.param({"max_tokens": 2000, "context_window": 2000}, id="001: max_tokens is less than context_window"),
        pytest.param({"retrieval_top_k": 0}, id="000, 001: top_k is at least 1"),
        pytest.param({"retrieval_top_k": 21}, id="000, 001: top_k is at most 20"),
        pytest.param({"retrieval_threshold": 1.1}, id="000, 001: threshold is at most 1"),
        pytest.param({"retrieval_threshold": -0.1}, id="000, 001: threshold is at least 0"),
        pytest.param({"max_history": 0}, id="003: max_history is positive"),
        pytest.param({"max_history": 101}, id="003: max_history is at most 100"),
        pytest.param({"max_conversation_turns": 0}, id="002: max_conversation_turns is positive"),
        pytest.param({"system_prompt": " "}, id="001: system_prompt is required"),
    ],
)
def test_rejects_a_value_out_of_bounds(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        AgentConfig(**wrong)


def test_002_reads_the_usual_environment_variables() -> None:
    environment = {
        "OPENAI_API_KEY": "sk-x",
        "OPENAI_MODEL": "m",
        "AGENT_TOP_K": "7",
        "AGENT_SCORE_THRESHOLD": "0.5",
        "AGENT_MAX_TURNS": "9",
    }
    config = AgentConfig.from_env(environment)
    assert (config.model, config.retrieval_top_k, config.retrieval_threshold) == ("m", 7, 0.5)
    assert config.max_conversation_turns == 9
    assert config.provider is not None
    assert "sk-x" not in repr(config) + repr(config.provider)


def test_names_the_variable_of_an_invalid_number() -> None:
    with pytest.raises(ConfigurationError, match="AGENT_TOP_K"):
        AgentConfig.from_env({"AGENT_TOP_K": "many"})


@pytest.mark.parametrize(
    ("given", "name", "url"),
    [
        pytest.param({"openai_api_key": "k"}, "OpenAI", OPENAI_URL, id="an OpenAI key"),
        pytest.param({"openrouter_api_key": "k"}, "OpenRouter", OPENROUTER_URL, id="an OpenRouter key"),
        pytest.param({"groq_api_key": "k"}, "Groq", GROQ_URL, id="a Groq key"),
        pytest.param({"groq_api_key": "k", "openai_api_key": "k"}, "OpenAI", OPENAI_URL, id="the first of two keys"),
        pytest.param({"base_url": OLLAMA}, "localhost:11434", OLLAMA, id="Ollama"),
        pytest.param({"base_url": GROQ_URL, "groq_api_key": "k"}, "Groq", GROQ_URL, id="001: Groq by its address"),
    ],
)
def test_selects_the_provider_by_keys_and_address(given: dict[str, Any], name: str, url: str) -> None:
    provider = AgentConfig(**given).provider
    assert provider is not None
    assert (provider.name, provider.base_url) == (name, url)


def test_has_no_provider_without_key_or_address() -> None:
    assert AgentConfig().provider is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param({"model": "gpt-4o"}, "OPENAI_API_KEY", id="a model without a provider"),
        pytest.param({"base_url": GROQ_URL}, "GROQ_API_KEY", id="a known address without its key"),
        pytest.param({"base_url": "localhost:11434"}, "base_url", id="an invalid address"),
    ],
)
def test_names_the_missing_option(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        _ = AgentConfig(**given).provider
